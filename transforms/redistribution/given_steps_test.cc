#include "transforms/redistribution/given_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_join.h"
#include "ir/text/text.h"
#include "transforms/redistribution/dtensor_test_util.h"
#include "transforms/redistribution/tensorcraft.h"

namespace orrery::transforms::redistribution {
namespace given_steps_test_cc {
namespace {

// S0,S0 to R,S0 on 2 x 8 ranks.
Problem Example() {
  return {.mesh = MeshOf({2, 8}),
          .dims = {8192, 1024},
          .itemsize = 4,
          .from = ShardingOf({"S0", "S0"}, 2),
          .to = ShardingOf({"R", "S0"}, 2)};
}

std::string TextOf(const PackedLayout& layout) {
  const Problem problem = Example();
  return ir::ToString(
      {.dtype = ir::DType::kF32, .dims = problem.dims, .sharding = layout.Unpack(2)}, problem.mesh);
}

absl::StatusOr<RedistributionPlan> Given(absl::string_view steps,
                                         const Problem& problem = Example()) {
  return GivenPlan(*DtensorOf(problem), problem, steps, TextOf);
}

std::string Error(absl::string_view steps) {
  const auto plan = Given(steps);
  EXPECT_FALSE(plan.ok()) << steps;
  return std::string(plan.status().message());
}

TEST(GivenSteps, ArePriced) {
  const auto plan = Given("all-to-all a1: 0->1; all-gather a0 : 0;all-to-all 1: 1->0;");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(StepsOf(*plan),
              testing::ElementsAre("all-to-all(1) from 0 to 1", "all-gather(0) from 0",
                                   "all-to-all(1) from 1 to 0"));
  EXPECT_DOUBLE_EQ(plan->cost, PlanOf(Example()).cost);
  EXPECT_EQ(plan->peak, 2097152);
  EXPECT_FALSE(plan->exact);
}

// What a collective works on, and the ranks of a group.
TEST(GivenSteps, HaveVolumesAndGroups) {
  const Problem problem = Example();
  const auto moves = DtensorOf(problem);
  const auto plan = Given("all-gather a1; all-gather a0; slice a1: 0");
  ASSERT_TRUE(plan.ok()) << plan.status();
  PackedLayout at(problem.from);
  std::vector<std::pair<double, int64_t>> volumes;
  for (const PlannedStep& step : plan->steps) {
    const StepVolume volume = moves->VolumeOf(at, step.step);
    volumes.emplace_back(volume.elements, volume.ranks);
    at = step.step.after;
  }
  using testing::Pair;
  EXPECT_THAT(volumes, testing::ElementsAre(Pair(4194304, 8), Pair(8388608, 2), Pair(0, 0)));
  EXPECT_EQ(VolumeOfCollective(MoveKind::kAllToAll, 4, 100, 100).elements, 400);
  EXPECT_EQ(VolumeOfCollective(MoveKind::kReblock, 4, 100, 90).elements, 400);
  EXPECT_EQ(VolumeOfCollective(MoveKind::kReduceScatter, 4, 100, 25).elements, 100);
  EXPECT_EQ(VolumeOfCollective(MoveKind::kAllReduce, 4, 100, 100).elements, 100);
  EXPECT_EQ(VolumeOfCollective(MoveKind::kSlice, 4, 100, 25).ranks, 0);
}

TEST(GivenSteps, SayWhichDoesNotApplyAndWhy) {
  EXPECT_EQ(
      Error("all-gather a1; slice a0: 1"),
      "step 2, 'slice a0: 1': does not apply to f32[8192@a0,1024]: a0 splits dimension 0, and "
      "has to replicate; wanted one of: slice a1: 0; slice a1: 1");
  EXPECT_EQ(Error("all-gather a0"),
            "step 1, 'all-gather a0': does not apply to f32[8192@a0.a1,1024]: a0 stands outside of "
            "a1 in dimension 0, and innermost axes leave first; wanted one of: all-gather a1: 0");
  EXPECT_THAT(Error("all-to-all a1: 1->0"), testing::HasSubstr("a1 splits dimension 0, and has to "
                                                               "split 1; wanted one of: "));
  EXPECT_THAT(Error("all-reduce a1"), testing::HasSubstr("and has to be partial; wanted one of: "));
  EXPECT_THAT(Error("all-gather a0.a1"), testing::HasSubstr("has no such step from there"));
  EXPECT_THAT(Error("gather a1"), testing::HasSubstr("no step from there is called so"));
}

TEST(GivenSteps, SayWhatCannotBeRead) {
  EXPECT_EQ(Error("slice a7: 1"),
            "step 1, 'slice a7: 1': got axis 'a7'; wanted each once of a0, a1 or its number");
  EXPECT_EQ(Error("all-gather a1.a1"),
            "step 1, 'all-gather a1.a1': got axis 'a1'; wanted each once of a0, a1 or its number");
  EXPECT_EQ(Error("slice a1: 2"),
            "step 1, 'slice a1: 2': got dimension 2 of a tensor of 2; wanted 0 to 1");
}

TEST(GivenSteps, SayWhereTheyEndAndWhatIsMissing) {
  EXPECT_EQ(Error("all-gather a1"),
            "the steps end in f32[8192@a0,1024]; wanted f32[8192@a1,1024]; try, behind them, "
            "'slice a1: 1; all-gather a0: 0; all-to-all a1: 1->0'");
  EXPECT_THAT(Error(""), testing::HasSubstr("the steps end in f32[8192@a0.a1,1024]; wanted"));
}

// Of several blocks that a step may mean, those are meant that lead to the target; names of the
// move set are steps, too.
TEST(GivenSteps, MeanWhatLeadsToTheTarget) {
  Problem problem = {.mesh = MeshOf({4, 2}), .dims = {64, 64}, .itemsize = 8, .from = {}, .to = {}};
  problem.from.Set(0, 2, ir::AxisList(0), 16);
  problem.to.Set(1, 2, ir::AxisList(0), 4);
  const auto moves = TensorcraftMoveSet::Create(problem, {}).value();
  const auto text = [](const PackedLayout&) { return std::string("there"); };
  for (const absl::string_view steps : {"all-to-all a0: 0->1", "all-to-all", "alltoall_0_1_4"}) {
    const auto plan = GivenPlan(*moves, problem, steps, text);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->steps.size(), 1u);
    EXPECT_EQ(plan->steps[0].step.after.block(1), 4);
  }
  EXPECT_FALSE(GivenPlan(*moves, problem, "alltoall_0_1_1", text).ok());
}

// What a planner finds can be given, and costs the same.
TEST(GivenSteps, TakePlansAsTheyAreWritten) {
  std::mt19937 random(20261128);
  int steps = 0;
  for (int i = 0; i < 200; ++i) {
    const Problem problem = RandomProblem(random, 4);
    const RedistributionPlan plan = PlanOf(problem);
    std::vector<std::string> texts;
    for (const PlannedStep& step : plan.steps) {
      texts.push_back(StepText(problem.mesh, step.step));
    }
    const auto given = GivenPlan(*DtensorOf(problem), problem, absl::StrJoin(texts, "; "),
                                 [](const PackedLayout&) { return std::string("there"); });
    ASSERT_TRUE(given.ok()) << given.status();
    EXPECT_LE(given->cost, plan.cost * (1 + 1e-12));
    EXPECT_EQ(given->steps.size(), plan.steps.size());
    steps += static_cast<int>(texts.size());
  }
  EXPECT_GT(steps, 200);
}

}  // namespace
}  // namespace given_steps_test_cc
}  // namespace orrery::transforms::redistribution
