#include <gtest/gtest.h>

#include "ir/models/mlp.h"
#include "lowering/lower.h"
#include "simulator/program/program.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

// What lowering tells schedules that weigh how long the phases take: in nanoseconds, of the average
// stage, without what goes to the host and back.

namespace orrery::lowering {
namespace phase_durations_test_cc {
namespace {

using simulator::StreamKind;
using simulator::TaskId;
using transforms::ParallelPlan;
using transforms::StepDurations;

constexpr int64_t kStages = 4;

// 1F1B, which notes what it was told.
StepDurations told;

transforms::RankOrders Orders(const transforms::PipelineShape& shape) {
  told = shape.durations;
  return transforms::FindSchedule("1f1b").value()->orders(shape);
}

transforms::PipelineSchedule Noting() {
  transforms::PipelineSchedule noting = *transforms::FindSchedule("1f1b").value();
  noting.orders = Orders;
  noting.weighs_durations = true;
  return noting;
}

simulator::Program Lowered(const ParallelPlan& plan) {
  const ir::Function step = ir::Mlp({.layers = 8, .dim = 1024, .batch = 4096}).value();
  cluster::Cluster cluster = cluster::ParseCluster("dgx-a100:1").value();
  cluster.device.host = {Bandwidth::FromGigabytesPerSecond(100), Duration(0)};
  const auto parallel = transforms::ParallelTransform3d(step, transforms::ByFlops(plan));
  EXPECT_TRUE(parallel.ok()) << parallel.status();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  const transforms::PipelineSchedule noting = Noting();
  auto program = Lower({.step = *parallel,
                        .schedule = noting,
                        .cluster = cluster,
                        .cost_model = *cost_model,
                        .options = {}});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

// Of all tasks on streams of a kind, in nanoseconds.
int64_t SumOn(const simulator::Program& program, StreamKind kind) {
  Duration sum;
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const auto streams = program.streams_of(TaskId(t));
    if (program.stream(streams[0]).kind == kind) sum += program.duration(TaskId(t));
  }
  return sum.picoseconds() / 1000;
}

TEST(PhaseDurations, AreThoseOfTheAverageStage) {
  const simulator::Program program = Lowered({.pp = kStages});
  EXPECT_GT(told.forward, 0);
  EXPECT_GT(told.input_gradient, told.forward);  // of both products
  EXPECT_EQ(told.weight_gradient, 0);            // not by itself
  const int64_t sum = told.forward + told.input_gradient;
  EXPECT_NEAR(static_cast<double>(SumOn(program, StreamKind::kCompute)),
              static_cast<double>(kStages * sum), 2 * kStages);
}

TEST(PhaseDurations, LeaveOutWhatGoesToTheHost) {
  Lowered({.pp = kStages});
  const StepDurations stay = told;
  const simulator::Program program = Lowered({.pp = kStages, .offload = {.activations = true}});
  EXPECT_GT(SumOn(program, StreamKind::kHost), 0);
  EXPECT_EQ(told.forward, stay.forward);
  EXPECT_EQ(told.input_gradient, stay.input_gradient);
}

}  // namespace
}  // namespace phase_durations_test_cc
}  // namespace orrery::lowering
