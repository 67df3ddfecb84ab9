#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "transforms/schedules/schedule.h"

// What holds for every line of schedules.def and every shape. A new schedule is tested here
// without an edit.

namespace orrery::transforms {
namespace {

std::vector<PipelineShape> Shapes() {
  std::vector<PipelineShape> shapes;
  for (int32_t stages = 1; stages <= 9; ++stages) {
    for (int32_t microbatches = 1; microbatches <= 17; ++microbatches) {
      shapes.push_back({.stages = stages, .microbatches = microbatches});
    }
  }
  shapes.push_back({.stages = 1, .microbatches = 512});
  shapes.push_back({.stages = 64, .microbatches = 3});
  shapes.push_back({.stages = 24, .microbatches = 96});
  return shapes;
}

std::string Name(const PipelineShape& shape) {
  return absl::StrCat(shape.stages, " stages, ", shape.microbatches, " microbatches");
}

class EverySchedule : public testing::TestWithParam<const PipelineSchedule*> {};

TEST_P(EverySchedule, SaysWhatItIsAndWhereItComesFrom) {
  EXPECT_FALSE(GetParam()->name.empty());
  EXPECT_FALSE(GetParam()->summary.empty());
  EXPECT_FALSE(GetParam()->source.empty());
}

TEST_P(EverySchedule, RunsEachStepOnceAndKeepsEveryDependency) {
  for (const PipelineShape& shape : Shapes()) {
    const absl::Status status = VerifyOrders(GetParam()->orders(shape), shape);
    EXPECT_TRUE(status.ok()) << Name(shape) << ": " << status;
  }
}

// The last stage has nothing to do for p-1 slots, then 2m steps, the last of which is a backward
// that p-1 stages still wait for, one after the other.
TEST_P(EverySchedule, IsNotShorterThanTheCriticalPath) {
  for (const PipelineShape& shape : Shapes()) {
    EXPECT_GE(UnitMakespan(GetParam()->orders(shape)),
              2 * shape.microbatches + 2 * (shape.stages - 1))
        << Name(shape);
  }
}

TEST_P(EverySchedule, DoesNotDeadlockNorRunEarlierThanPossible) {
  for (const PipelineShape& shape : Shapes()) {
    const StageOrders orders = GetParam()->orders(shape);
    StageOrders earliest = orders;
    AssignSlots(earliest);
    for (size_t stage = 0; stage < orders.size(); ++stage) {
      for (size_t i = 0; i < orders[stage].size(); ++i) {
        ASSERT_LE(earliest[stage][i].slot, orders[stage][i].slot) << Name(shape);
      }
    }
  }
}

TEST_P(EverySchedule, KeepsAtLeastOneAndAtMostAllMicrobatchesLive) {
  for (const PipelineShape& shape : Shapes()) {
    for (const auto& order : GetParam()->orders(shape)) {
      EXPECT_GE(PeakLiveMicrobatches(order), 1) << Name(shape);
      EXPECT_LE(PeakLiveMicrobatches(order), shape.microbatches) << Name(shape);
    }
  }
}

TEST_P(EverySchedule, IsAPureFunction) {
  const PipelineShape shape = {.stages = 5, .microbatches = 7};
  EXPECT_EQ(GetParam()->orders(shape), GetParam()->orders(shape));
}

TEST_P(EverySchedule, KeepsAtLeastOneWeightVersion) {
  ASSERT_NE(GetParam()->weight_versions, nullptr);
  for (const PipelineShape& shape : Shapes()) {
    for (int32_t stage = 0; stage < shape.stages; ++stage) {
      const int32_t versions = GetParam()->weight_versions(shape, stage);
      EXPECT_GE(versions, 1);
      EXPECT_TRUE(versions == 1 || GetParam()->asynchronous) << Name(shape);
    }
  }
}

// Whatever is done to one step of a good order, the verifier must see it.
TEST_P(EverySchedule, NoMutationPassesTheVerifier) {
  const PipelineShape shape = {.stages = 3, .microbatches = 4};
  const StageOrders good = GetParam()->orders(shape);
  for (size_t stage = 0; stage < good.size(); ++stage) {
    for (size_t i = 0; i < good[stage].size(); ++i) {
      const auto at = static_cast<ptrdiff_t>(i);
      StageOrders dropped = good;
      dropped[stage].erase(dropped[stage].begin() + at);
      EXPECT_FALSE(VerifyOrders(dropped, shape).ok());

      StageOrders doubled = good;
      doubled[stage].insert(doubled[stage].begin() + at, good[stage][i]);
      EXPECT_FALSE(VerifyOrders(doubled, shape).ok());

      StageOrders other_kind = good;
      StepKind& kind = other_kind[stage][i].kind;
      kind = kind == StepKind::kForward ? StepKind::kBackward : StepKind::kForward;
      EXPECT_FALSE(VerifyOrders(other_kind, shape).ok());

      if (i == 0) continue;
      StageOrders swapped = good;
      std::swap(swapped[stage][i - 1], swapped[stage][i]);
      EXPECT_FALSE(VerifyOrders(swapped, shape).ok());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, EverySchedule, testing::ValuesIn(AllSchedules()),
                         [](const testing::TestParamInfo<const PipelineSchedule*>& info) {
                           return absl::StrReplaceAll(std::string(info.param->name), {{"-", "_"}});
                         });

}  // namespace
}  // namespace orrery::transforms
