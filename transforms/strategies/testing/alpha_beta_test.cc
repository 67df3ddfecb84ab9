#include "transforms/strategies/testing/alpha_beta.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"

namespace orrery::transforms::strategies {
namespace alpha_beta_test_cc {
namespace {

using nlohmann::json;

void ExpectEqual(const json& golden, const AlphaBeta& ours, double bytes) {
  EXPECT_EQ(ours.AllGather(bytes), golden["all_gather"].get<double>());
  EXPECT_EQ(ours.AllReduce(bytes), golden["all_reduce"].get<double>());
  EXPECT_EQ(ours.ReduceScatter(bytes), golden["reduce_scatter"].get<double>());
  EXPECT_EQ(ours.AllToAll(bytes), golden["all_to_all"].get<double>());
}

TEST(AlphaBeta, HasTheDigitsOfAlpaAndXla) {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/auto_parallel_alpa.json"));
  const json data = json::parse(file);
  int compared = 0;
  for (const json& golden : data["alpha_beta"]) {
    SCOPED_TRACE(golden.dump());
    AlphaBeta ours{.ranks = golden["n"], .alpha = golden["alpha"], .beta = golden["beta"]};
    ExpectEqual(golden["alpa"], ours, golden["bytes"]);
    ours.style = AlphaBetaStyle::kXla;
    ExpectEqual(golden["xla"], ours, golden["bytes"]);
    ++compared;
  }
  EXPECT_EQ(compared, 16);
}

TEST(AlphaBeta, OfOneRankIsAlphaAndTheTieBreak) {
  const AlphaBeta one{.ranks = 1, .alpha = 2, .beta = 3};
  EXPECT_EQ(one.AllGather(100), 2.1);
  EXPECT_EQ(one.AllReduce(100), 2.01);
}

// Four ranks send 3/4 of 800 bytes: 600; twice that to reduce; to all, a quarter of it twice.
TEST(AlphaBeta, IsTheFormulasByHand) {
  const AlphaBeta four{.ranks = 4, .alpha = 7, .beta = 2};
  EXPECT_DOUBLE_EQ(four.AllGather(800), 7 + 2 * 600 + 0.1);
  EXPECT_DOUBLE_EQ(four.AllReduce(800), 7 + 2 * 2 * 600 + 0.01);
  EXPECT_DOUBLE_EQ(four.ReduceScatter(800), 7 + 2 * 600 + 0.001);
  EXPECT_DOUBLE_EQ(four.AllToAll(800), 7 + 2 * 150 * 2 + 0.001);
  EXPECT_DOUBLE_EQ(four.AllToAll(0), 7.001);
}

// Halves go to the even number; the tie-breaks stay.
TEST(AlphaBeta, RoundsAsXlaDoes) {
  const auto xla = [](double alpha) {
    return AlphaBeta{.style = AlphaBetaStyle::kXla, .ranks = 2, .alpha = alpha, .beta = 1};
  };
  EXPECT_EQ(xla(0.5).AllGather(0), 0 + 0.1);
  EXPECT_EQ(xla(0.5).AllGather(2), 2 + 0.1);
  EXPECT_EQ(xla(0.5).AllGather(4), 2 + 0.1);
  EXPECT_EQ(xla(0).AllGather(5), 2 + 0.1);
  EXPECT_EQ(xla(0).AllGather(7), 4 + 0.1);
  EXPECT_EQ(xla(0.4).AllReduce(3), 3 + 0.01);
  EXPECT_EQ(xla(0.6).ReduceScatter(2), 2 + 0.001);
  EXPECT_EQ(xla(0).AllToAll(10), 2 + 0.001);
}

// Between equal times the tie-breaks choose: scatter and exchange before reduce before gather.
TEST(AlphaBeta, BreaksTies) {
  const AlphaBeta one{.ranks = 1, .alpha = 1, .beta = 1};
  EXPECT_LT(one.ReduceScatter(64), one.AllReduce(64));
  EXPECT_LT(one.AllReduce(64), one.AllGather(64));
  EXPECT_EQ(one.AllToAll(64), one.ReduceScatter(64));
}

}  // namespace
}  // namespace alpha_beta_test_cc
}  // namespace orrery::transforms::strategies
