#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "simulator/report/memory.h"
#include "tests/lowering/played.h"
#include "transforms/schedules/step_player.h"
#include "transforms/schedules/text.h"
#include "transforms/training/training_step.h"

// Every schedule as it is played: no step runs before what it waits for.

namespace orrery::lowering {
namespace schedules_test_cc {
namespace {

using simulator::TaskId;
using transforms::PipelineShape;
using transforms::ScheduleStep;
using transforms::StagePlacement;
using transforms::StepKind;

struct Span {
  Time start = Time(INT64_MAX), finish;
};

// Of the kernels of a step; a whole backward has those of both its parts.
Span SpanOf(const Played& played, const LoweredStep& lowered) {
  Span span;
  for (TaskId task = lowered.begin; task != lowered.end; task = TaskId(task.index() + 1)) {
    const simulator::TaskLabel label = played.program.label(played.program.label_of(task));
    if (!IsOf(label, lowered.step) || label.kind != simulator::TaskKind::kCompute) continue;
    span.start = std::min(span.start, played.trace.start_of(task));
    span.finish = std::max(span.finish, played.trace.finish_of(task));
  }
  return span;
}

// Steps that run, by what they make: a whole backward makes what its first part does.
using Made = std::tuple<bool, int32_t, int32_t>;
Made MadeBy(const ScheduleStep& step) {
  return {step.kind != StepKind::kForward, step.stage, step.microbatch};
}

// On a chain of products the last kernel of a step comes from the first.
void ExpectNeedsFirst(const Played& played, StagePlacement placement, const PipelineShape& shape) {
  std::map<Made, Span> spans;
  for (const LoweredStep& lowered : played.lowered) {
    if (lowered.step.kind == StepKind::kWeightGradient) continue;
    spans[MadeBy(lowered.step)] = SpanOf(played, lowered);
  }
  const transforms::StepNeeds needs(placement, shape);
  for (const LoweredStep& lowered : played.lowered) {
    if (lowered.step.kind == StepKind::kWeightGradient) continue;
    for (const ScheduleStep& need : needs.Of(lowered.step)) {
      ASSERT_TRUE(spans.contains(MadeBy(need)));
      EXPECT_GE(spans[MadeBy(lowered.step)].finish, spans[MadeBy(need)].finish)
          << transforms::StepName(lowered.step) << " before " << transforms::StepName(need);
    }
  }
}

ir::Function Chain(const PipelineShape& shape) {
  return ir::Mlp({.layers = shape.stages(), .dim = 512, .batch = 512 * shape.microbatches}).value();
}

TEST(Schedules, RunNothingBeforeWhatItWaitsFor) {
  int played = 0;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    if (schedule->slices_sequence) continue;  // for slices of sequences alone: see slices_test
    for (const auto& [pp, microbatches] : std::vector<std::pair<int64_t, int64_t>>{
             {2, 3}, {2, 8}, {3, 7}, {4, 4}, {4, 8}, {4, 13}}) {
      Configuration configuration = {
          .plan = {.pp = pp,
                   .microbatches = microbatches,
                   .schedule = transforms::ScheduleChoice::Parse(schedule->name).value()},
          .cluster = "uniform:4@100Gbps"};
      const PipelineShape shape = ShapeOf(configuration);
      if (schedule->asynchronous || !schedule->CheckShape(shape).ok()) continue;
      SCOPED_TRACE(ToString(configuration));
      const ir::Function step = Chain(shape);
      for (const char* cost_model : {"roofline", "distir"}) {
        configuration.cost_model = cost_model;
        ExpectNeedsFirst(Play(step, configuration), schedule->placement, shape);
        ++played;
      }
    }
  }
  EXPECT_GE(played, 150);
}

// Stage 0's backward of microbatch 0 is not there when its second forward could begin.
TEST(Schedules, StepsThatRunAtOnceWaitForWhatEitherNeeds) {
  const auto read =
      transforms::ParseOrders("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "orders");
  ASSERT_TRUE(read.ok()) << read.status();
  const Configuration configuration = {.plan = {.pp = 2, .microbatches = 2},
                                       .cluster = "uniform:2@100Gbps"};
  const PipelineShape shape = ShapeOf(configuration);
  const Played played = Play(Chain(shape), configuration, &read->orders);
  ExpectNeedsFirst(played, StagePlacement::kLoop, shape);
}

// The stages of a rank whose gradients are reduced, in the order of its data stream.
std::vector<int32_t> StagesReduced(const Played& played, simulator::RankClassId rank) {
  std::vector<int32_t> stages;
  const simulator::Program& program = played.program;
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const simulator::Stream& stream = program.stream(program.streams_of(task)[0]);
    const auto label = program.label(program.label_of(task));
    if (stream.rank == rank && label.kind == simulator::TaskKind::kCollective) {
      stages.push_back(label.stage);
    }
  }
  return stages;
}

// The chunk of a rank whose last gradients come first reduces them first.
TEST(Schedules, RanksReduceGradientsInTheOrderInWhichTheyAreMade) {
  Configuration configuration = {
      .plan = {.dp = 2, .pp = 2, .microbatches = 1, .schedule = "interleaved", .chunks = 2},
      .cluster = "uniform:4@100Gbps"};
  const PipelineShape shape = ShapeOf(configuration);
  for (const auto& [text, stages] : std::vector<std::pair<std::string, std::vector<int32_t>>>{
           {"0F0,2F0,2I0,0I0,2W0,0W0\n1F0,3F0,3I0,1I0,3W0,1W0\n", {2, 0}},
           {"0F0,2F0,2I0,0I0,0W0,2W0\n1F0,3F0,3I0,1I0,1W0,3W0\n", {0, 2}}}) {
    const auto read = transforms::ParseOrders(text, "orders");
    ASSERT_TRUE(read.ok()) << read.status();
    const Played played = Play(Chain(shape), configuration, &read->orders);
    EXPECT_EQ(StagesReduced(played, simulator::RankClassId(0)), stages) << text;
  }
}

// What the last rank holds at the end, of so many microbatches more.
int64_t Growth(const char* schedule, const std::string& cost_model) {
  std::vector<int64_t> left;
  for (const int64_t microbatches : {8, 16}) {
    const Configuration configuration = {
        .plan = {.pp = 2, .microbatches = microbatches, .schedule = schedule},
        .cluster = "uniform:2@100Gbps",
        .cost_model = cost_model};
    const ir::Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 64 * microbatches}).value();
    const Played played = Play(step, configuration);
    const auto timeline = simulator::MemoryTimeline(played.program, played.trace);
    left.push_back(timeline[simulator::RankClassId(1)].back().total.count());
  }
  return left[1] - left[0];
}

