#include "search/spaces/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "search/spaces/space_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace space_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using transforms::ParallelPlan;

std::string ErrorOf(const Space& space, const SpaceSize& size) {
  return std::string(Enumerate(space, size).status().message());
}

TEST(Enumerate, LeftOpenItFillsTheCluster) {
  const SpaceSize size = {.devices = 4, .batch_size = 8};
  EXPECT_THAT(List(SpaceOf({{"micro-batches", "1"}}), size),
              ElementsAre("1.1.4.1", "1.2.2.1", "1.4.1.1", "2.1.2.1", "2.2.1.1", "4.1.1.1"));
  EXPECT_THAT(List(SpaceOf({{"dp", "2"}, {"micro-batches", "1"}}), size),
              ElementsAre("2.1.2.1", "2.2.1.1"));
}

TEST(Enumerate, AllGivenItTakesWhatFits) {
  EXPECT_THAT(List(SpaceOf({{"dp", "1,2"}, {"hp", "1,3"}, {"pp", "1,2"}, {"micro-batches", "1"}}),
                   {.devices = 4, .batch_size = 8}),
              ElementsAre("1.1.1.1", "1.1.2.1", "1.3.1.1", "2.1.1.1", "2.1.2.1"));
}

TEST(Enumerate, FurtherAxesTakeTheirShareOfTheCluster) {
  const Space space =
      SpaceOf({{"hp", "1"}, {"pp", "1"}, {"micro-batches", "1"}, {"cp", "1,2"}, {"ep", "1,3"}});
  const std::string rest = " --micro-batches 1 --schedule 1f1b";
  EXPECT_THAT(
      Texts(space, {.devices = 12, .batch_size = 24}),
      ElementsAre("--dp 2 --hp 1 --pp 1 --cp 2 --ep 3" + rest, "--dp 4 --hp 1 --pp 1 --ep 3" + rest,
                  "--dp 6 --hp 1 --pp 1 --cp 2" + rest, "--dp 12 --hp 1 --pp 1" + rest));
}

TEST(Enumerate, MicrobatchesDivideTheShareOfAReplica) {
  EXPECT_THAT(
      List(SpaceOf({{"dp", "2"}, {"hp", "1"}, {"pp", "2"}}), {.devices = 4, .batch_size = 12}),
      ElementsAre("2.1.2.1", "2.1.2.2", "2.1.2.3", "2.1.2.6"));
}

// What a huge batch would divide into is more than anybody waits for: 2^14 are sought, or 64 a
// stage.
TEST(Enumerate, MicrobatchesAreNotTooMany) {
  const auto most = [](const char* pp, int64_t devices) {
    int64_t count = 0;
    const Space space = SpaceOf({{"pp", pp}, {"dp", "1"}, {"hp", "1"}, {"schedule", "gpipe"}});
    for (const ParallelPlan& plan :
         PlansOf(space, {.devices = devices, .batch_size = int64_t{1} << 32})) {
      count = std::max(count, plan.microbatches);
    }
    return count;
  };
  EXPECT_EQ(most("1", 1), 1 << 14);
  EXPECT_EQ(most("1024", 1024), 1 << 16);
}

// Up to 8 a stage, after all others; a list is for all schedules.
TEST(Enumerate, SlicesDivideTheSequence) {
  const SpaceSize size = {.devices = 4, .batch_size = 4, .sequence = 48};
  const Lists lists = {{"dp", "2"}, {"hp", "1"}, {"pp", "2"}, {"schedule", "terapipe,gpipe"}};
  EXPECT_THAT(List(SpaceOf(lists), size),
              ElementsAre("2.1.2.1 gpipe", "2.1.2.2 gpipe", "2.1.2.1 terapipe", "2.1.2.2 terapipe",
                          "2.1.2.3 terapipe", "2.1.2.4 terapipe", "2.1.2.6 terapipe",
                          "2.1.2.8 terapipe", "2.1.2.12 terapipe", "2.1.2.16 terapipe"));
  Lists of_five = lists;
  of_five.emplace_back("slices", "16,8,8,8,8");
  EXPECT_THAT(List(SpaceOf(of_five), size),
              ElementsAre("2.1.2.1 gpipe", "2.1.2.2 gpipe", "2.1.2.5 terapipe"));
  of_five.emplace_back("micro-batches", "4");
  EXPECT_THAT(List(SpaceOf(of_five), size), ElementsAre("2.1.2.4 terapipe", "2.1.2.4 gpipe"));
}

