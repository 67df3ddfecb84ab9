#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "simulator/report/memory.h"
#include "support/sanitized_test_util.h"
#include "tests/lowering/played.h"
#include "transforms/training/training_step.h"

// A parameter that two stages read, in schedules that never drain: the later stage updates its copy
// when the part of the gradient has come that the earlier one makes.

namespace orrery::lowering {
namespace late_updates_test_cc {
namespace {

using simulator::TaskId;

ir::Function Gpt(int64_t layers, int64_t batch, bool tied) {
  ir::Function step =
      ir::BuildModel("gpt",
                     absl::StrCat("layers=", layers, ",hidden=16,heads=2,seq=8,vocab=256,",
                                  "tied_embeddings=", tied ? 1 : 0),
                     batch);
  const absl::Status made = transforms::MakeTrainingStep(step, {.optimizer = "adam"});
  EXPECT_TRUE(made.ok()) << made;
  return step;
}

std::vector<Configuration> Configurations() {
  std::vector<Configuration> all;
  for (const char* schedule : {"pipedream", "pipedream-2bw", "ampnet"}) {
    for (const int64_t pp : {2, 3, 4}) {
      for (const int64_t dp : {1, 2}) {
        for (const int64_t microbatches : {pp, 2 * pp + 1, int64_t{12}}) {
          for (const bool blocking : {false, true}) {
            Configuration configuration = {
                .plan = {.dp = dp,
                         .pp = pp,
                         .microbatches = microbatches,
                         .schedule = transforms::ScheduleChoice::Parse(schedule).value()},
                .cluster = "uniform:8@200Gbps"};
            configuration.plan.blocking = blocking;
            all.push_back(configuration);
          }
        }
      }
    }
  }
  return CasesToWalk(all);
}

Played PlayGpt(const Configuration& configuration, bool tied) {
  const transforms::ParallelPlan& plan = configuration.plan;
  return Play(Gpt(plan.pp, plan.dp * plan.microbatches, tied), configuration);
}

// What stage `s` of one replica does with the gradient that two stages put together.
std::vector<TaskId> Joins(const Played& played, int32_t s) {
  std::vector<TaskId> joins;
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    const simulator::TaskLabel label = played.program.label(played.program.label_of(TaskId(t)));
    if (label.stage != s || label.phase != simulator::Phase::kUpdate) continue;
    if (absl::StartsWith(label.name, "Add ")) joins.push_back(TaskId(t));
  }
  return joins;
}

// By microbatch, how many of `updates` are over when its forward begins on stage `s`.
std::map<int32_t, int64_t> UpdatesSeen(const Played& played, int32_t s) {
  const std::vector<TaskId> updates = Joins(played, s);
  std::map<int32_t, int64_t> seen;
  for (const LoweredStep& lowered : played.lowered) {
    if (lowered.step.kind != transforms::StepKind::kForward || lowered.step.stage != s) continue;
    Time begin = Time(INT64_MAX);
    for (TaskId task = lowered.begin; task != lowered.end; task = TaskId(task.index() + 1)) {
      const simulator::TaskLabel label = played.program.label(played.program.label_of(task));
      if (label.phase != simulator::Phase::kForward || label.stage != s) continue;
      if (label.kind == simulator::TaskKind::kCompute) {
        begin = std::min(begin, played.trace.start_of(task));
      }
    }
    seen[lowered.step.microbatch] = std::ranges::count_if(
        updates, [&](TaskId update) { return played.trace.finish_of(update) <= begin; });
  }
  return seen;
}

// So the copies of a parameter are one parameter: a microbatch finds the same version on both
// stages, however late the later one updates its own.
TEST(LateUpdates, AMicrobatchReadsOneVersionOnBothStages) {
  int64_t seen = 0;
  for (const Configuration& configuration : Configurations()) {
    SCOPED_TRACE(ToString(configuration));
    const Played played = PlayGpt(configuration, /*tied=*/true);
    const auto last = static_cast<int32_t>(configuration.plan.pp) - 1;
    const std::map<int32_t, int64_t> first = UpdatesSeen(played, 0);
    EXPECT_EQ(first, UpdatesSeen(played, last));
    EXPECT_EQ(Joins(played, 0).size(), Joins(played, last).size());
    for (const auto& [microbatch, updates] : first) seen += updates;
  }
  EXPECT_GT(seen, CasesToWalk(500));
}

// However slow links are, a late update waits for the message that it is late for: for one of its
// own microbatch that has come when it begins.
TEST(LateUpdates, WaitForTheOtherPart) {
  int64_t waits = 0;
  for (Configuration configuration : Configurations()) {
    if (configuration.plan.blocking) continue;  // which has one stream, and no need to wait
    configuration.cluster = "uniform:8@1Gbps";
    SCOPED_TRACE(ToString(configuration));
    const Played played = PlayGpt(configuration, /*tied=*/true);
    for (const int32_t stage : {0, static_cast<int32_t>(configuration.plan.pp) - 1}) {
      for (const TaskId join : Joins(played, stage)) {
        const auto is_message = [&](TaskId on) {
          const simulator::TaskLabel label = played.program.label(played.program.label_of(on));
          return label.kind == simulator::TaskKind::kSend &&
                 label.phase == simulator::Phase::kUpdate &&
                 played.program.microbatch_of(on) == played.program.microbatch_of(join) &&
                 played.trace.finish_of(on) <= played.trace.start_of(join);
        };
        EXPECT_TRUE(std::ranges::any_of(played.program.dependencies_of(join), is_message))
            << "stage " << stage << " task " << join.index();
        ++waits;
      }
    }
  }
  EXPECT_GT(waits, CasesToWalk(400));
}

// All that is taken for a gradient is given back: at the end a rank holds what it does in the
// beginning, tied or not, but for what the loss collects.
TEST(LateUpdates, LeaveNoGradientBehind) {
  for (const Configuration& configuration : Configurations()) {
    SCOPED_TRACE(ToString(configuration));
    const Played played = PlayGpt(configuration, /*tied=*/true);
    std::map<std::pair<int32_t, simulator::MemoryKind>, int64_t> left;
    for (const simulator::MemoryEvent& event : played.program.memory_events()) {
      left[{event.rank.index(), event.kind}] += event.bytes;
    }
    for (const auto& [of, bytes] : left) {
      if (of.second == simulator::MemoryKind::kOther) continue;
      EXPECT_EQ(bytes, 0) << "rank " << of.first << " " << simulator::ToString(of.second);
    }
  }
}

// Nobody drains the pipeline for it: where links cost nothing, a microbatch more takes what the
// busiest rank computes for it, as it does without a shared parameter.
TEST(LateUpdates, LetThePipelineRun) {
  for (Configuration configuration : Configurations()) {
    if (configuration.plan.blocking || configuration.plan.schedule->name == "pipedream-2bw") {
      continue;
    }
    configuration.cluster = "uniform:8@1000000Gbps";
    SCOPED_TRACE(ToString(configuration));
    Configuration longer = configuration;
    longer.plan.microbatches *= 3;
    const Played a = PlayGpt(configuration, /*tied=*/true), b = PlayGpt(longer, /*tied=*/true);
    const int64_t more = longer.plan.microbatches - configuration.plan.microbatches;
    const double each =
        (b.report.step_time - a.report.step_time).seconds() / static_cast<double>(more);
    double busiest = 0;
    for (int32_t r = 0; r < b.program.rank_count(); ++r) {
      const simulator::RankClassId rank(r);
      const Duration busy = b.report.ranks[rank].busy - a.report.ranks[rank].busy;
      busiest = std::max(busiest, busy.seconds() / static_cast<double>(more));
    }
    EXPECT_LT(each, 1.02 * busiest);
  }
}

// Where links are slow an update of each microbatch takes what one link carries one way: parts go
// both ways at once, and beside what the pipeline sends.
TEST(LateUpdates, HoldUpNoOtherMessage) {
  for (const int64_t pp : {3, 4}) {
    Configuration configuration = {
        .plan = {.pp = pp,
                 .microbatches = 12,
                 .schedule = transforms::ScheduleChoice::Parse("pipedream").value()},
        .cluster = "uniform:8@20Mbps"};
    SCOPED_TRACE(ToString(configuration));
    Configuration longer = configuration;
    longer.plan.microbatches *= 3;
    const Played a = PlayGpt(configuration, /*tied=*/true), b = PlayGpt(longer, /*tied=*/true);
    constexpr double kGradient = 256 * 16 * 4, kLink = 20e6 / 8;
    const double each = (b.report.step_time - a.report.step_time).seconds() / 24;
    EXPECT_NEAR(each / (kGradient / kLink), 1, 0.01);
  }
}

}  // namespace
}  // namespace late_updates_test_cc
}  // namespace orrery::lowering