TEST(Schedules, LeaveResultsAndNothingElse) {
  for (const char* cost_model : {"roofline", "distir"}) {
    const int64_t results = Growth("1f1b", cost_model);
    for (const char* schedule : {"gpipe", "zb-h1", "zb-h2", "interleaved-zero-bubble"}) {
      EXPECT_EQ(Growth(schedule, cost_model), results) << schedule << " by " << cost_model;
    }
  }
}

// Results go as they come, and updates take all gradients.
TEST(Schedules, ThatAreAsynchronousLeaveNothing) {
  for (const char* schedule : {"pipedream", "pipedream-2bw", "ampnet"}) {
    for (const char* cost_model : {"roofline", "distir"}) {
      SCOPED_TRACE(absl::StrCat(schedule, " by ", cost_model));
      const Configuration configuration = {
          .plan = {.hp = 2, .pp = 2, .microbatches = 4, .schedule = schedule},
          .cluster = "uniform:4@100Gbps",
          .cost_model = cost_model};
      ir::Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 256}).value();
      ASSERT_TRUE(transforms::AppendOptimizer(step, "sgd").ok());
      const Played played = Play(step, configuration);
      const auto timelines = simulator::MemoryTimeline(played.program, played.trace);
      for (int32_t r = 0; r < played.program.rank_count(); ++r) {
        const auto& timeline = timelines[simulator::RankClassId(r)];
        for (const simulator::MemoryUse& use : timeline) {
          for (const Bytes bytes : use.by_kind) ASSERT_GE(bytes, Bytes(0)) << r;
        }
        EXPECT_EQ(timeline.back().total, timeline.front().total) << r;
      }
    }
  }
}

}  // namespace
}  // namespace schedules_test_cc
}  // namespace orrery::lowering
