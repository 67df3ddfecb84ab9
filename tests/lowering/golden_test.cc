#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "simulator/program/program_text.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/lowering/played.h"

// Whole programs as text, small enough to check by eye. ORRERY_BLESS=1 rewrites them.

namespace orrery::lowering {
namespace golden_test_cc {
namespace {

void ExpectProgram(const std::string& name, const Configuration& configuration) {
  const ir::Function step = ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value();
  const std::string text = simulator::Print(Play(step, configuration).program);
  const std::string path = absl::StrCat(SourceDir(), "/tests/lowering/", name);
  const char* bless = std::getenv("ORRERY_BLESS");
  if (bless != nullptr && std::string(bless) == "1") {
    ASSERT_TRUE(WriteFile(path, text).ok());
    return;
  }
  const absl::StatusOr<std::string> expected = ReadFile(path);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(text, *expected);
}

// Two stages, two microbatches, two replicas that are folded into one rank class a stage.
TEST(GoldenProgram, PipelinedAndDataParallel) {
  ExpectProgram("pipelined.program",
                {.plan = {.dp = 2, .pp = 2, .microbatches = 2}, .cluster = "uniform:4@200Gbps"});
}

// Two horizontal ranks, both simulated, each with one stream for everything.
TEST(GoldenProgram, HorizontalBlockingUnfolded) {
  ExpectProgram(
      "blocking.program",
      {.plan = {.hp = 2, .blocking = true}, .cluster = "uniform:4@200Gbps", .fold = false});
}

// A group of three on nodes of eight: ranks 6, 7 and 8 are on two nodes, and so nothing folds.
TEST(GoldenProgram, GroupsThatStraddleNodesAreNotFolded) {
  const ir::Function step = ir::Mlp({.layers = 2, .dim = 6, .batch = 12}).value();
  const auto ranks = [&](const char* cluster) {
    return Play(step, {.plan = {.dp = 4, .hp = 3}, .cluster = cluster}).program.rank_count();
  };
  EXPECT_EQ(ranks("dgx-a100:2"), 12);
  EXPECT_EQ(ranks("uniform:12@200Gbps"), 1);
}

}  // namespace
}  // namespace golden_test_cc
}  // namespace orrery::lowering
