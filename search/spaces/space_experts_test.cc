#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "search/spaces/space_test_util.h"

// Degrees of expert parallelism in a search that leaves degrees open.

namespace orrery::search {
namespace space_experts_test_cc {
namespace {

using ::testing::ElementsAre;
using transforms::ParallelPlan;

// "dp.hp.pp.ep", one a plan that shares out experts.
std::vector<std::string> ExpertDegrees(const Space& space, const SpaceSize& size) {
  std::vector<std::string> list;
  for (const ParallelPlan& plan : PlansOf(space, size)) {
    if (plan.ep == 1) continue;
    list.push_back(absl::StrCat(plan.dp, ".", plan.hp, ".", plan.pp, ".", plan.ep));
  }
  return list;
}

// As people train mixtures: what divides the experts and a replica's samples.
TEST(Enumerate, VariesExpertParallelismOfAMixture) {
  const Lists lists = {{"pp", "1"}, {"micro-batches", "1"}, {"zero", "1"}};
  SpaceSize size = {.devices = 16, .batch_size = 8, .experts = 4};
  EXPECT_THAT(ExpertDegrees(SavingSpaceOf(lists), size),
              ElementsAre("1.4.1.4", "1.8.1.2", "2.2.1.4", "2.4.1.2", "4.2.1.2"));
  EXPECT_THAT(ExpertDegrees(SpaceOf(lists), size), testing::IsEmpty()) << "a preset's";
  size.experts = 0;
  EXPECT_THAT(ExpertDegrees(SavingSpaceOf(lists), size), testing::IsEmpty());
}

TEST(Enumerate, SharesExpertsAndProductsInOneNode) {
  const SpaceSize size = {.devices = 16, .batch_size = 16, .experts = 16, .devices_a_node = 4};
  EXPECT_THAT(
      ExpertDegrees(SavingSpaceOf({{"pp", "1"}, {"micro-batches", "1"}, {"zero", "1"}}), size),
      ElementsAre("1.1.1.16", "2.1.1.8", "4.1.1.4", "4.2.1.2", "8.1.1.2"));
}

// Plans without it are those of a model that has none, in their order.
TEST(Enumerate, KeepsAllOthersBesideExpertParallelism) {
  const SpaceSize size = {.devices = 8, .batch_size = 16};
  const SpaceSize mixture = {.devices = 8, .batch_size = 16, .experts = 8};
  std::vector<ParallelPlan> plans = PlansOf(SavingSpaceOf({}), mixture);
  std::erase_if(plans, [](const ParallelPlan& plan) { return plan.ep > 1; });
  EXPECT_EQ(plans, PlansOf(SavingSpaceOf({}), size));
  EXPECT_EQ(PlansOf(SavingSpaceOf({{"ep", "1"}}), mixture), PlansOf(SavingSpaceOf({}), size));
}

// A copy of all other weights on each rank along ep: nobody trains so with all of their state.
TEST(Enumerate, ShardsStateWhereItSharesOutExperts) {
  const SpaceSize size = {.devices = 4, .batch_size = 8, .experts = 2};
  Lists lists = {{"hp", "1"}, {"pp", "1"}, {"micro-batches", "2"}};
  EXPECT_THAT(Texts(SavingSpaceOf(lists), size),
              ElementsAre("--dp 2 --hp 1 --pp 1 --ep 2 --micro-batches 2 --schedule 1f1b --zero 1",
                          "--dp 2 --hp 1 --pp 1 --ep 2 --micro-batches 2 --schedule 1f1b --zero 3",
                          "--dp 4 --hp 1 --pp 1 --micro-batches 2 --schedule 1f1b",
                          "--dp 4 --hp 1 --pp 1 --micro-batches 2 --schedule 1f1b --zero 1",
                          "--dp 4 --hp 1 --pp 1 --micro-batches 2 --schedule 1f1b --zero 3"));
  lists.emplace_back("ep", "2");  // listed, it comes with all of them
  EXPECT_THAT(
      Texts(SavingSpaceOf(lists), size),
      ElementsAre("--dp 2 --hp 1 --pp 1 --ep 2 --micro-batches 2 --schedule 1f1b",
                  "--dp 2 --hp 1 --pp 1 --ep 2 --micro-batches 2 --schedule 1f1b --zero 1",
                  "--dp 2 --hp 1 --pp 1 --ep 2 --micro-batches 2 --schedule 1f1b --zero 3"));
}

TEST(Enumerate, TakesTheDegreesOfExpertsThatAreListed) {
  EXPECT_THAT(
      ExpertDegrees(
          SavingSpaceOf(
              {{"hp", "1"}, {"pp", "1"}, {"ep", "1,3"}, {"micro-batches", "1"}, {"zero", "1"}}),
          {.devices = 6, .batch_size = 6, .experts = 8}),
      ElementsAre("2.1.1.3"));
}

}  // namespace
}  // namespace space_experts_test_cc
}  // namespace orrery::search