TEST(Enumerate, MicrobatchesDivideTheShareOfAnEpRank) {
  EXPECT_THAT(List(SpaceOf({{"dp", "1"}, {"hp", "1"}, {"pp", "1"}, {"ep", "4"}}),
                   {.devices = 4, .batch_size = 8}),
              ElementsAre("1.1.1.1", "1.1.1.2"));
}

TEST(Enumerate, SchedulesAreInsideOfMicrobatches) {
  EXPECT_THAT(List(SpaceOf({{"dp", "1"},
                            {"hp", "1"},
                            {"pp", "1"},
                            {"micro-batches", "1,2"},
                            {"schedule", "gpipe,1f1b"}}),
                   {.devices = 1, .batch_size = 8}),
              ElementsAre("1.1.1.1 gpipe", "1.1.1.1", "1.1.1.2 gpipe", "1.1.1.2"));
}

// 2^1 to 2^(floor(log2(batch/dp)/2) - 1) with a pipeline, 1 without.
TEST(Enumerate, MicrobatchesOfDistir) {
  const auto counts = [](int64_t batch, const char* dp) {
    const Space space =
        SpaceOf({{"dp", dp}, {"hp", "1"}, {"pp", "2"}, {"micro-batches", "distir"}});
    const auto plans = Enumerate(space, {.devices = 8, .batch_size = batch});
    if (!plans.ok()) return std::string();
    return absl::StrJoin(*plans, " ", [](std::string* out, const ParallelPlan& plan) {
      absl::StrAppend(out, plan.microbatches);
    });
  };
  EXPECT_EQ(counts(8192, "1"), "2 4 8 16 32");
  EXPECT_EQ(counts(8192, "4"), "2 4 8 16");
  EXPECT_EQ(counts(16384, "1"), "2 4 8 16 32 64");
  EXPECT_EQ(counts(64, "1"), "2 4");
  EXPECT_EQ(counts(15, "1"), "");
  EXPECT_THAT(List(SpaceOf({{"dp", "16"}, {"hp", "1"}, {"pp", "1"}, {"micro-batches", "distir"}}),
                   {.devices = 16, .batch_size = 8192}),
              ElementsAre("16.1.1.1"));
}

TEST(Enumerate, SaysWhenNothingIsLeft) {
  const SpaceSize size = {.devices = 4, .batch_size = 8};
  EXPECT_EQ(ErrorOf(SpaceOf({{"dp", "3"}}), size),
            "no degrees dp, hp, pp, cp, ep in the lists make 4 devices; try leaving one of `dp`, "
            "`hp`, `pp` out, or smaller `cp` and `ep`");
  EXPECT_EQ(ErrorOf(SpaceOf({{"dp", "8"}, {"hp", "1"}, {"pp", "1"}}), size),
            "no degrees dp, hp, pp, cp, ep in the lists make at most 4 devices; try leaving one of "
            "`dp`, `hp`, `pp` out, or smaller `cp` and `ep`");
}

// Large degrees in lists must not wrap around into ones that fit.
TEST(Enumerate, DoesNotOverflow) {
  const SpaceSize size = {.devices = 16, .batch_size = 64};
  EXPECT_FALSE(
      Enumerate(SpaceOf({{"dp", "2147483648"}, {"hp", "2147483648"}, {"pp", "2147483648"}}), size)
          .ok());
  EXPECT_THAT(List(SpaceOf({{"dp", "1,2147483648"},
                            {"hp", "1,2147483648"},
                            {"pp", "1,2147483648"},
                            {"micro-batches", "1"}}),
                   size),
              ElementsAre("1.1.1.1"));
}

TEST(Enumerate, NamesNoPlanTwice) {
  for (const int64_t devices : {1, 6, 16, 60}) {
    const auto plans = Enumerate(SpaceOf({{"schedule", "1f1b,gpipe"}, {"zero", "0,3"}}),
                                 {.devices = devices, .batch_size = 96})
                           .value();
    const std::vector<ParallelPlan> all = plans.All();
    const absl::flat_hash_set<ParallelPlan> distinct(all.begin(), all.end());
    EXPECT_EQ(distinct.size(), plans.size());
    for (const ParallelPlan& plan : plans) EXPECT_EQ(plan.ranks(), devices) << ToString(plan);
  }
}

