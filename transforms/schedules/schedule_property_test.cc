#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "transforms/schedules/testing/slots.h"
#include "transforms/schedules/text.h"

// What holds for every line of schedules.def and every shape. A new schedule is tested here
// without an edit.

namespace orrery::transforms {
namespace schedule_property_test_cc {
namespace {

std::string Name(const PipelineShape& shape) {
  return absl::StrCat(shape.ranks, " ranks, ", shape.microbatches, " microbatches, ", shape.chunks,
                      " chunks");
}

class EverySchedule : public testing::TestWithParam<const PipelineSchedule*> {
 protected:
  const PipelineSchedule& schedule() const { return *GetParam(); }

  // Shapes that there are orders for, small and large.
  std::vector<PipelineShape> Shapes() const {
    std::vector<PipelineShape> shapes;
    const auto add = [&](int32_t ranks, int32_t microbatches, int32_t chunks) {
      const PipelineShape shape = schedule().ShapeOf(ranks, microbatches, chunks);
      if (schedule().CheckShape(shape).ok()) shapes.push_back(shape);
    };
    for (int32_t chunks = 1; chunks <= (schedule().chunks == 0 ? 4 : 1); ++chunks) {
      for (int32_t ranks = 1; ranks <= 9; ++ranks) {
        for (int32_t microbatches = 1; microbatches <= 19; ++microbatches) {
          add(ranks, microbatches, chunks);
        }
      }
      add(1, 512, chunks);
      add(64, 3, chunks);
      add(24, 96, chunks);
    }
    return CasesToWalk(shapes);
  }

  // Random durations, so that no property hangs on steps of one length.
  StepDurations RandomDurations() {
    std::uniform_int_distribution<int64_t> length(1, 9);
    StepDurations durations;
    durations.forward = length(random_);
    durations.input_gradient = length(random_);
    durations.weight_gradient = length(random_);
    durations.send = length(random_) - 1;
    return durations;
  }

