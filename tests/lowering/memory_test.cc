#include "simulator/report/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "ir/models/mlp.h"
#include "simulator/engine/play.h"
#include "support/sanitized_test_util.h"
#include "tests/lowering/memory_oracle.h"
#include "tests/lowering/played.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/schedules/orders.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

namespace orrery::lowering {
namespace memory_test_cc {
namespace {

using simulator::RankClassId;
using transforms::PipelineSchedule;

struct Shape {
  int64_t dp = 1, hp = 1, pp = 1, microbatches = 1, chunks = 1;
  bool split = false;
  bool fp8_mixed = false;
};

// Parallelizes, lowers and plays `function` with everything on one stream a rank; gives the orders
// in which its ranks run.
Played PlayBlocking(ir::Function function, const PipelineSchedule& schedule, const Shape& shape,
                    transforms::RankOrders& orders) {
  Played played;
  if (shape.split) {
    EXPECT_TRUE(transforms::SplitBackward(function).ok());
  }
  const transforms::ParallelPlan plan = {
      .dp = shape.dp,
      .hp = shape.hp,
      .pp = shape.pp,
      .microbatches = shape.microbatches,
      .dtype = shape.fp8_mixed ? transforms::StepDType::kF8Mixed : transforms::StepDType::kModel};
  played.step = transforms::ParallelTransform3d(function, transforms::ByFlops(plan),
                                                {.chunks = static_cast<int32_t>(shape.chunks),
                                                 .placement = schedule.placement,
                                                 .split_backward = shape.split,
                                                 .updates_each_microbatch = schedule.asynchronous})
                    .value();
  const cluster::Cluster cluster = cluster::ParseCluster("uniform:16@200Gbps").value();
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  LoweringOptions lowering;
  lowering.blocking = true;
  std::vector<LoweredStep> lowered;
  played.program = Lower({.step = played.step,
                          .schedule = schedule,
                          .cluster = cluster,
                          .cost_model = *cost_model,
                          .options = lowering,
                          .lowered = &lowered})
                       .value();
  orders.assign(static_cast<size_t>(shape.pp), {});
  for (const LoweredStep& row : lowered) {
    const int32_t rank = played.step.ranks[static_cast<size_t>(row.step.stage)];
    orders[static_cast<size_t>(rank)].push_back(row.step);
  }
  played.trace = simulator::Play(played.program).value();
  played.report = simulator::Summarize(played.program, played.trace);
  return played;
}

Bytes ResidentOf(const simulator::Program& program, RankClassId rank) {
  Bytes sum;
  for (int kind = 0; kind < simulator::kMemoryKindCount; ++kind) {
    sum += program.resident(rank, static_cast<simulator::MemoryKind>(kind));
  }
  return sum;
}

bool RunsPairs(const transforms::RankOrders& orders) {
  for (const auto& order : orders) {
    for (const transforms::ScheduleStep& step : order) {
      if (step.with_next) return true;
    }
  }
  return false;
}

// Random steps under every schedule: what the program says a rank holds at its peak is what brute
// force finds.
TEST(Memory, IsWhatBruteForceFinds) {
  uint32_t seed = 0;
  int compared = 0;
  for (const PipelineSchedule* schedule : transforms::AllSchedules()) {
    if (schedule->slices_sequence) continue;  // for slices of sequences alone: see slices_test
    for (int round = 0; round < CasesToWalk(12); ++round, ++seed) {
      const bool two_way = schedule->placement == transforms::StagePlacement::kTwoWay;
      Shape shape = {.dp = 1 + seed / 6 % 2,
                     .hp = 1 + seed / 3 % 2,
                     .pp = two_way ? 2 : 1 + seed % 3,
                     .chunks = schedule->chunks == 0 ? 2 + seed % 2 : schedule->chunks,
                     .split = seed % 4 != 0};
      shape.microbatches = shape.pp * (2 + seed % 3);
      const ir::Function step = semantics::RandomStep(
          {.seed = seed,
           .layers = static_cast<int>(shape.pp * shape.chunks * (1 + seed % 2)),
           .batch = shape.dp * shape.microbatches * 2,
           .width_unit = static_cast<int>(shape.hp)},
          seed % 2 == 0 ? "momentum" : "adam");
      transforms::RankOrders orders;
      const Played played = PlayBlocking(step, *schedule, shape, orders);
      if (RunsPairs(orders)) continue;  // their kernels go by turns, as durations have it
      const int64_t every =
          !schedule->asynchronous ? 0
          : schedule->microbatches_an_update == nullptr
              ? 1
              : schedule->microbatches_an_update(schedule->ShapeOf(
                    static_cast<int32_t>(shape.pp), static_cast<int32_t>(shape.microbatches),
                    static_cast<int32_t>(shape.chunks)));
      SCOPED_TRACE(absl::StrCat("seed=", seed, " ", schedule->name, " pp=", shape.pp,
                                " chunks=", shape.chunks, " split=", shape.split));
      const auto timelines = simulator::MemoryTimeline(played.program, played.trace);
      for (const auto& timeline : timelines.rows()) {
        for (const Bytes bytes : timeline.back().by_kind) EXPECT_GE(bytes, Bytes(0));
      }
      const std::vector<int64_t> peaks = BruteForcePeaks(played.step, orders, every);
      for (int32_t r = 0; r < played.program.rank_count(); ++r) {
        const RankClassId id(r);
        const Bytes peak = played.report.ranks[id].memory.total - ResidentOf(played.program, id);
        EXPECT_EQ(peak.count(), peaks[static_cast<size_t>(played.program.rank(id).stage)]) << r;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, CasesToWalk(200));
}

// Of a step with 8-bit copies, which backward reads instead of what they were made from.
TEST(Memory, IsWhatBruteForceFindsWithCopies) {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zbv", "chimera"}) {
    for (const int64_t hp : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(name, " hp=", hp));
      const PipelineSchedule& schedule = *transforms::FindSchedule(name).value();
      const Shape shape = {.dp = 2,
                           .hp = hp,
                           .pp = 2,
                           .microbatches = 4,
                           .chunks = schedule.chunks == 0 ? 2 : schedule.chunks,
                           .split = absl::string_view(name).substr(0, 2) == "zb",
                           .fp8_mixed = true};
      ir::Function step =
          ir::Mlp({.layers = 8, .dim = 32, .batch = 512, .dtype = ir::DType::kBF16}).value();
      ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
      transforms::RankOrders orders;
      const Played played = PlayBlocking(step, schedule, shape, orders);
      const std::vector<int64_t> peaks = BruteForcePeaks(played.step, orders, 0);
      for (int32_t r = 0; r < played.program.rank_count(); ++r) {
        const RankClassId id(r);
        const Bytes peak = played.report.ranks[id].memory.total - ResidentOf(played.program, id);
        EXPECT_EQ(peak.count(), peaks[static_cast<size_t>(played.program.rank(id).stage)]) << r;
      }
    }
  }
}

// An MLP of equal stages, each of which keeps as much of a microbatch.
Played PlayMlp(const std::string& name, int64_t pp, int64_t microbatches) {
  const PipelineSchedule& schedule = *transforms::FindSchedule(name).value();
  const int64_t chunks = schedule.chunks == 0 ? 2 : schedule.chunks;
  ir::Function step =
      ir::Mlp({.layers = 4 * pp * chunks, .dim = 64, .batch = 1000 * microbatches}).value();
  EXPECT_TRUE(transforms::AppendOptimizer(step, "sgd").ok());
  bool split = false;
  for (const auto& order : schedule.OrdersOf(schedule.ShapeOf(static_cast<int32_t>(pp),
                                                              static_cast<int32_t>(microbatches),
                                                              static_cast<int32_t>(chunks)))) {
    for (const auto& s : order) split |= s.kind == transforms::StepKind::kInputGradient;
  }
  transforms::RankOrders orders;
  return PlayBlocking(step, schedule,
                      {.pp = pp, .microbatches = microbatches, .chunks = chunks, .split = split},
                      orders);
}

// What a stage keeps of one microbatch, by the functions: what forward saves, once.
int64_t KeptByStage(const transforms::PipelinedStep& step, size_t stage) {
  int64_t bytes = 0;
  for (const ir::Output& output : step.stages[stage].forward.function.outputs()) {
    if (output.role != ir::OutputRole::kSaved) continue;
    bytes += ir::SizeOf(step.stages[stage].forward.function.type(output.value)).count();
  }
  return bytes;
}

int64_t ActivationsOf(const Played& played, int32_t rank) {
  return played.report.ranks[RankClassId(rank)]
      .memory.of(simulator::MemoryKind::kActivations)
      .count();
}

// The most that is left by forward and not yet read by backward at a time, by the order of a rank.
int64_t MostKept(const transforms::PipelinedStep& step,
                 const std::vector<transforms::ScheduleStep>& order) {
  int64_t now = 0, most = 0;
  for (const transforms::ScheduleStep& s : order) {
    if (s.kind == transforms::StepKind::kInputGradient) continue;
    const int64_t kept = KeptByStage(step, static_cast<size_t>(s.stage));
    now += s.kind == transforms::StepKind::kForward ? kept : -kept;
    most = std::max(most, now);
  }
  return most;
}

// GPipe keeps all m microbatches, 1F1B p - r on rank r, those with several stages a rank or
// backwards in two parts as many as their order has live; beside them there is only what one
// backward works on, which is less than a stage keeps. (The rank of the last stage collects results
// besides.)
TEST(Memory, ActivationsAreThoseOfTheLiveMicrobatches) {
  for (const std::string name :
       {"gpipe", "1f1b", "interleaved", "looped-bfs", "interleaved-zero-bubble"}) {
    for (const int64_t pp : {2, 4}) {
      for (const int64_t microbatches : {4, 8}) {
        SCOPED_TRACE(absl::StrCat(name, " pp=", pp, " m=", microbatches));
        const Played played = PlayMlp(name, pp, microbatches);
        const transforms::RankOrders orders = semantics::OrdersOf(name, played.step);
        for (int32_t r = 0; r + 1 < pp; ++r) {
          const auto& order = orders[static_cast<size_t>(r)];
          if (name == "gpipe") {
            EXPECT_EQ(transforms::PeakLive(order), microbatches);
          } else if (name == "1f1b") {
            EXPECT_EQ(transforms::PeakLive(order), std::min(pp - r, microbatches));
          }
          const int64_t beside = ActivationsOf(played, r) - MostKept(played.step, order);
          EXPECT_GE(beside, 0) << r;
          EXPECT_LE(beside, KeptByStage(played.step, 1)) << r;
        }
      }
    }
  }
}

// One more microbatch is as much more on each rank of GPipe, and nothing of 1F1B, where the next
// rank keeps one less. (The first rank collects the gradients of the data besides, the last one
// results.)
TEST(Memory, GrowsWithMicrobatchesUnderGpipeOnly) {
  const Played five = PlayMlp("gpipe", 4, 5), six = PlayMlp("gpipe", 4, 6);
  const Played few = PlayMlp("1f1b", 4, 8), more = PlayMlp("1f1b", 4, 12);
  for (int32_t r = 1; r < 3; ++r) {
    const int64_t kept = KeptByStage(five.step, static_cast<size_t>(r));
    EXPECT_EQ(ActivationsOf(six, r) - ActivationsOf(five, r), kept) << r;
    EXPECT_EQ(ActivationsOf(more, r), ActivationsOf(few, r)) << r;
  }
  EXPECT_EQ(ActivationsOf(few, 1) - ActivationsOf(few, 2), KeptByStage(few.step, 1));
}

}  // namespace
}  // namespace memory_test_cc
}  // namespace orrery::lowering