// Where nothing is data parallel, all stages of ZeRO are one plan.
TEST(Enumerate, VariesZeroWhereDataAreShared) {
  const Space space =
      SpaceOf({{"dp", "1,2"}, {"hp", "1"}, {"pp", "1"}, {"micro-batches", "1"}, {"zero", "0,1,3"}});
  EXPECT_THAT(Texts(space, {.devices = 2, .batch_size = 8}),
              ElementsAre("--dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b",
                          "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b",
                          "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --zero 1",
                          "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --zero 3"));
}

// A search that chooses degrees chooses among what people train with.
TEST(Enumerate, VariesZeroWhereDegreesAreLeftOpen) {
  const Lists lists = {{"hp", "1"}, {"micro-batches", "2"}, {"schedule", "1f1b"}};
  const SpaceSize size = {.devices = 2, .batch_size = 8};
  EXPECT_THAT(Texts(SpaceOf(lists), size), testing::SizeIs(2));
  EXPECT_THAT(Texts(SavingSpaceOf(lists), size),
              ElementsAre("--dp 1 --hp 1 --pp 2 --micro-batches 2 --schedule 1f1b",
                          "--dp 2 --hp 1 --pp 1 --micro-batches 2 --schedule 1f1b",
                          "--dp 2 --hp 1 --pp 1 --micro-batches 2 --schedule 1f1b --zero 1",
                          "--dp 2 --hp 1 --pp 1 --micro-batches 2 --schedule 1f1b --zero 3"));
  Lists listed = lists;
  listed.emplace_back("zero", "0");
  EXPECT_THAT(Texts(SavingSpaceOf(listed), size), testing::SizeIs(2));
  for (const auto& plan : PlansOf(SavingSpaceOf(lists), {.devices = 16, .batch_size = 32})) {
    EXPECT_FALSE(plan.pp > 1 && plan.zero == 3) << ToString(plan);
  }
}

TEST(Relief, RecomputesMoreAndMore) {
  const auto texts = [](const Lists& lists) {
    std::vector<std::string> policies;
    EXPECT_THAT(Relief(SpaceOf(lists), {}), testing::IsEmpty());
    for (const ParallelPlan& plan : Relief(SavingSpaceOf(lists), {.dp = 2, .zero = 1})) {
      EXPECT_EQ(plan.dp * 10 + plan.zero, 21);
      policies.push_back(ToString(plan.recompute));
    }
    return policies;
  };
  EXPECT_THAT(texts({}), ElementsAre("selective", "full"));
  EXPECT_THAT(texts({{"recompute", "none"}}), testing::IsEmpty());
  EXPECT_THAT(texts({{"dp", "2"}, {"hp", "1"}, {"pp", "1"}}), testing::IsEmpty());
}

// Schedules that say how many stages a rank holds have no others.
TEST(Enumerate, VariesChunksWhereTheScheduleLeavesThemOpen) {
  const Space space = SpaceOf({{"dp", "1"},
                               {"hp", "1"},
                               {"pp", "2"},
                               {"micro-batches", "2"},
                               {"schedule", "1f1b,interleaved"},
                               {"chunks", "2,3"}});
  EXPECT_THAT(
      Texts(space, {.devices = 2, .batch_size = 8}),
      ElementsAre("--dp 1 --hp 1 --pp 2 --micro-batches 2 --schedule 1f1b",
                  "--dp 1 --hp 1 --pp 2 --micro-batches 2 --schedule interleaved --chunks 2",
                  "--dp 1 --hp 1 --pp 2 --micro-batches 2 --schedule interleaved --chunks 3"));
}

