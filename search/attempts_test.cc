#include "search/attempts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/models/model_test_util.h"
#include "ir/op_kind.h"
#include "search/bounds/least_memory.h"
#include "search/cuts/cut_choice.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace attempts_test_cc {
namespace {

using transforms::ByFlops;
using transforms::ContextAttention;
using transforms::SequenceParallel;
using transforms::ShardingMethod;

Setting GptSetting(int64_t batch = 8) {
  Setting setting = MlpSetting();
  setting.step = ir::BuildModel("gpt", "layers=2,hidden=64,heads=8,seq=64,vocab=64,flash=1", batch);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  setting.batch_size = batch;
  return setting;
}

Run Best(const Setting& setting, const ParallelPlan& plan) {
  PlanPlayer player(setting, plan);
  EXPECT_TRUE(player.Prepare().ok());
  absl::StatusOr<Run> run = BestRun(player);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

// Ops of that kind in the forward of all stages of what was played.
int64_t Count(const Run& run, ir::OpKind kind) {
  int64_t count = 0;
  for (size_t stage = 0; stage < run.pipelined.stages.size(); ++stage) {
    const ir::Function& forward = run.pipelined.PartsOf(stage, 0).forward.function;
    for (const ir::OpId op : forward.order()) count += forward.kind(op) == kind ? 1 : 0;
  }
  return count;
}

// Step times of these ways, of those that the plan can be sharded by.
std::vector<Duration> Times(const Setting& setting, const ParallelPlan& plan,
                            const std::vector<Way>& ways) {
  PlanPlayer player(setting, plan);
  EXPECT_TRUE(player.Prepare().ok());
  std::vector<Duration> times;
  for (const Way& way : ways) {
    const auto run = player.Play(way);
    if (run.ok()) times.push_back(run->report.step_time);
    EXPECT_TRUE(run.ok() || AsInfeasible(run.status()).has_value()) << run.status();
  }
  EXPECT_FALSE(times.empty());
  return times;
}

// Further ways, of less memory, may be faster still.
TEST(BestRun, IsNoSlowerThanByCostAndByThePattern) {
  const Setting setting = GptSetting();
  for (const ParallelPlan& plan : {ByFlops({.hp = 2}), ByFlops({.dp = 2, .hp = 4}),
                                   ByFlops({.hp = 2, .pp = 2, .microbatches = 4}),
                                   ByFlops({.hp = 2, .ep = 2}), ByFlops({.dp = 2, .ep = 4})}) {
    SCOPED_TRACE(ToString(plan));
    EXPECT_LE(Best(setting, plan).report.step_time,
              std::ranges::min(Times(setting, plan,
                                     {{},
                                      {.by_cost = false},
                                      {.by_cost = false, .sequence = SequenceParallel::kOff},
                                      {.by_cost = false, .sequence = SequenceParallel::kOn},
                                      {.gathers = true}})));
  }
}

// Whether the sequence is split, prices say, which know of no overlap: so both are played.
TEST(BestRun, ByThePatternIsNoSlowerThanWithTheSequenceWhole) {
  Setting setting = MlpSetting("dgx-a100:2");
  setting.step =
      ir::BuildModel("gpt", "layers=2,hidden=256,heads=8,seq=64,vocab=512,experts=8,topk=1", 16);
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  setting.batch_size = 16;
  for (ParallelPlan plan : {ByFlops({.hp = 2}), ByFlops({.dp = 2, .hp = 4}),
                            ByFlops({.hp = 2, .ep = 4, .microbatches = 2}),
                            ByFlops({.hp = 2, .pp = 2, .cp = 2, .microbatches = 4})}) {
    plan.sharding = ShardingMethod::kMegatron;
    ParallelPlan whole = plan;
    whole.sequence_parallel = SequenceParallel::kOff;
    EXPECT_LE(Best(setting, plan).report.step_time, Best(setting, whole).report.step_time)
        << ToString(plan);
  }
}

TEST(BestRun, IsTheFastestOfAllAttentions) {
  const Setting setting = GptSetting();
  const ParallelPlan plan = ByFlops({.cp = 4});
  std::vector<Way> ways;
  for (const ContextAttention attention : {ContextAttention::kAuto, ContextAttention::kAllToAll,
                                           ContextAttention::kAllGather, ContextAttention::kRing}) {
    ways.push_back({.attention = attention});
  }
  EXPECT_LE(Best(setting, plan).report.step_time, std::ranges::min(Times(setting, plan, ways)));
}

// A plan that leaves nothing open is played as it is.
TEST(BestRun, OfOneWayIsThatWay) {
  const Setting setting = GptSetting();
  const ParallelPlan data = ByFlops({.dp = 4});
  EXPECT_EQ(Best(setting, data).report.step_time, Times(setting, data, {{}})[0]);
  ParallelPlan products = ByFlops({.hp = 4});
  products.sharding = ShardingMethod::kDistir;
  EXPECT_EQ(Best(setting, products).report.step_time, Times(setting, products, {{}})[0]);
  PlanPlayer once(setting, products), best(setting, products);
  ASSERT_TRUE(once.Prepare().ok() && best.Prepare().ok());
  ASSERT_TRUE(once.Play({}).ok() && BestRun(best).ok());
  EXPECT_EQ(best.work(), once.work());
}

// Under the pattern as well, which does not leave it to prices.
TEST(BestRun, HasTheAttentionThatIsAskedFor) {
  const Setting setting = GptSetting();
  for (const auto sharding : {ShardingMethod::kAuto, ShardingMethod::kMegatron}) {
    ParallelPlan plan = ByFlops({.hp = 2, .cp = 2});
    plan.sharding = sharding;
    plan.context_attention = ContextAttention::kRing;
    const auto ring = Best(setting, plan);
    EXPECT_GT(Count(ring, ir::OpKind::kRotate), 0) << ToString(plan);
    plan.context_attention = ContextAttention::kAllToAll;
    const auto all_to_all = Best(setting, plan);
    EXPECT_EQ(Count(all_to_all, ir::OpKind::kRotate), 0) << ToString(plan);
  }
}

// What was sharded for one way is sharded for its other stages.
TEST(BestRun, ChoosesShardingsOnce) {
  const Setting setting = GptSetting();
  const ParallelPlan plan = {.hp = 2, .pp = 2, .microbatches = 4};
  PlanPlayer player(setting, plan);
  ASSERT_TRUE(player.Prepare().ok());
  ASSERT_TRUE(BestRun(player).ok());
  EXPECT_GE(player.shardings().found(), 1);
}

// A budget that ends early leaves the best until then, and says so.
TEST(BestRun, EndsWithItsBudget) {
  const Setting setting = GptSetting();
  const ParallelPlan plan = ByFlops({.cp = 4});
  PlayBudget little{.left = 1}, nothing{.left = 0}, much;
  PlanPlayer hurried(setting, plan, little), idle(setting, plan, nothing),
      patient(setting, plan, much);
  for (PlanPlayer* player : {&hurried, &idle, &patient}) ASSERT_TRUE(player->Prepare().ok());
  const auto first = BestRun(hurried), best = BestRun(patient);
  ASSERT_TRUE(first.ok() && best.ok());
  EXPECT_EQ(first->report.step_time, Times(setting, plan, {{}})[0]);
  EXPECT_FALSE(first->all_ways);
  EXPECT_TRUE(best->all_ways);
  EXPECT_GT(patient.work(), 2 * hurried.work());
  EXPECT_EQ(hurried.work(), 1 - little.left);
  EXPECT_TRUE(absl::IsResourceExhausted(BestRun(idle).status()));
}

// The limits that a plan is played with, in ascending order: shares of what it needs without one.
std::vector<Run> BestWithin(const ParallelPlan& plan) {
  Setting setting = GptSetting();
  setting.lowering.memory_limit = Bytes(0);
  std::vector<Run> runs;
  const Run unlimited = Best(setting, plan);
  const int64_t peak = unlimited.report.peak_memory.count();
  for (const int64_t percent : {30, 50, 60, 70, 75, 80, 85, 90, 95, 99, 100, 150}) {
    setting.lowering.memory_limit = Bytes(peak * percent / 100);
    runs.push_back(Best(setting, plan));
    const simulator::Report& report = runs.back().report;
    EXPECT_EQ(report.fits, report.peak_memory <= setting.lowering.memory_limit) << percent;
  }
  EXPECT_EQ(runs.back().report.step_time, unlimited.report.step_time);
  return runs;
}

// Which ways there are has nothing to do with the limit.
TEST(BestRun, IsNeverWorseForMoreMemory) {
  int without = 0, slower = 0;
  for (const ParallelPlan& plan : CasesToWalk(
           {ByFlops({.hp = 4, .pp = 2, .microbatches = 4}), ParallelPlan{.hp = 2},
            ParallelPlan{.hp = 2, .pp = 2, .microbatches = 4},
            ParallelPlan{.pp = 2, .microbatches = 8}, ParallelPlan{.dp = 2, .hp = 2, .cp = 2}})) {
    SCOPED_TRACE(ToString(plan));
    const auto runs = BestWithin(plan);
    const search::Run* before = nullptr;
    for (const search::Run& run : runs) {
      if (!run.report.fits) ++without;
      if (before != nullptr && before->report.fits) {
        EXPECT_TRUE(run.report.fits);
        EXPECT_LE(run.report.step_time, before->report.step_time);
        if (run.report.step_time < before->report.step_time) ++slower;
      }
      before = &run;
    }
  }
  EXPECT_GT(without, 0);
  EXPECT_GT(slower, 0) << "nobody had to do with less";
}

// What the flags say that a plan leaves out: by Megatron's pattern, with the sequence split or not.
std::vector<ParallelPlan> FlagsLeftOut(const ParallelPlan& plan) {
  std::vector<ParallelPlan> flags;
  for (const ShardingMethod sharding : {ShardingMethod::kAuto, ShardingMethod::kMegatron}) {
    for (const SequenceParallel sequence :
         {SequenceParallel::kAuto, SequenceParallel::kOff, SequenceParallel::kOn}) {
      flags.push_back(plan);
      flags.back().sharding = sharding;
      flags.back().sequence_parallel = sequence;
    }
  }
  return flags;
}

// With much memory and with little: a flag that would help is found without it.
TEST(BestRun, LeftOutIsNeverWorseThanAnyFlag) {
  int without = 0;
  for (const ParallelPlan& plan : CasesToWalk(
           {ParallelPlan{.hp = 4}, ParallelPlan{.dp = 2, .hp = 2, .microbatches = 2},
            ParallelPlan{.hp = 2, .pp = 2, .microbatches = 4},
            ByFlops({.hp = 4, .pp = 2, .microbatches = 4}), ParallelPlan{.hp = 2, .cp = 2}})) {
    Setting setting = GptSetting();
    setting.lowering.memory_limit = Bytes(0);
    const int64_t peak = Best(setting, plan).report.peak_memory.count();
    for (const int64_t percent : {50, 70, 80, 95}) {
      setting.lowering.memory_limit = Bytes(peak * percent / 100);
      const search::Run open = Best(setting, plan);
      if (!open.report.fits) ++without;
      for (const ParallelPlan& flags : FlagsLeftOut(plan)) {
        EXPECT_FALSE(IsBetter(Best(setting, flags).report, open.report))
            << ToString(flags) << " within " << percent << " %";
      }
    }
  }
  EXPECT_GT(without, 0) << "all had enough memory";
}

// Without room for any, the one that lacks least: it fits as soon as there is room for it.
TEST(BestRun, OfThoseThatDoNotFitNeedsTheLeast) {
  Setting setting = GptSetting();
  for (const ParallelPlan& plan :
       {ParallelPlan{.hp = 2, .pp = 2, .microbatches = 4},
        ParallelPlan{.hp = 4, .pp = 2, .microbatches = 2, .schedule = "zb-h1"},
        ParallelPlan{.dp = 2, .hp = 2, .pp = 2, .microbatches = 4, .schedule = "gpipe"}}) {
    const auto within = [&](Bytes limit) {
      setting.lowering.memory_limit = limit;
      return Best(setting, plan).report;
    };
    const Bytes unlimited = within(Bytes(0)).peak_memory;
    const simulator::Report least = within(Bytes(unlimited.count() * 3 / 10));
    EXPECT_FALSE(least.fits);
    EXPECT_LT(least.peak_memory, unlimited);
    EXPECT_TRUE(within(least.peak_memory).fits);
    const simulator::Report lacking = within(least.peak_memory - Bytes(1));
    EXPECT_FALSE(lacking.fits);
    EXPECT_EQ(lacking.peak_memory, least.peak_memory);
  }
}

// What is surely not faster needs no playing.
TEST(PlanPlayer, PlaysNothingThatSurelyTakesAsLong) {
  const Setting setting = GptSetting();
  const ParallelPlan plan = {.hp = 2, .pp = 2, .microbatches = 4};
  PlanPlayer player(setting, plan);
  ASSERT_TRUE(player.Prepare().ok());
  const Duration time = player.Play({}).value().report.step_time;
  WayFacts facts;
  EXPECT_TRUE(absl::IsAborted(player.Play({}, &facts, ToBeat{Duration(1)}).status()));
  EXPECT_GT(facts.fastest, Duration());
  const auto run = player.Play({}, nullptr, ToBeat{time + Duration(1)});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->report.step_time, time);
}

// What surely does not fit needs no playing, nor what needs more than another that does not.
TEST(BestRun, PlaysLittleThatDoesNotFit) {
  Setting setting = GptSetting();
  setting.step = ir::BuildModel("gpt", "layers=8,hidden=64,heads=8,seq=64,vocab=64,flash=1", 8);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  const ParallelPlan plan = {.hp = 2, .pp = 4, .microbatches = 8};
  const auto tasks_within = [&](Bytes limit, bool fits) {
    setting.lowering.memory_limit = limit;
    PlanPlayer player(setting, plan);
    EXPECT_TRUE(player.Prepare().ok());
    const auto run = BestRun(player);
    EXPECT_EQ(run->report.fits, fits);
    return std::pair(player.tasks(), run->report.peak_memory);
  };
  const auto [with_room, peak] = tasks_within(Bytes(0), true);
  EXPECT_LT(2 * tasks_within(Bytes(peak.count() / 3), false).first, with_room);
}

// The first way is one that was left out, since it does not fit.
TEST(BestRun, HasARunHoweverLittleIsLeftOfTheBudget) {
  Setting setting = GptSetting();
  const ParallelPlan plan = {.hp = 2, .pp = 2, .microbatches = 4};
  setting.lowering.memory_limit = Bytes(Best(setting, plan).report.peak_memory.count() / 4);
  PlayBudget budget{.left = 1};
  PlanPlayer player(setting, plan, budget);
  ASSERT_TRUE(player.Prepare().ok());
  const auto run = BestRun(player);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->report.fits);
  EXPECT_FALSE(run->all_ways);
}