  std::mt19937 random_{20240229};
};

TEST_P(EverySchedule, SaysWhatItIsAndWhereItComesFrom) {
  EXPECT_FALSE(schedule().name.empty());
  EXPECT_FALSE(schedule().summary.empty());
  EXPECT_FALSE(schedule().source.empty());
  ASSERT_NE(schedule().orders, nullptr);
  EXPECT_TRUE(schedule().placement == StagePlacement::kLoop || schedule().chunks == 2);
}

TEST_P(EverySchedule, RunsEachStepOnceAndKeepsEveryDependency) {
  const std::vector<PipelineShape> shapes = Shapes();
  EXPECT_GE(shapes.size(), CasesToWalk(20u));
  for (const PipelineShape& shape : shapes) {
    const absl::Status status =
        VerifyOrders(schedule().OrdersOf(shape), schedule().placement, shape);
    EXPECT_TRUE(status.ok()) << Name(shape) << ": " << status;
  }
}

// On one rank nobody waits for a part of a backward, and there is no pipeline that several stages
// would fill.
TEST_P(EverySchedule, OfOneRankHasOneStageAndPartsNoBackward) {
  for (int32_t microbatches = 1; microbatches <= 19; ++microbatches) {
    const PipelineShape shape = schedule().ShapeOf(1, microbatches);
    if (!schedule().CheckShape(shape).ok() || schedule().runs_pairs) continue;
    EXPECT_EQ(shape.chunks, 1);
    const RankOrders orders = schedule().OrdersOf(shape);
    for (const ScheduleStep& step : orders[0]) {
      EXPECT_TRUE(step.kind == StepKind::kForward || step.kind == StepKind::kBackward);
    }
    if (microbatches > 1) continue;
    EXPECT_EQ(PrintOrders(orders), "0F0,0B0\n");
  }
  // Several stages where one says so: whole backwards, too.
  const PipelineShape two = schedule().ShapeOf(1, 4, 2);
  if (two.chunks == 1 || !schedule().CheckShape(two).ok() || schedule().runs_pairs) return;
  const RankOrders orders = schedule().OrdersOf(two);
  EXPECT_TRUE(VerifyOrders(orders, schedule().placement, two).ok());
  EXPECT_EQ(orders[0].size(), 16u);
}

TEST_P(EverySchedule, RefusesWhatItCannotOrderAsInfeasible) {
  for (const PipelineShape& shape :
       {PipelineShape{.ranks = 0, .chunks = std::max(1, schedule().chunks)},
        PipelineShape{.microbatches = 0, .chunks = std::max(1, schedule().chunks)},
        PipelineShape{.chunks = schedule().chunks == 0 ? 0 : schedule().chunks + 1}}) {
    const auto infeasible = AsInfeasible(schedule().CheckShape(shape));
    ASSERT_TRUE(infeasible.has_value()) << Name(shape);
    EXPECT_EQ(infeasible->reason, InfeasibleReason::kSchedule);
    EXPECT_THAT(infeasible->detail, testing::HasSubstr("wanted"));
  }
}

// Whatever steps last: no rank is done before its own work, nor before one microbatch has been
// through the pipeline and back.
TEST_P(EverySchedule, IsNotShorterThanWorkAndCriticalPath) {
  for (const PipelineShape& shape : Shapes()) {
    const StepDurations steps = RandomDurations();
    const RankOrders orders = schedule().OrdersOf(shape);
    const Timing timing = TimeOrders(orders, schedule().placement, shape, steps);
    const int32_t pipelines = Pipelines(schedule().placement);
    const int64_t depth = shape.stages() / pipelines;
    const int64_t first = steps.forward + steps.input_gradient;
    EXPECT_GE(timing.makespan, depth * first + 2 * steps.send * (shape.ranks - 1)) << Name(shape);
    int64_t most = 0;
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      int64_t work = 0;
      for (const ScheduleStep& step : orders[rank]) work += steps.Of(step.kind);
      EXPECT_EQ(timing.idle[rank], timing.makespan - work) << Name(shape);
      EXPECT_GE(timing.idle[rank], timing.idle_inside[rank]);
      EXPECT_GE(timing.idle_inside[rank], 0);
      most = std::max(most, work);
    }
    EXPECT_GE(timing.makespan, most);
    // Every rank has the same to do, but for where an odd microbatch goes.
    const int64_t work = int64_t{shape.microbatches} * shape.chunks / pipelines *
                         (steps.forward + steps.Of(StepKind::kBackward));
    EXPECT_EQ(most, work) << Name(shape);
  }
}

// Longer sends never make a step earlier, and no rank runs two steps at a time.
TEST_P(EverySchedule, TimesGrowWithSendsAndStepsFollowEachOther) {
  for (const PipelineShape& shape : Shapes()) {
    StepDurations steps = RandomDurations();
    const RankOrders orders = schedule().OrdersOf(shape);
    const Timing slow = TimeOrders(orders, schedule().placement, shape, steps);
    steps.send = 0;
    const Timing fast = TimeOrders(orders, schedule().placement, shape, steps);
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      int64_t free = 0;
      for (size_t i = 0; i < orders[rank].size(); ++i) {
        ASSERT_LE(fast.steps[rank][i].start, slow.steps[rank][i].start) << Name(shape);
        ASSERT_GE(fast.steps[rank][i].start, free) << Name(shape);
        free = fast.steps[rank][i].finish;
        ASSERT_EQ(free - fast.steps[rank][i].start, steps.Of(orders[rank][i].kind));
      }
    }
  }
}

TEST_P(EverySchedule, DoesNotRunEarlierThanPossible) {
  for (const PipelineShape& shape : Shapes()) {
    const RankOrders orders = schedule().OrdersOf(shape);
    RankOrders earliest = orders;
    AssignSlots(earliest, schedule().placement, shape);
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      for (size_t i = 0; i < orders[rank].size(); ++i) {
        ASSERT_LE(earliest[rank][i].slot, orders[rank][i].slot) << Name(shape);
      }
    }
  }
}

