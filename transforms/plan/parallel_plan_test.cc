#include "transforms/plan/parallel_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "transforms/plan/axis.h"

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
  EXPECT_TRUE(plan.shards_by_cost());
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

TEST(ParallelPlan, FollowsThePatternOnlyWithoutSequenceParallelism) {
  EXPECT_FALSE((ParallelPlan{.sharding = ShardingMethod::kMegatron}).shards_by_cost());
  EXPECT_TRUE((ParallelPlan{.sharding = ShardingMethod::kMegatron, .sequence_parallel = true})
                  .shards_by_cost());
  EXPECT_TRUE((ParallelPlan{.sequence_parallel = true}).shards_by_cost());
}

// A plan for each axis that differs from the default in it alone.
std::vector<ParallelPlan> OneOfEach() {
  return {{.dp = 2},
          {.hp = 2},
          {.pp = 2},
          {.cp = 2},
          {.ep = 2},
          {.slices = {.balanced = true}},
          {.microbatches = 2},
          {.schedule = "gpipe"},
          {.schedule_file = "orders.csv"},
          {.chunks = 2},
          {.zero = 2},
          {.zero_group = 2},
          {.prefetch = 2},
          {.recompute = {.record = &kSelectiveRecompute}},
          {.offload = ParseOffloadPolicy("activations").value()},
          {.offload_prefetch = 2},
          {.sharding = ShardingMethod::kMegatron},
          {.sequence_parallel = true},
          {.context_attention = ContextAttention::kRing},
          {.pins = {{"w", 1}}},
          {.stages_by = StagesBy::kLayers},
          {.split_at = "h"},
          {.layers_per_stage = {1}},
          {.order = "pp,hp,dp"},
          {.blocking = true},
          {.bucket_size = Bytes(1)},
          {.algorithm = cost_models::CollectiveChoice::Parse("ring").value()},
          {.dtype = StepDType::kBF16}};
}

// Neither == nor the hash forgets an axis.
TEST(ParallelPlan, EachAxisTellsPlansApart) {
  std::vector<ParallelPlan> plans = OneOfEach();
  EXPECT_EQ(plans.size(), AllAxes().size());
  for (const ParallelPlan& plan : plans) EXPECT_NE(plan, ParallelPlan());
  plans.emplace_back();
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(plans));
}

// plan_axes.def and the records agree on the order: copying with record i alone makes plan i.
TEST(ParallelPlan, RecordsStandInTheOrderOfTheFields) {
  const std::vector<ParallelPlan> plans = OneOfEach();
  ASSERT_EQ(plans.size(), AllAxes().size());
  for (size_t i = 0; i < plans.size(); ++i) {
    for (size_t j = 0; j < plans.size(); ++j) {
      ParallelPlan copy;
      AllAxes()[j]->copy(plans[i], copy);
      EXPECT_EQ(copy, i == j ? plans[i] : ParallelPlan())
          << "axis " << AllAxes()[j]->flag << ", plan " << i;
    }
  }
}

}  // namespace
}  // namespace parallel_plan_test_cc
}  // namespace orrery::transforms
