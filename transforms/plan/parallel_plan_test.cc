#include "transforms/plan/parallel_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/random_plan_test_util.h"

namespace orrery::transforms {
namespace parallel_plan_test_cc {
namespace {

TEST(ParallelPlan, IsOfOneDeviceUnlessItSaysOtherwise) {
  const ParallelPlan plan;
  EXPECT_EQ(plan.ranks(), 1);
  EXPECT_EQ(plan.microbatches, 1);
  EXPECT_EQ(plan.zero, 0);
  EXPECT_EQ(plan.bucket_size, Bytes(26'214'400));  // PyTorch's 25 MiB
  EXPECT_EQ(plan.schedule.name(), "1f1b");
  EXPECT_FALSE(plan.by_pattern());
}

TEST(ParallelPlan, HasTheProductOfItsDegreesAsRanks) {
  EXPECT_EQ((ParallelPlan{.dp = 2, .hp = 3, .pp = 5, .cp = 7, .ep = 11}).ranks(), 2310);
  for (int64_t ParallelPlan::*degree : {&ParallelPlan::dp, &ParallelPlan::hp, &ParallelPlan::pp,
                                        &ParallelPlan::cp, &ParallelPlan::ep}) {
    ParallelPlan plan;
    plan.*degree = 6;
    EXPECT_EQ(plan.ranks(), 6);
  }
  // What is no degree counts for nothing.
  EXPECT_EQ((ParallelPlan{.microbatches = 8, .chunks = 2, .zero_group = 4}).ranks(), 1);
}

TEST(ParallelPlan, FollowsThePatternWhereItOrItsSequenceParallelismIsWanted) {
  EXPECT_FALSE(ParallelPlan().by_pattern());
  EXPECT_TRUE((ParallelPlan{.sharding = ShardingMethod::kMegatron}).by_pattern());
  EXPECT_TRUE((ParallelPlan{.sequence_parallel = SequenceParallel::kOn}).by_pattern());
  EXPECT_FALSE((ParallelPlan{.sequence_parallel = SequenceParallel::kOff}).by_pattern());
}

// A plan for each axis that differs from the default in it alone.
std::vector<ParallelPlan> OneOfEach() {
  std::vector<ParallelPlan> plans;
  for (const AxisInfo* axis : AllAxes()) plans.push_back(ExampleOf(*axis));
  return plans;
}

// Neither == nor the hash forgets an axis.
TEST(ParallelPlan, EachAxisTellsPlansApart) {
  std::vector<ParallelPlan> plans = OneOfEach();
  for (const ParallelPlan& plan : plans) EXPECT_NE(plan, ParallelPlan());
  plans.emplace_back();
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(plans));
}

// In which fields of plan_axes.def two plans differ, by their numbers.
std::vector<size_t> Differing(const ParallelPlan& a, const ParallelPlan& b) {
  const std::vector<bool> same = {
#define ORRERY_PLAN_AXIS(Name, field, type, value, file) a.field == b.field,
#include "transforms/plan/plan_axes.def"
#undef ORRERY_PLAN_AXIS
  };
  std::vector<size_t> differing;
  for (size_t i = 0; i < same.size(); ++i) {
    if (!same[i]) differing.push_back(i);
  }
  return differing;
}

// plan_axes.def and the records agree on the order: what record i reads and copies is field i.
TEST(ParallelPlan, RecordsStandInTheOrderOfTheFields) {
  const std::vector<ParallelPlan> plans = OneOfEach();
  ParallelPlan all;
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_THAT(Differing(plans[i], {}), testing::ElementsAre(i)) << AllAxes()[i]->flag;
    AllAxes()[i]->copy(plans[i], all);
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    ParallelPlan copy;
    AllAxes()[i]->copy(all, copy);
    EXPECT_EQ(copy, plans[i]) << AllAxes()[i]->flag;
  }
}

}  // namespace
}  // namespace parallel_plan_test_cc
}  // namespace orrery::transforms