TEST_P(EverySchedule, KeepsAtLeastOneAndAtMostAllActivationsLive) {
  for (const PipelineShape& shape : Shapes()) {
    const RankOrders orders = schedule().OrdersOf(shape);
    for (const auto& order : orders) {
      EXPECT_GE(PeakLive(order), order.empty() ? 0 : 1) << Name(shape);
      EXPECT_LE(PeakLive(order), int64_t{shape.microbatches} * shape.chunks) << Name(shape);
    }
  }
}

TEST_P(EverySchedule, IsReadAsItIsWritten) {
  for (const PipelineShape& shape : Shapes()) {
    if (shape.microbatches < 2 || shape.ranks < 2) continue;  // one position could be any
    const RankOrders orders = schedule().OrdersOf(shape);
    const absl::StatusOr<ParsedOrders> parsed = ParseOrders(PrintOrders(orders));
    ASSERT_TRUE(parsed.ok()) << Name(shape) << ": " << parsed.status();
    EXPECT_EQ(PrintOrders(parsed->orders), PrintOrders(orders));
    EXPECT_EQ(parsed->placement, schedule().placement) << Name(shape);
    EXPECT_EQ(Name(parsed->shape), Name(shape));
  }
}

TEST_P(EverySchedule, IsAPureFunction) {
  const std::vector<PipelineShape> shapes = Shapes();
  for (size_t i = 0; i < shapes.size(); i += 7) {
    EXPECT_EQ(schedule().OrdersOf(shapes[i]), schedule().OrdersOf(shapes[i])) << Name(shapes[i]);
  }
}

TEST_P(EverySchedule, KeepsAtLeastOneWeightVersion) {
  ASSERT_NE(schedule().weight_versions, nullptr);
  for (const PipelineShape& shape : Shapes()) {
    for (int32_t stage = 0; stage < shape.stages(); ++stage) {
      const int32_t versions = schedule().weight_versions(shape, stage);
      EXPECT_GE(versions, 1);
      EXPECT_TRUE(versions == 1 || schedule().asynchronous) << Name(shape);
    }
  }
}

// Whatever is done to one step of a good order, the verifier must see it.
TEST_P(EverySchedule, NoMutationPassesTheVerifier) {
  PipelineShape shape = schedule().ShapeOf(4, 8);
  const auto verify = [&](const RankOrders& orders) {
    return VerifyOrders(orders, schedule().placement, shape);
  };
  const RankOrders good = schedule().OrdersOf(shape);
  for (size_t rank = 0; rank < good.size(); ++rank) {
    for (size_t i = 0; i < good[rank].size(); ++i) {
      const auto at = static_cast<ptrdiff_t>(i);
      RankOrders dropped = good;
      dropped[rank].erase(dropped[rank].begin() + at);
      EXPECT_FALSE(verify(dropped).ok());

      RankOrders doubled = good;
      doubled[rank].insert(doubled[rank].begin() + at, good[rank][i]);
      EXPECT_FALSE(verify(doubled).ok());

      RankOrders other_kind = good;
      StepKind& kind = other_kind[rank][i].kind;
      kind = kind == StepKind::kForward ? StepKind::kBackward : StepKind::kForward;
      EXPECT_FALSE(verify(other_kind).ok());

      RankOrders other_stage = good;
      other_stage[rank][i].stage = (good[rank][i].stage + 1) % shape.stages();
      EXPECT_FALSE(verify(other_stage).ok());

      if (i == 0) continue;
      RankOrders swapped = good;
      std::swap(swapped[rank][i - 1], swapped[rank][i]);
      EXPECT_FALSE(verify(swapped).ok());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, EverySchedule, testing::ValuesIn(AllSchedules()),
                         [](const testing::TestParamInfo<const PipelineSchedule*>& info) {
                           std::string name(info.param->name);
                           if (name.front() >= '0' && name.front() <= '9') name = "s" + name;
                           return absl::StrReplaceAll(name, {{"-", "_"}});
                         });

}  // namespace
}  // namespace schedule_property_test_cc
}  // namespace orrery::transforms
