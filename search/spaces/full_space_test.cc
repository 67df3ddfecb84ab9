#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "search/spaces/space.h"
#include "search/spaces/space_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace full_space_test_cc {
namespace {

using ::testing::ElementsAre;
using transforms::ParallelPlan;

// Where there is a pipeline, and chunks come by turns evenly.
TEST(Enumerate, InterleavesWherePeopleDo) {
  const SpaceSize size = {.devices = 4, .batch_size = 8};
  EXPECT_THAT(
      List(SavingSpaceOf({{"hp", "1"}, {"dp", "1"}, {"micro-batches", "1,4,8"}}), size),
      ElementsAre("1.1.4.1", "1.1.4.4", "1.1.4.4 interleaved", "1.1.4.8", "1.1.4.8 interleaved"));
  EXPECT_THAT(
      List(SavingSpaceOf({{"hp", "1"}, {"pp", "1"}, {"micro-batches", "2"}, {"zero", "0"}}), size),
      ElementsAre("4.1.1.2"));
  EXPECT_THAT(
      List(SavingSpaceOf({{"hp", "1"}, {"dp", "1"}, {"micro-batches", "4"}, {"schedule", "gpipe"}}),
           size),
      ElementsAre("1.1.4.4 gpipe"));
}

// What each axis has in a full space, and on which parts of the cluster.
TEST(Enumerate, TakesAllOfAFullSpace) {
  Space space = SpaceOf({{"hp", "1,2"}});
  space.TakeAll();
  const SpaceSize size = {.devices = 8, .batch_size = 16, .sequence = 1536, .devices_a_node = 4};
  std::map<std::string, std::set<std::string>> values;
  const PlanList plans = Enumerate(space, size).value();
  for (const ParallelPlan& plan : plans) {
    EXPECT_EQ(8 % plan.ranks(), 0) << ToString(plan);
    EXPECT_GE(plan.ranks(), 2) << ToString(plan);
    EXPECT_GE(plan.microbatches, plan.pp) << ToString(plan);
    EXPECT_TRUE(transforms::CheckPlan(plan).ok()) << ToString(plan);
    for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
      values[std::string(axis->flag)].insert(axis->print(plan));
    }
  }
  EXPECT_THAT(values["dp"], ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(values["pp"], ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(values["cp"], ElementsAre("1", "2"));  // 4 leaves a rank 384 positions
  EXPECT_THAT(values["zero"], ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(values["recompute"], ElementsAre("full", "none", "selective"));
  EXPECT_THAT(values["offload"],
              ElementsAre("activations", "none", "optimizer", "optimizer+activations"));
  EXPECT_THAT(values["order"], ElementsAre("hp,dp,pp", "hp,pp,dp"));
  EXPECT_THAT(values["chunks"], ElementsAre("0", "4"));
  for (const char* schedule : {"1f1b", "gpipe", "interleaved", "zb-h1", "chimera"}) {
    EXPECT_TRUE(values["schedule"].contains(schedule)) << schedule;
  }
  // Another step, no order of one, or one that cuts sequences.
  for (const char* schedule : {"pipedream", "distir", "terapipe", "ampnet"}) {
    EXPECT_FALSE(values["schedule"].contains(schedule)) << schedule;
  }
  EXPECT_THAT(Relief(space, plans.front()), testing::IsEmpty());
  EXPECT_FALSE(MayRelieve(space));
}

// Who lists all degrees has all else, too.
TEST(Enumerate, TakesAllBesideDegreesThatAreListed) {
  const Lists lists = {{"dp", "2"}, {"hp", "1"}, {"pp", "2"}, {"micro-batches", "4"}};
  const SpaceSize size = {.devices = 8, .batch_size = 16};
  Space space = SpaceOf(lists);
  EXPECT_EQ(Enumerate(space, size)->size(), 1u);
  space.SaveMemory();
  EXPECT_EQ(Enumerate(space, size)->size(), 1u);  // the default leaves alone who knows what
  space.TakeAll();
  EXPECT_GT(Enumerate(space, size)->size(), 100u);
}

TEST(Enumerate, ShardsInOneNodeOfSeveral) {
  Space space = SpaceOf({{"hp", "2"}, {"pp", "1"}, {"micro-batches", "1"}, {"zero", "3"}});
  space.TakeAll();
  std::set<int64_t> groups;
  const PlanList plans =
      Enumerate(space, {.devices = 32, .batch_size = 32, .devices_a_node = 8}).value();
  for (const ParallelPlan& plan : plans) {
    if (plan.ranks() == 32) groups.insert(plan.zero_group);
  }
  EXPECT_THAT(groups, ElementsAre(0, 4));
}

// So is what people train with, which the default space tries.
TEST(FullSpace, IsPlainWhereTheDefaultSpaceIs) {
  const SpaceSize size = {.devices = 4, .batch_size = 8, .sequence = 64};
  Space space = SpaceOf({});
  space.TakeAll();
  const PlanList plans = Enumerate(space, size).value();
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < plans.size(); ++i) places[transforms::ToString(plans[i])] = i;
  int found = 0;
  for (const ParallelPlan& usual : PlansOf(SavingSpaceOf({}), size)) {
    const auto place = places.find(transforms::ToString(usual));
    if (place == places.end()) continue;  // of fewer microbatches than stages
    EXPECT_EQ(plans.ChangesOf(place->second), 0) << transforms::ToString(usual);
    ++found;
  }
  EXPECT_GT(found, 20);
  std::set<std::string> plain;
  for (size_t i = 0; i < plans.size(); ++i) {
    const ParallelPlan plan = plans[i];
    if (plans.ChangesOf(i) > 0) continue;
    plain.insert(absl::StrCat(plan.schedule.name(), " ", transforms::ToString(plan.recompute),
                              " zero ", plan.zero));
    EXPECT_EQ(plan.offload, transforms::OffloadPolicy());
    EXPECT_EQ(plan.cp, 1);
  }
  for (const char* schedule : {"1f1b", "interleaved"}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const int zero : {0, 1, 3}) {
        EXPECT_TRUE(plain.erase(absl::StrCat(schedule, " ", recompute, " zero ", zero)) == 1)
            << schedule << " " << recompute << " " << zero;
      }
    }
  }
  EXPECT_THAT(plain, testing::IsEmpty());
}

