#include <gtest/gtest.h>

#include <string>

#include "ir/models/mlp.h"
#include "tests/lowering/played.h"
#include "transforms/training/training_step.h"

// Kernels of ranks that wait for each other, in whole steps.

namespace orrery::lowering {
namespace stragglers_test_cc {
namespace {

// Of one rank's kernels, with as many samples a rank.
double KernelSeconds(int64_t dp, const std::string& cost_model) {
  ir::Function step = ir::Mlp({.layers = 4, .dim = 1024, .batch = 512 * dp}).value();
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {}).ok());
  const Played played =
      Play(step, {.plan = {.dp = dp}, .cluster = "dgx-a100:1", .cost_model = cost_model});
  const simulator::RankReport& rank = played.report.ranks[simulator::RankClassId(0)];
  return (rank.busy - rank.communication).seconds();
}

TEST(Stragglers, MakeKernelsLongerWithEachDoublingOfTheRanks) {
  const double alone = KernelSeconds(1, "kernels");
  const double step = KernelSeconds(2, "kernels") - alone;
  EXPECT_GT(step, 0.001 * alone);
  EXPECT_NEAR(KernelSeconds(8, "kernels") - alone, 3 * step, 1e-4 * alone);
  EXPECT_EQ(KernelSeconds(8, "roofline"), KernelSeconds(1, "roofline"));
}

}  // namespace
}  // namespace stragglers_test_cc
}  // namespace orrery::lowering
