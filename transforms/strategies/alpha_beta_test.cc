#include "transforms/strategies/alpha_beta.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace orrery::transforms {
namespace {

using nlohmann::json;

void ExpectEqual(const json& golden, const AlphaBeta& ours, double bytes) {
  EXPECT_EQ(ours.AllGather(bytes), golden["all_gather"].get<double>());
  EXPECT_EQ(ours.AllReduce(bytes), golden["all_reduce"].get<double>());
  EXPECT_EQ(ours.ReduceScatter(bytes), golden["reduce_scatter"].get<double>());
  EXPECT_EQ(ours.AllToAll(bytes), golden["all_to_all"].get<double>());
}

TEST(AlphaBeta, HasTheDigitsOfAlpaAndXla) {
  std::ifstream file(absl::StrCat(ORRERY_SOURCE_DIR, "/tests/data/auto_parallel_alpa.json"));
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

}  // namespace
}  // namespace orrery::transforms
