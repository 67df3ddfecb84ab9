#include "search/plan_player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "support/status.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace plan_player_test_cc {
namespace {

using transforms::ByFlops;
using transforms::StagesBy;

// Why a plan cannot be prepared; "infeasible: …" where it makes sense all the same.
std::string Trouble(const Setting& setting, const ParallelPlan& plan) {
  const absl::Status status = PlanPlayer(setting, plan).Prepare();
  if (status.ok()) return "none";
  const auto infeasible = AsInfeasible(status);
  if (infeasible.has_value()) return absl::StrCat("infeasible: ", infeasible->detail);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(Prepare, WantsDevicesEnough) {
  const Setting setting = MlpSetting();
  EXPECT_EQ(Trouble(setting, {.dp = 8}), "none");
  const ParallelPlan plan = {.dp = 8, .hp = 2};
  EXPECT_EQ(Trouble(setting, plan), absl::StrCat("uniform:8@200Gbps has 8 devices; ",
                                                 ToString(plan, setting.base), " wants 16"));
}

TEST(Prepare, WantsTheChunksOfTheSchedule) {
  const Setting setting = MlpSetting();
  const ParallelPlan plan = {.pp = 2, .microbatches = 2, .chunks = 2};
  EXPECT_EQ(Trouble(setting, plan),
            absl::StrCat(ToString(plan, setting.base), ": wanted `chunks` 1, or none"));
  EXPECT_EQ(Trouble(setting, {.pp = 2, .microbatches = 2, .chunks = 1}), "none");
}

TEST(Prepare, WantsAnOpAStage) {
  const Setting setting = MlpSetting();
  EXPECT_EQ(Trouble(setting, {.pp = 1000}),
            absl::StrCat("infeasible: ", setting.step.order().size(),
                         " ops do not cut into 1000 stages; try fewer of `chunks` or `pp`"));
}

TEST(Prepare, FindsOutTheShape) {
  const Setting setting = MlpSetting();
  const ParallelPlan plan = {.pp = 2, .microbatches = 6, .schedule = "interleaved"};
  PlanPlayer player(setting, plan);
  ASSERT_TRUE(player.Prepare().ok());
  EXPECT_EQ(player.shape().ranks, 2);
  EXPECT_EQ(player.shape().chunks, 2);
  EXPECT_EQ(player.ranks().orders.size(), 2u);
  EXPECT_EQ(player.ranks().orders[0].size(), 24u);  // 2 chunks x 6 forwards and backwards
  EXPECT_EQ(&player.setting(), &setting);
  EXPECT_EQ(&player.plan(), &plan);
}

TEST(PlanPlayer, WeighsStagesWhereThereAreSeveral) {
  const Setting setting = MlpSetting();
  const auto weighs = [&](const ParallelPlan& plan) {
    return PlanPlayer(setting, plan).weighs_stages();
  };
  EXPECT_TRUE(weighs({.pp = 2}));
  EXPECT_FALSE(weighs({.dp = 2}));
  EXPECT_FALSE(weighs({.pp = 2, .stages_by = StagesBy::kFlops}));
}

// Where nothing is skipped, there is nothing left to complete.
TEST(PlayOnly, TellsAllOfARunAtOnce) {
  const Setting setting = MlpSetting("uniform:16@200Gbps");
  for (const int64_t microbatches : {4, 48}) {
    const ParallelPlan plan = {.pp = 2, .microbatches = microbatches};
    PlanPlayer one(setting, plan), other(setting, plan);
    for (PlanPlayer* player : {&one, &other}) {
      player->WantFiguresAlone();
      ASSERT_TRUE(player->Prepare().ok());
    }
    search::Run only = one.PlayOnly({}).value(), any = other.Play({}).value();
    EXPECT_TRUE(any.brief_of.has_value());
    EXPECT_EQ(only.skipped.has_value(), microbatches == 48);
    EXPECT_EQ(only.brief_of.has_value(), microbatches == 48);
    EXPECT_TRUE(one.Complete(only) && other.Complete(any));
    EXPECT_EQ(only.report.step_time, any.report.step_time);
    EXPECT_EQ(only.report.peak_memory, any.report.peak_memory);
    EXPECT_EQ(only.report.ranks.size(), any.report.ranks.size());
    EXPECT_EQ(only.report.ranks[simulator::RankClassId(1)].busy,
              any.report.ranks[simulator::RankClassId(1)].busy);
  }
}

// What is known of a way is of that way, also where it is not played.
TEST(PlanPlayer, ForgetsTheFactsOfTheWayBefore) {
  const Setting setting = MlpSetting();
  const ParallelPlan plan = ByFlops({.hp = 2});
  PlayBudget budget{.left = 1};
  PlanPlayer player(setting, plan, budget);
  ASSERT_TRUE(player.Prepare().ok());
  WayFacts facts;
  const auto run = player.Play({}, &facts);
  ASSERT_TRUE(run.ok());
  EXPECT_GT(facts.fastest, Duration());
  EXPECT_LE(facts.fastest, run->report.step_time);
  EXPECT_GT(facts.least_peak, Bytes(0));
  EXPECT_LE(facts.least_peak, run->report.peak_memory);
  EXPECT_TRUE(absl::IsResourceExhausted(player.Play({.by_cost = false}, &facts).status()));
  EXPECT_EQ(facts.fastest, Duration());
  EXPECT_EQ(facts.least_peak, Bytes(0));
  EXPECT_EQ(facts.report.memory, 0);
}

// Regression: what was known before of ways whose ranks are alike was set beside what plays of the
// others said, on links that are crowded.
TEST(PlanPlayer, TellsAllWaysAsItTellsTheFirst) {
  const Setting setting = ModelSetting("gpt", "layers=4,hidden=1024,heads=16,seq=1024,vocab=32000",
                                       32, "pcie-workstation:8");
  const ParallelPlan plan = {.hp = 16, .pp = 2, .microbatches = 4, .schedule = "interleaved"};
  const Way plain, dear_links{.link_price = 1e6};
  const auto tell = [](PlanPlayer& player, const Way& way, WayFacts& facts) {
    const auto run = player.Play(way, &facts);
    EXPECT_TRUE(run.ok()) << run.status();
    return run->report.step_time;
  };
  WayFacts facts;
  PlanPlayer alike(setting, plan), crowded(setting, plan);
  ASSERT_TRUE(alike.Prepare().ok() && crowded.Prepare().ok());
  tell(alike, dear_links, facts);
  EXPECT_GT(facts.bound, Bytes(0)) << "nothing is known of it";
  tell(crowded, plain, facts);
  EXPECT_EQ(facts.bound, Bytes(0)) << "its ranks are alike";
  tell(crowded, dear_links, facts);
  EXPECT_EQ(facts.bound, Bytes(0));
}

// Stages that need the least memory are of those that were played already: they would have been
// taken, had they been better.
TEST(PlanPlayer, PlaysNoCutTwiceForLessMemory) {
  const Setting setting = MlpSetting();
  const ParallelPlan plan = {.hp = 2, .pp = 2, .microbatches = 2};
  PlanPlayer player(setting, plan);
  ASSERT_TRUE(player.Prepare().ok());
  WayFacts all, least;
  ASSERT_TRUE(player.Play({}, &all).ok());
  const auto again = player.Play({.stage_share = 0}, &least);
  EXPECT_TRUE(absl::IsCancelled(again.status())) << again.status();
  EXPECT_EQ(least.least_peak, all.least_peak);
}

// One player plays ways in any order: what it keeps is the same for all.
TEST(Play, OfOneWayDoesNotDependOnThoseBefore) {
  const Setting setting = MlpSetting();
  const ParallelPlan plan = ByFlops({.dp = 2, .hp = 2, .pp = 2, .microbatches = 2});
  PlanPlayer player(setting, plan), fresh(setting, plan);
  ASSERT_TRUE(player.Prepare().ok() && fresh.Prepare().ok());
  const auto pattern = player.Play({.by_cost = false}), by_cost = player.Play({});
  const auto again = player.Play({.by_cost = false}), alone = fresh.Play({});
  ASSERT_TRUE(pattern.ok() && by_cost.ok() && again.ok() && alone.ok());
  EXPECT_EQ(again->trace, pattern->trace);
  EXPECT_EQ(alone->trace, by_cost->trace);
}

// Megatron's pattern is the same choice whether the plan or the way asks for it.
TEST(Play, ByThePatternIsThePlansOwn) {
  const Setting setting = MlpSetting();
  ParallelPlan plan = ByFlops({.hp = 4});
  PlanPlayer open(setting, plan);
  ParallelPlan megatron = plan;
  megatron.sharding = transforms::ShardingMethod::kMegatron;
  PlanPlayer fixed(setting, megatron);
  ASSERT_TRUE(open.Prepare().ok() && fixed.Prepare().ok());
  const auto by_way = open.Play({.by_cost = false}), by_plan = fixed.Play({});
  ASSERT_TRUE(by_way.ok() && by_plan.ok());
  EXPECT_EQ(by_way->trace, by_plan->trace);
}

// Backwards are parted only for schedules that run them so.
// The longer of the two runs that a steady state is the difference of may be the only one with too
// many tasks to simulate each rank.
TEST(Play, OfASteadyStateFoldsBothRunsOrNone) {
  Setting setting = MlpSetting("dgx-a100:2");
  ParallelPlan plan = {.dp = 3, .hp = 2, .pp = 2, .microbatches = 4, .schedule = "pipedream"};
  plan.sharding = transforms::ShardingMethod::kMegatron;
  double least = 1e9, most = 0;
  for (setting.lowering.most_unfolded_tasks = 0; setting.lowering.most_unfolded_tasks < 2000;
       setting.lowering.most_unfolded_tasks += 20) {
    const auto run = search::Play(setting, ByFlops(plan));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->report.ranks.size(), run->program.rank_count());
    least = std::min(least, run->report.step_time.seconds());
    most = std::max(most, run->report.step_time.seconds());
  }
  // Folded ranks have the pace of the slowest.
  EXPECT_GT(least, 0);
  EXPECT_LT(most, 2 * least);
}

TEST(Play, PartsBackwardsForSchedulesThatWantIt) {
  const Setting setting = MlpSetting();
  const auto steps = [&](const char* schedule, transforms::StepKind kind) {
    const ParallelPlan plan = ByFlops({.pp = 2, .microbatches = 4, .schedule = schedule});
    PlanPlayer player(setting, plan);
    EXPECT_TRUE(player.Prepare().ok());
    const auto run = player.Play({});
    EXPECT_TRUE(run.ok()) << run.status();
    return std::ranges::count_if(
        run->steps, [&](const lowering::LoweredStep& row) { return row.step.kind == kind; });
  };
  EXPECT_EQ(steps("1f1b", transforms::StepKind::kInputGradient), 0);
  EXPECT_EQ(steps("1f1b", transforms::StepKind::kBackward), 8);
  EXPECT_GT(steps("zb-h1", transforms::StepKind::kInputGradient), 0);
  EXPECT_GT(steps("zb-h1", transforms::StepKind::kWeightGradient), 0);
}

}  // namespace
}  // namespace plan_player_test_cc
}  // namespace orrery::search