// What is listed first is as plain as what stands where that means nothing: here beside hp 1.
TEST(FullSpace, IsPlainWhereTheFirstValueIs) {
  Space space = SpaceOf({{"sequence-parallel", "0,1"}, {"zero", "1,3"}});
  space.TakeAll();
  const PlanList plans = Enumerate(space, {.devices = 4, .batch_size = 8}).value();
  int without = 0, with = 0;
  for (size_t i = 0; i < plans.size(); ++i) {
    const ParallelPlan plan = plans[i];
    const bool splits = plan.sequence_parallel == transforms::SequenceParallel::kOn;
    const int32_t changes = plans.ChangesOf(i);
    EXPECT_GE(changes, (plan.zero == 3 ? 1 : 0) + (splits ? 1 : 0));
    if (changes > 0) continue;
    EXPECT_FALSE(splits);
    EXPECT_LE(plan.zero, 1);
    ++(plan.hp > 1 ? with : without);
  }
  EXPECT_GT(without, 1);
  EXPECT_GT(with, 1);
}

// Plans of a space that is too large to list, and what they stand for, are the plans of the space,
// however many there may be.
TEST(ListPlans, WithVariantsIsAll) {
  const SpaceSize size = {.devices = 8, .batch_size = 16, .sequence = 2048, .devices_a_node = 4};
  Space space = SpaceOf({{"bucket-size", "none,25MiB,1MiB"},
                         {"blocking", "0,1"},
                         {"prefetch", "1,2"},
                         {"offload", "none"},
                         {"schedule", "1f1b,gpipe"}});
  space.TakeAll();
  std::vector<std::string> all;
  for (const ParallelPlan& plan : PlansOf(space, size)) all.push_back(transforms::ToString(plan));
  std::ranges::sort(all);
  std::set<size_t> numbers;
  for (const size_t most : {20 * all.size(), all.size() - 1, all.size() / 2, all.size() / 6}) {
    const Listing listing = ListPlans(space, size, most).value();
    EXPECT_EQ(listing.held.empty(), most > all.size());
    EXPECT_LE(listing.plans.size(), most);
    numbers.insert(listing.held.size());
    std::vector<std::string> texts;
    for (const ParallelPlan& plan : listing.plans) {
      texts.push_back(transforms::ToString(plan));
      for (const ParallelPlan& variant : VariantsOf(space, size, listing.held, plan)) {
        texts.push_back(transforms::ToString(variant));
      }
    }
    std::ranges::sort(texts);
    EXPECT_EQ(texts, all) << most;
  }
  EXPECT_GT(numbers.size(), 2u);
  EXPECT_THAT(std::string(ListPlans(space, size, 20).status().message()),
              testing::HasSubstr("over 20 plans are in the space"));
}

}  // namespace
}  // namespace full_space_test_cc
}  // namespace orrery::search