TEST(Enumerate, WhatIsRematerializedVariesFastest) {
  const Space space = SpaceOf({{"dp", "1"},
                               {"hp", "1"},
                               {"pp", "1,2"},
                               {"micro-batches", "2"},
                               {"schedule", "1f1b,gpipe"},
                               {"recompute", "none,full"}});
  const std::vector<ParallelPlan> plans =
      Enumerate(space, {.devices = 2, .batch_size = 4}).value().All();
  std::vector<std::string> list;
  for (const ParallelPlan& plan : plans) {
    list.push_back(absl::StrCat(plan.schedule.name(), " ", ToString(plan.recompute)));
  }
  ASSERT_EQ(list.size(), 8u);
  list.resize(4);
  EXPECT_THAT(list, ElementsAre("1f1b none", "1f1b full", "gpipe none", "gpipe full"));
  EXPECT_EQ(absl::flat_hash_set<ParallelPlan>(plans.begin(), plans.end()).size(), 8u);
}

// Any axis can be varied; all others are as in the base.
TEST(Enumerate, VariesAnyAxis) {
  const ParallelPlan base = {.recompute = transforms::ParseRecomputePolicy("selective").value()};
  const Lists one = {{"dp", "1"}, {"hp", "1"}, {"pp", "1"}, {"micro-batches", "1"}};
  const auto texts = [&](const char* flag, const char* values) {
    Lists lists = one;
    lists.emplace_back(flag, values);
    std::vector<std::string> left;
    for (const ParallelPlan& plan :
         PlansOf(SpaceOf(lists, base), {.devices = 1, .batch_size = 1})) {
      EXPECT_EQ(ToString(plan.recompute), "selective");
      left.push_back(transforms::AxisText(*transforms::FindAxis(flag), plan));
    }
    return left;
  };
  EXPECT_THAT(texts("bucket-size", "none,25MiB,1KiB"),
              ElementsAre("--bucket-size none", "--bucket-size 25MiB", "--bucket-size 1KiB"));
  EXPECT_THAT(texts("stages-by", "layers,cost"),
              ElementsAre("--stages-by layers", "--stages-by cost"));
  EXPECT_THAT(texts("blocking", "0,1"), ElementsAre("--blocking=0", "--blocking"));
  EXPECT_THAT(texts("offload-prefetch", "3"), ElementsAre("--offload-prefetch 3"));
  // A text with commas that is one value.
  EXPECT_THAT(texts("order", "pp,hp,dp"), ElementsAre("--order pp,hp,dp"));
  EXPECT_THAT(texts("algorithm", "all-reduce=ring,all-gather=direct").size(), 1);
}

// What means nothing beside a plan, or contradicts it, is as in the base, and counts once.
TEST(Enumerate, LeavesOutWhatMeansNothing) {
  const SpaceSize size = {.devices = 2, .batch_size = 2};
  const Lists one = {{"pp", "1"}, {"micro-batches", "1"}, {"schedule", "gpipe"}};
  const auto texts = [&](const Lists& more, const ParallelPlan& base = {}) {
    Lists lists = one;
    lists.insert(lists.end(), more.begin(), more.end());
    std::vector<std::string> plans;
    for (const ParallelPlan& plan : PlansOf(SpaceOf(lists, base), size)) {
      std::string text = ToString(plan, base);
      EXPECT_TRUE(absl::StrContains(text, " --schedule gpipe"));
      plans.push_back(absl::StrReplaceAll(
          text, {{" --pp 1", ""}, {" --micro-batches 1", ""}, {" --schedule gpipe", ""}}));
    }
    return plans;
  };
  EXPECT_THAT(texts({{"sequence-parallel", "1"}}),
              ElementsAre("--dp 1 --hp 2 --sequence-parallel", "--dp 2 --hp 1"));
  EXPECT_THAT(texts({{"dp", "2"}, {"zero", "0,1"}, {"zero-group", "1,2"}}),
              ElementsAre("--dp 2 --hp 1", "--dp 2 --hp 1 --zero 1 --zero-group 1",
                          "--dp 2 --hp 1 --zero 1 --zero-group 2"));
  EXPECT_THAT(texts({{"dp", "2"}, {"zero", "0,1"}, {"zero-group", "1"}}, {.zero_group = 2}),
              ElementsAre("--dp 2 --hp 1", "--dp 2 --hp 1 --zero 1 --zero-group 1"));
  EXPECT_THAT(texts({{"dp", "2"}, {"sharding", "megatron,auto"}, {"shard", "w0=hp@1"}}),
              ElementsAre("--dp 2 --hp 1 --sharding megatron", "--dp 2 --hp 1 --shard w0=hp@1"));
  // It is hp=1 that leaves the method a choice.
  EXPECT_THAT(texts({{"sharding", "auto"}, {"sequence-parallel", "1"}},
                    {.sharding = transforms::ShardingMethod::kMegatron}),
              ElementsAre("--dp 1 --hp 2 --sequence-parallel", "--dp 2 --hp 1 --sharding auto"));
}