// Activations alone, of which no way could make so little.
TEST(BestRun, IsTheFirstWayWhereThatNeedsManyTimesWhatThereIs) {
  Setting setting = GptSetting(/*batch=*/512);
  const ParallelPlan plan = {.hp = 2};
  setting.lowering.memory_limit = Bytes(0);
  PlanPlayer once(setting, plan);
  ASSERT_TRUE(once.Prepare().ok());
  const auto first = once.Play({});
  ASSERT_TRUE(first.ok());
  const auto work_within = [&](int64_t limit) {
    setting.lowering.memory_limit = Bytes(limit);
    EXPECT_FALSE(CannotFit(setting, plan)) << limit;
    PlanPlayer player(setting, plan);
    EXPECT_TRUE(player.Prepare().ok());
    const auto run = BestRun(player);
    EXPECT_TRUE(run.ok() && !run->report.fits) << limit;
    return player.work();
  };
  const int64_t peak = first->report.peak_memory.count();
  // It is made once more to be played.
  EXPECT_LE(work_within(peak / 9), 2 * once.work());
  EXPECT_GT(work_within(peak / 7), 2 * once.work());
}

// Where links are dear, backward sends what forward sends: of each boundary the part of the
// sequence that a rank of hp has, gathered where it arrives, and nothing that a bias is summed
// from.
TEST(BestRun, SendsEachBoundaryOnceEachWay) {
  constexpr int64_t kBatch = 8, kStages = 2, kBoundary = 512 * 256 * 4;  // bytes of a sample
  Setting setting = GptSetting(kBatch);
  setting.step = ir::BuildModel(
      "gpt", "layers=4,hidden=256,heads=8,seq=512,vocab=512,flash=1,tied_embeddings=0", kBatch);
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  for (const transforms::StagesBy by :
       {transforms::StagesBy::kLayers, transforms::StagesBy::kCost}) {
    for (const char* cluster : {"ring:8@1GB/s,device=h100-80gb", "uniform:8@25Gbps"}) {
      setting.cluster = cluster::ParseCluster(cluster).value();
      const ParallelPlan plan = {.hp = 2,
                                 .pp = kStages,
                                 .microbatches = 4,
                                 .sharding = ShardingMethod::kMegatron,
                                 .sequence_parallel = SequenceParallel::kOn,
                                 .stages_by = by};
      EXPECT_EQ(Best(setting, plan).report.bytes_sent,
                Bytes(2 * (kStages - 1) * kBatch * kBoundary))
          << cluster;
    }
  }
}

TEST(BestRun, OfWhatCannotBeSpreadIsInfeasible) {
  const Setting setting = MlpSetting();  // 48 samples
  const ParallelPlan plan = ByFlops({.dp = 5});
  PlanPlayer player(setting, plan);
  ASSERT_TRUE(player.Prepare().ok());
  const absl::Status status = BestRun(player).status();
  EXPECT_TRUE(AsInfeasible(status).has_value()) << status;
}

}  // namespace
}  // namespace attempts_test_cc
}  // namespace orrery::search
