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

TEST(ExpandAdafactor, LeavesWhatIsWhole) {
  EXPECT_EQ(UpdateOf(Step(), {}), R"(func @f.update0 mesh(pp=1, dp=1, hp=1) (
  %w: f32[4,6] parameter,
  %w.r: f32[4,1] state,
  %w.c: f32[1,6] state,
  %dw: f32[4,6] saved,
  %b: f32[6] parameter,
  %b.v: f32[6] state,
  %db: f32[6] saved
) {
  %w': f32[4,6], %w.r': f32[4,1], %w.c': f32[1,6] = Adafactor(%w, %w.r, %w.c, %dw) {parameters=1}
  %b': f32[6], %b.v': f32[6] = AdafactorVectors(%b, %b.v, %db) {parameters=1}
  return %w': updated(%w), %w.r': updated(%w.r), %w.c': updated(%w.c), %b': updated(%b), %b.v': updated(%b.v)
}
)");
}

TEST(ExpandAdafactor, AddsUpMeansOfParts) {
  EXPECT_EQ(UpdateOf(Step(), {.dp = 2, .zero = 1}), R"(func @f.update0 mesh(pp=1, dp=2, hp=1) (
  %dw.partial: f32[4,6] partial(dp) saved,
  %w: f32[4,6] parameter,
  %w.r: f32[4@dp,1] state,
  %w.c: f32[1,6] state,
  %db.partial: f32[6] partial(dp) saved,
  %b: f32[6] parameter,
  %b.v: f32[6@dp] state
) {
  %dw: f32[4@dp,6] = ReduceScatter(%dw.partial) {axes="dp", dim=0, in_place=1}
  %8: f32[4@dp,6] = AllSlice(%w) {axes="dp", dim=0, in_place=1}
  %9: f32[4@dp,1], %10: f32[1,6] partial(dp) = AdafactorMeans(%dw)
  %11: f32[1,6] = AllReduce(%10) {axes="dp"}
  %w.r': f32[4@dp,1], %13: f32[1,1] partial(dp) = AdafactorRows(%w.r, %9)
  %w.c': f32[1,6] = AdafactorMoment(%w.c, %11)
  %15: f32[1,1] = AllReduce(%13) {axes="dp"}
  %16: f32[2] partial(dp) = AdafactorNorms(%8, %dw, %w.r', %w.c', %15)
  %17: f32[2] = AllReduce(%16) {axes="dp"}
  %w'.shard: f32[4@dp,6] = AdafactorUpdate(%8, %w.r', %w.c', %15, %17, %dw) {parameters=1}
  %w': f32[4,6] = AllGather(%w'.shard) {axes="dp", dim=0, unit=0}
  %db: f32[6@dp] = ReduceScatter(%db.partial) {axes="dp", dim=0, in_place=1}
  %21: f32[6@dp] = AllSlice(%b) {axes="dp", dim=0, in_place=1}
  %22: f32[6@dp] = AdafactorMeans(%db)
  %b.v': f32[6@dp] = AdafactorMoment(%b.v, %22)
  %24: f32[2] partial(dp) = AdafactorNorms(%21, %db, %b.v')
  %25: f32[2] = AllReduce(%24) {axes="dp"}
  %b'.shard: f32[6@dp] = AdafactorUpdate(%21, %b.v', %25, %db) {parameters=1}
  %b': f32[6] = AllGather(%b'.shard) {axes="dp", dim=0, unit=0}
  return %w': updated(%w), %w.r': updated(%w.r), %w.c': updated(%w.c), %b': updated(%b), %b.v': updated(%b.v)
}
)");
}

// Tensor parallelism splits w0 by columns and w1 by rows.
TEST(ExpandAdafactor, OfColumnsAndRows) {
  ir::Function step = ir::Mlp({.layers = 2, .dim = 4, .batch = 3}).value();
  ASSERT_TRUE(AppendOptimizer(step, "adafactor").value());
  EXPECT_EQ(UpdateOf(step, {.hp = 2}), R"(func @mlp.update0 mesh(pp=1, dp=1, hp=2) (
  %w1: f32[4@hp,4] parameter,
  %w0: f32[4,4@hp] parameter,
  %w1.r: f32[4@hp,1] state,
  %w0.r: f32[4,1] state,
  %w1.c: f32[1,4] state,
  %w0.c: f32[1,4@hp] state,
  %dw1: f32[4@hp,4] saved,
  %dw0: f32[4,4@hp] saved
) {
  %8: f32[4@hp,1], %9: f32[1,4] partial(hp) = AdafactorMeans(%dw1)
  %10: f32[4,1] partial(hp), %11: f32[1,4@hp] = AdafactorMeans(%dw0)
  %12: f32[1,4] = AllReduce(%9) {axes="hp"}
  %13: f32[4,1] = AllReduce(%10) {axes="hp"}
  %w1.r': f32[4@hp,1], %15: f32[1,1] partial(hp) = AdafactorRows(%w1.r, %8)
  %w1.c': f32[1,4] = AdafactorMoment(%w1.c, %12)
  %w0.r': f32[4,1], %18: f32[1,1] = AdafactorRows(%w0.r, %13)
  %w0.c': f32[1,4@hp] = AdafactorMoment(%w0.c, %11)
  %20: f32[1,1] = AllReduce(%15) {axes="hp"}
  %21: f32[2] partial(hp) = AdafactorNorms(%w1, %dw1, %w1.r', %w1.c', %20)
  %22: f32[2] partial(hp) = AdafactorNorms(%w0, %dw0, %w0.r', %w0.c', %18)
  %23: f32[2] = AllReduce(%21) {axes="hp"}
  %24: f32[2] = AllReduce(%22) {axes="hp"}
  %w1': f32[4@hp,4] = AdafactorUpdate(%w1, %w1.r', %w1.c', %20, %23, %dw1) {parameters=1}
  %w0': f32[4,4@hp] = AdafactorUpdate(%w0, %w0.r', %w0.c', %18, %24, %dw0) {parameters=1}
  return %w1': updated(%w1), %w0': updated(%w0), %w1.r': updated(%w1.r), %w0.r': updated(%w0.r), %w1.c': updated(%w1.c), %w0.c': updated(%w0.c)
}
)");
}

TEST(ExpandAdafactor, OnTheHostIsForWhatIsWhole) {
  ParallelPlan plan = {.dp = 2};
  plan.offload.optimizer = true;
  EXPECT_THAT(UpdateOf(Step(), plan), testing::HasSubstr("Adafactor("));
  plan.zero = 1;
  EXPECT_THAT(std::string(ParallelTransform3d(Step(), ByFlops(plan), {}).status().message()),
              testing::HasSubstr(
                  "Adafactor on the host has %w.r of a parameter that is split: its means "
                  "would wait for the network between kernels of the host; wanted `hp` 1, "
                  "`ep` 1 and `zero` 0, `offload` none or activations, or another optimizer"));
}

}  // namespace
}  // namespace adafactor_update_test_cc
}  // namespace orrery::transforms
