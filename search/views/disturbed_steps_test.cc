#include "search/views/disturbed_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster/names/named_links.h"
#include "search/settings/setting_test_util.h"
#include "simulator/jitter/distribution.h"
#include "transforms/plan/plan_test_util.h"

namespace orrery::search {
namespace disturbed_steps_test_cc {
namespace {

using simulator::Spread;
using testing::ElementsAre;

Spread Of(absl::string_view name, double spread) {
  return {simulator::FindJitterDistribution(name), spread};
}

ParallelPlan ByPattern(ParallelPlan plan) {
  plan.sharding = transforms::ShardingMethod::kMegatron;
  return transforms::ByFlops(plan);
}

StepsAnswer Answered(Setting& setting, const ParallelPlan& plan, const StepsQuestion& question) {
  const absl::StatusOr<search::Run> run = Play(setting, plan);
  EXPECT_TRUE(run.ok()) << run.status();
  absl::StatusOr<StepsAnswer> answer = PlayDisturbed(setting, plan, *run, question);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return *std::move(answer);
}

TEST(DisturbedSteps, OfNothingAreTheStepOfTheReport) {
  for (const ParallelPlan& plan : {ParallelPlan{.dp = 4},
                                   {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4},
                                   {.pp = 4, .microbatches = 8, .schedule = "zb-h1"},
                                   {.pp = 2, .microbatches = 4, .schedule = "zbv"},
                                   {.dp = 8, .zero = 3}}) {
    Setting setting = MlpSetting();
    const ParallelPlan pattern = ByPattern(plan);
    const absl::StatusOr<search::Run> run = Play(setting, pattern);
    ASSERT_TRUE(run.ok()) << run.status();
    const auto answer = PlayDisturbed(setting, pattern, *run, {.disturbances = {}, .steps = 2});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->undisturbed, run->report.step_time);
    EXPECT_THAT(answer->times, ElementsAre(run->report.step_time, run->report.step_time));
    EXPECT_FALSE(answer->at_least.has_value());
    EXPECT_TRUE(answer->late.empty());
  }
}

// A rank that is slow, and ranks of one stage that draw, are folded; --no-fold finds the same
// picosecond.
TEST(DisturbedSteps, AreFoldedWhereThatIsExact) {
  const std::vector<simulator::Disturbances> disturbances = {
      {.slow = {{5, 1.3}}},
      {.step = Of("normal", 0.01), .slow = {{0, 2.0}}},
      {.rank = Of("normal", 0.02), .seed = 4}};
  for (const simulator::Disturbances& of : disturbances) {
    for (const ParallelPlan& plan : {ParallelPlan{.dp = 8},
                                     {.dp = 2, .hp = 4},
                                     {.dp = 4, .zero = 3},
                                     {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4}}) {
      if (plan.pp > 1 && of.rank.has_value()) continue;
      Setting setting = MlpSetting();
      const ParallelPlan pattern = ByPattern(plan);
      const StepsAnswer folded =
          Answered(setting, pattern, {.disturbances = of, .steps = 10, .threads = 2});
      EXPECT_EQ(folded.folding, StepsFolding::kExact);
      setting.lowering.fold = false;
      const StepsAnswer each = Answered(setting, pattern, {.disturbances = of, .steps = 10});
      EXPECT_EQ(each.folding, StepsFolding::kEachRank);
      EXPECT_EQ(folded.times, each.times) << ToString(pattern, {});
      EXPECT_LT(folded.tasks, each.tasks);
      EXPECT_GT(folded.figures.mean_s, 0.999 * folded.undisturbed.seconds());
    }
  }
}

// What all ranks take longer leaves them alike, also where they share links.
TEST(DisturbedSteps, AreFoldedWhereRanksStayAlike) {
  Setting setting = MlpSetting("nodes:2x4@300GB/s,nic=1GB/s");
  const ParallelPlan plan = ByPattern({.dp = 4, .pp = 2, .microbatches = 4});
  const StepsQuestion question{.disturbances = {.step = Of("lognormal", 0.1)}, .steps = 10};
  const StepsAnswer folded = Answered(setting, plan, question);
  EXPECT_EQ(folded.folding, StepsFolding::kExact);
  setting.lowering.fold = false;
  EXPECT_EQ(Answered(setting, plan, question).times, folded.times);
}

// Where it is not exact, ranks are simulated one by one as long as they are few.
TEST(DisturbedSteps, AreUnfoldedWhereThatIsNot) {
  Setting setting = MlpSetting();
  const ParallelPlan plan = ByPattern({.dp = 2, .hp = 2, .pp = 2, .microbatches = 4});
  const StepsQuestion question{.disturbances = {.rank = Of("normal", 0.03)}, .steps = 30};
  const StepsAnswer each = Answered(setting, plan, question);
  EXPECT_EQ(each.folding, StepsFolding::kEachRank);
  EXPECT_EQ(each.waits.size(), 8);
  setting.lowering.most_unfolded_tasks = 1;
  const StepsAnswer bounds = Answered(setting, plan, question);
  EXPECT_EQ(bounds.folding, StepsFolding::kFromBothSides);
  ASSERT_TRUE(bounds.at_least.has_value());
  EXPECT_LE(bounds.at_least->mean_s, each.figures.mean_s);
  EXPECT_GE(bounds.figures.mean_s, each.figures.mean_s);
}

TEST(DisturbedSteps, SayWhoIsWaitedForAndWhatEachSourceCosts) {
  for (const bool fold : {true, false}) {
    Setting setting = MlpSetting();
    setting.lowering.fold = fold;
    const StepsAnswer answer = Answered(
        setting, ByPattern({.dp = 8}),
        {.disturbances = {.step = Of("normal", 0.01), .slow = {{5, 1.5}, {2, 1.2}}}, .steps = 20});
    ASSERT_EQ(answer.late.size(), 1);
    EXPECT_EQ(answer.late[0].rank, 5);
    EXPECT_DOUBLE_EQ(answer.late[0].share, 1);
    std::vector<std::string> sources;
    for (const WithoutSource& without : answer.without) sources.push_back(without.source);
    ASSERT_THAT(sources, ElementsAre("step", "slow rank=5", "slow rank=2"));
    EXPECT_LT(answer.without[1].figures.mean_s, answer.figures.mean_s);
    EXPECT_EQ(answer.without[2].figures.mean_s, answer.figures.mean_s);  // rank 5 is slower
    EXPECT_EQ(answer.without[0].figures.p5_s, answer.without[0].figures.p95_s);
  }
}

// All nics at half their rate are the nics of another cluster.
TEST(DisturbedSteps, DegradeLinks) {
  const std::string spec = "nodes:2x4@300GB/s,nic=25GB/s", half = "nodes:2x4@300GB/s,nic=12.5GB/s";
  const ParallelPlan plan = ByPattern({.dp = 8});
  Setting setting = MlpSetting(spec);
  const auto links_of = [&](absl::string_view name, double share) {
    return DegradedLinks{std::string(name), *cluster::FindLinks(setting.cluster.topology, name),
                         share};
  };
  StepsQuestion question{.disturbances = {}, .links = {links_of("nic", 0.5)}, .steps = 1};
  const StepsAnswer slower = Answered(setting, plan, question);
  Setting other = MlpSetting(half);
  EXPECT_EQ(slower.times.front(), Play(other, plan)->report.step_time);
  EXPECT_EQ(slower.undisturbed, Play(setting, plan)->report.step_time);
  EXPECT_GT(slower.times.front(), slower.undisturbed);
  ASSERT_EQ(slower.without.size(), 1);
  EXPECT_EQ(slower.without[0].source, "link=nic");
  EXPECT_DOUBLE_EQ(slower.without[0].figures.mean_s, slower.undisturbed.seconds());
  // One of them holds up all, too: a ring is as fast as its slowest link.
  question.links = {links_of("device3/nic", 0.01)};
  const StepsAnswer one = Answered(setting, plan, question);
  EXPECT_GT(one.times.front(), one.undisturbed);
}

// Links that make ranks unlike, of more than are simulated one by one: no figure is called exact.
TEST(DisturbedSteps, OfUnlikeRanksThatAreFoldedAreNotExact) {
  Setting setting = MlpSetting("nodes:2x4@300GB/s,nic=25GB/s");
  const ParallelPlan plan = ByPattern({.dp = 4, .pp = 2, .microbatches = 4});
  StepsQuestion question{.disturbances = {.step = Of("normal", 0.01)}, .steps = 5};
  const auto links = cluster::FindLinks(setting.cluster.topology, "device1/nic");
  ASSERT_TRUE(links.ok()) << links.status();
  question.links = {{.name = "device1/nic", .links = *links, .share = 0.1}};
  EXPECT_EQ(Answered(setting, plan, question).folding, StepsFolding::kEachRank);
  setting.lowering.most_unfolded_tasks = 1;
  EXPECT_EQ(Answered(setting, plan, question).folding, StepsFolding::kRoughly);
}

TEST(DisturbedSteps, LeaveOutTheCostModelsOwnStragglersWhereRanksDraw) {
  Setting setting = MlpSetting("dgx-h100:1");
  setting.cost_model = cost_models::MakeCostModel("kernels").value();
  const ParallelPlan plan = ByPattern({.dp = 8});
  const absl::StatusOr<search::Run> run = Play(setting, plan);
  ASSERT_TRUE(run.ok());
  const auto ranks = PlayDisturbed(setting, plan, *run,
                                   {.disturbances = {.rank = Of("normal", 0.01)}, .steps = 1});
  const auto steps = PlayDisturbed(setting, plan, *run,
                                   {.disturbances = {.step = Of("normal", 0.01)}, .steps = 1});
  EXPECT_TRUE(ranks->own_stragglers);
  EXPECT_FALSE(steps->own_stragglers);
  EXPECT_LT(ranks->undisturbed, run->report.step_time);
  EXPECT_EQ(steps->undisturbed, run->report.step_time);
}

TEST(DisturbedSteps, AreNotThoseOfAsynchronousSchedules) {
  Setting setting = MlpSetting();
  ParallelPlan plan = ByPattern({.pp = 4, .microbatches = 8, .schedule = "pipedream"});
  const absl::StatusOr<search::Run> run = Play(setting, plan);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto answer = PlayDisturbed(setting, plan, *run, {.disturbances = {}, .steps = 1});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(answer.status().message(), testing::HasSubstr("pipedream"));
}

}  // namespace
}  // namespace disturbed_steps_test_cc
}  // namespace orrery::search
