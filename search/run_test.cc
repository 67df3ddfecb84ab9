#include "search/runs/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace run_test_cc {
namespace {

using simulator::TaskId;
using transforms::ByFlops;

Run Played(const Setting& setting, const ParallelPlan& plan) {
  absl::StatusOr<Run> run = Play(setting, ByFlops(plan));
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

std::vector<ParallelPlan> Plans() {
  return {{},
          {.dp = 4},
          {.dp = 2, .pp = 2, .microbatches = 4},
          {.pp = 4, .microbatches = 6, .schedule = "gpipe"},
          {.pp = 2, .microbatches = 4, .schedule = "interleaved"}};
}

// The program, its trace and its report are of one run.
TEST(Run, PartsAreOfOneRun) {
  const Setting setting = MlpSetting();
  for (const ParallelPlan& plan : Plans()) {
    SCOPED_TRACE(ToString(plan));
    const auto run = Played(setting, plan);
    EXPECT_EQ(run.rounds, 1);
    EXPECT_EQ(run.report.step_time, run.trace.makespan);
    EXPECT_EQ(run.report.simulated_tasks, run.program.task_count());
    ASSERT_EQ(run.trace.start.size(), static_cast<size_t>(run.program.task_count()));
    ASSERT_EQ(run.trace.finish.size(), run.trace.start.size());
    EXPECT_EQ(*std::ranges::max_element(run.trace.finish), run.trace.makespan);
    EXPECT_EQ(run.report.rank_count, plan.ranks());
    EXPECT_TRUE(run.program.Verify().ok()) << run.program.Verify();
    EXPECT_TRUE(run.slices.empty());
  }
}

// Each step of the schedule once, each with tasks of its own stage and microbatch.
TEST(Run, KnowsTheTasksOfEachStep) {
  const Setting setting = MlpSetting();
  for (const ParallelPlan& plan : Plans()) {
    SCOPED_TRACE(ToString(plan));
    const auto run = Played(setting, plan);
    size_t steps = 0;
    for (const auto& order : plan.schedule->OrdersOf(ShapeOf(*plan.schedule, plan))) {
      steps += order.size();
    }
    EXPECT_EQ(run.steps.size(), steps);
    for (const lowering::LoweredStep& row : run.steps) {
      ASSERT_LT(row.begin.index(), row.end.index());
      ASSERT_LE(row.end.index(), run.program.task_count());
      bool seen = false;
      for (int32_t t = row.begin.index(); t < row.end.index(); ++t) {
        const TaskId task(t);
        const simulator::TaskLabel label = run.program.label(run.program.label_of(task));
        seen = seen || (label.stage == row.step.stage &&
                        run.program.microbatch_of(task) == row.step.microbatch);
      }
      EXPECT_TRUE(seen) << row.step.stage << " " << row.step.microbatch;
    }
  }
}

TEST(Run, HasTheUseOfLinksWhereTheSettingAsks) {
  Setting setting = MlpSetting();
  const auto without = Played(setting, {.dp = 4});
  EXPECT_FALSE(without.link_use.has_value());
  setting.lowering.every_link = true;
  const auto with = Played(setting, {.dp = 4});
  ASSERT_TRUE(with.link_use.has_value());
  EXPECT_GT(with.link_use->Summarize(simulator::ResourceId(0), with.report.step_time).bytes, 0);
  EXPECT_EQ(with.report.step_time, without.report.step_time);  // no time depends on it
}

// The report of a pipeline that never drains is of one batch, the trace of all.
TEST(Run, OfASteadyStateIsOfSeveralBatches) {
  const auto run = Played(MlpSetting(), {.pp = 2, .microbatches = 4, .schedule = "pipedream"});
  EXPECT_GT(run.rounds, 1);
  EXPECT_LT(run.report.step_time, run.trace.makespan);
  EXPECT_LE(run.report.step_time * (run.rounds - 1), run.trace.makespan);
}

}  // namespace
}  // namespace run_test_cc
}  // namespace orrery::search
