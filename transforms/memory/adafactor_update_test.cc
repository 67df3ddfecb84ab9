#include "transforms/memory/adafactor_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/parallel.h"
#include "transforms/plan/parallel_plan.h"
#include "transforms/plan/plan_context.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace adafactor_update_test_cc {
namespace {

// A product and its bias, a vector.
ir::Function Step() {
  auto step = ir::ParseFunction(R"(func @f (
  %x: f32[8,4] data,
  %w: f32[4,6] parameter,
  %b: f32[6] parameter
) {
  %y: f32[8,6] = MatMul(%x, %w)
  %z: f32[8,6] = Add(%y, %b)
  return %z: result
})");
  EXPECT_TRUE(step.ok()) << step.status();
  const absl::Status status = MakeTrainingStep(
      *step, {.optimizer = "adafactor", .loss = {.kind = "mse"}, .simplify = false});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(HasAdafactor(*step));
  return *std::move(step);
}

std::string UpdateOf(const ir::Function& step, const ParallelPlan& plan) {
  const auto parallel = ParallelTransform3d(step, ByFlops(plan), {});
  EXPECT_TRUE(parallel.ok()) << parallel.status();
  if (!parallel.ok()) return "";
  const ir::Function& update = parallel->stages[0].update.function;
  EXPECT_TRUE(ir::Verify(update).ok()) << ir::Verify(update);
  return ir::Print(update);
}

TEST(ExpandAdafactor, LeavesWhatIsWhole) { EXPECT_EQ(UpdateOf(Step(), {}), ""); }

TEST(ExpandAdafactor, AddsUpMeansOfParts) { EXPECT_EQ(UpdateOf(Step(), {.dp = 2, .zero = 1}), ""); }

// Tensor parallelism splits w0 by columns and w1 by rows.
TEST(ExpandAdafactor, OfColumnsAndRows) {
  ir::Function step = ir::Mlp({.layers = 2, .dim = 4, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adafactor").value());
  EXPECT_EQ(UpdateOf(step, {.hp = 2}), "");
}

TEST(ExpandAdafactor, OnTheHostIsForWhatIsWhole) {
  ParallelPlan plan = {.dp = 2};
  plan.offload.optimizer = true;
  EXPECT_THAT(UpdateOf(Step(), plan), testing::HasSubstr("Adafactor("));
  plan.zero = 1;
  EXPECT_THAT(
      std::string(ParallelTransform3d(Step(), ByFlops(plan), {}).status().message()),
      testing::HasSubstr("Adafactor on the host, of %w, of which ranks have parts: its means would "
                         "wait for the network between kernels of the host; wanted `hp` 1 and "
                         "`zero` 0, `offload` none or activations, or another optimizer"));
}

}  // namespace
}  // namespace adafactor_update_test_cc
}  // namespace orrery::transforms
