#include "transforms/memory/muon_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/parallel.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/plan/plan_context.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace muon_update_test_cc {
namespace {

// The ops of the update of an MLP of two layers whose first product is hidden.
std::string UpdateOf(const ParallelPlan& plan) {
  ir::Function step = ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value();
  EXPECT_TRUE(AppendOptimizer(step, "muon").value());
  EXPECT_TRUE(HasMuon(step));
  const auto parallel = ParallelTransform3d(step, ByFlops(plan), {});
  EXPECT_TRUE(parallel.ok()) << parallel.status();
  if (!parallel.ok()) return "";
  const ir::Function& update = parallel->stages[0].update.function;
  EXPECT_TRUE(ir::Verify(update).ok()) << ir::Verify(update);
  EXPECT_FALSE(HasMuon(update));
  return ir::Print(update);
}

TEST(ExpandMuon, OfWholeMatricesGathersNothing) {
  EXPECT_EQ(UpdateOf({}), R"(func @mlp.update0 mesh(pp=1, dp=1, hp=1) (
  %w0: f32[4,4] parameter,
  %w0.m: f32[4,4] state,
  %dw0: f32[4,4] saved,
  %w1: f32[4,4] parameter,
  %w1.m: f32[4,4] state,
  %w1.v: f32[4,4] state,
  %dw1: f32[4,4] saved
) {
  %w0.m': f32[4,4], %dw0.ahead: f32[4,4] = MuonMomentum(%w0.m, %dw0)
  %9: f32[4,4] = NewtonSchulz(%dw0.ahead) {scale=0.4}
  %w0': f32[4,4] = Sgd(%w0, %9) {parameters=1}
  %w1': f32[4,4], %w1.m': f32[4,4], %w1.v': f32[4,4] = Adam(%w1, %w1.m, %w1.v, %dw1) {parameters=1}
  return %w0': updated(%w0), %w0.m': updated(%w0.m), %w1': updated(%w1), %w1.m': updated(%w1.m), %w1.v': updated(%w1.v)
}
)");
}

TEST(ExpandMuon, GathersWhatIsSplit) {
  EXPECT_EQ(UpdateOf({.dp = 2, .zero = 1}), R"(func @mlp.update0 mesh(pp=1, dp=2, hp=1) (
  %dw0.partial: f32[4,4] partial(dp) saved,
  %w0: f32[4,4] parameter,
  %w0.m: f32[4@dp,4] state,
  %dw1.partial: f32[4,4] partial(dp) saved,
  %w1: f32[4,4] parameter,
  %w1.m: f32[4@dp,4] state,
  %w1.v: f32[4@dp,4] state
) {
  %dw0: f32[4@dp,4] = ReduceScatter(%dw0.partial) {axes="dp", dim=0, in_place=1}
  %8: f32[4@dp,4] = AllSlice(%w0) {axes="dp", dim=0, in_place=1}
  %w0.m': f32[4@dp,4], %dw0.ahead: f32[4@dp,4] = MuonMomentum(%w0.m, %dw0)
  %11: f32[4,4] = AllGather(%dw0.ahead) {axes="dp", dim=0}
  %12: f32[4,4] = NewtonSchulz(%11) {scale=0.4}
  %13: f32[4@dp,4] = AllSlice(%12) {axes="dp", dim=0}
  %w0'.shard: f32[4@dp,4] = Sgd(%8, %13) {parameters=1}
  %w0': f32[4,4] = AllGather(%w0'.shard) {axes="dp", dim=0, unit=0}
  %dw1: f32[4@dp,4] = ReduceScatter(%dw1.partial) {axes="dp", dim=0, in_place=1}
  %17: f32[4@dp,4] = AllSlice(%w1) {axes="dp", dim=0, in_place=1}
  %w1'.shard: f32[4@dp,4], %w1.m': f32[4@dp,4], %w1.v': f32[4@dp,4] = Adam(%17, %w1.m, %w1.v, %dw1) {parameters=1}
  %w1': f32[4,4] = AllGather(%w1'.shard) {axes="dp", dim=0, unit=0}
  return %w0': updated(%w0), %w0.m': updated(%w0.m), %w1': updated(%w1), %w1.m': updated(%w1.m), %w1.v': updated(%w1.v)
}
)");
}

TEST(ExpandMuon, IsNotForTheHost) {
  ir::Function step = ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value();
  ASSERT_TRUE(AppendOptimizer(step, "muon").value());
  ParallelPlan plan = {.dp = 2};
  plan.offload.optimizer = true;
  EXPECT_THAT(std::string(ParallelTransform3d(step, ByFlops(plan), {}).status().message()),
              testing::HasSubstr("Muon on the host, which has no matrix units for its products; "
                                 "wanted `offload` none or activations"));
}

}  // namespace
}  // namespace muon_update_test_cc
}  // namespace orrery::transforms