TEST(Space, ListsEachValueOnce) {
  const Space space = SpaceOf({{"dp", "2,4,2,04"}, {"tp", "1,1"}});
  EXPECT_EQ(space.Values(*transforms::FindAxis("dp")).size(), 2);
  EXPECT_EQ(space.Values(*transforms::FindAxis("hp")).size(), 1);
  EXPECT_TRUE(space.Values(*transforms::FindAxis("pp")).empty());
}

// Pins add up to one value.
TEST(Space, AddsUpWhatMayBeRepeated) {
  const Space space = SpaceOf({{"shard", "w0=hp@1"}, {"shard", "w1=hp@whole"}});
  const auto values = space.Values(*transforms::FindAxis("shard"));
  ASSERT_EQ(values.size(), 1);
  EXPECT_EQ(values[0].pins.size(), 2);
}

TEST(Space, KeepsTheCommasOfPatterns) {
  const Space space = SpaceOf({{"recompute", "none,match:x{1,2},full"}});
  EXPECT_EQ(space.Values(*transforms::FindAxis("recompute")).size(), 3);
}

TEST(Space, SaysWhatAnAxisDoesNotTake) {
  Space space;
  const auto error = [&](const char* flag, const char* values) {
    const absl::Status status = space.List(*transforms::FindAxis(flag), values);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << flag << " " << values;
    return std::string(status.message());
  };
  EXPECT_THAT(error("dp", "1,two"), HasSubstr("'two': wanted a number"));
  EXPECT_THAT(error("dp", "0"), HasSubstr("'0': wanted numbers of at least 1"));
  EXPECT_THAT(error("pp", "2147483649"), HasSubstr("'2147483649': wanted numbers of at least 1"));
  EXPECT_THAT(error("prefetch", "1,-1"), HasSubstr("'-1': wanted "));
  EXPECT_THAT(error("zero", "0,4"), HasSubstr("'4': wanted a stage from 0 to 3"));
  EXPECT_THAT(error("cp", ""), HasSubstr("'': wanted a number"));
}

TEST(CheckListed, RefusesWhatAppliesNowhere) {
  const auto error = [](const Lists& lists) {
    const Space space = SpaceOf(lists);
    const auto plans = Enumerate(space, {.devices = 2, .batch_size = 2});
    EXPECT_TRUE(plans.ok()) << plans.status();
    return std::string(CheckListed(space, plans.value()).message());
  };
  EXPECT_EQ(error({{"zero-group", "2"}}), "zero-group 2: wanted ZeRO's stage 1, 2 or 3 beside it");
  EXPECT_EQ(error({{"slices", "balanced"}}),
            "slices balanced: wanted a schedule of slices, as terapipe is");
  EXPECT_EQ(error({{"sharding", "megatron"}, {"shard", "w0=hp@1"}}),
            "shard: sharding by Megatron's pattern places all; wanted auto");
  EXPECT_EQ(error({{"split-at", "h"}, {"layers-per-stage", "1"}}),
            "split-at: a pattern of first ops and layers of each stage each say where stages "
            "begin; wanted one");
  EXPECT_EQ(error({{"split-at", "h"}, {"stages-by", "ops,cost"}}),
            "stages-by ops: wanted one word on where stages begin: split-at and layers-per-stage "
            "are others");
  EXPECT_EQ(error({{"hp", "1"}, {"sequence-parallel", "1"}}),
            "sequence-parallel 1: wanted a horizontal degree (hp) of at least 2");
  // Beside some of them it means something.
  EXPECT_EQ(error({{"zero-group", "2"}, {"zero", "0,1"}}), "");
  EXPECT_EQ(error({{"sharding", "megatron,auto"}, {"shard", "w0=hp@1"}}), "");
  // No plan contradicts anything.
  EXPECT_TRUE(CheckListed(SpaceOf({}), std::vector<ParallelPlan>()).ok());
}

}  // namespace
}  // namespace space_test_cc
}  // namespace orrery::search
