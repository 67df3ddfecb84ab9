#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "simulator/goodput/trial.h"
#include "simulator/goodput/trials.h"

// What is lost with what fails, and what it takes until a run goes on.

namespace orrery::simulator::goodput {
namespace trial_recovery_test_cc {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;
constexpr double kForever = 1e9 * kDay;

// One of a component fails every so often.
FailureRate OneEvery(absl::string_view name, const JobShape& job, double seconds) {
  const auto component = std::ranges::find(AllComponents(), name, &Component::name);
  return {&*component, static_cast<double>(component->count(job)) * seconds};
}

// Eight hosts, two a replica, four a rack; nothing takes time but what a test says.
RunSpec Quick() {
  return {.job = {.hosts = 8, .hosts_per_rack = 4, .replicas = 4},
          .length_s = 20 * kDay,
          .step_s = 10,
          .tiers = {{.name = "pfs", .every_steps = 6}}};
}

RunSummary SummaryOf(const RunSpec& spec, size_t trials) {
  return Summarize(spec, PlayTrials(spec, trials, {.seed = 1, .threads = 2}));
}
double LostAFailure(const RunSpec& spec, Cause cause) {
  const RunSummary summary = SummaryOf(spec, 50);
  return summary.lost[static_cast<size_t>(cause)] * spec.length_s / summary.interruptions.mean;
}

std::set<std::string> SharesThatTrain(const RunSpec& spec, uint64_t seed) {
  std::vector<Episode> episodes;
  PlayTrial(spec, seed, 0, &episodes);
  std::set<std::string> shares;
  for (const Episode& episode : episodes) {
    if (episode.what == "training") shares.insert(episode.detail.substr(0, 6));
  }
  return shares;
}

TEST(TrialRecovery, OnlyLostHostsAreSwapped) {
  RunSpec spec = Quick();
  spec.recovery = {.restart = {100, 100}, .swap = {500, 500}};
  spec.failures = {OneEvery("software", spec.job, 6 * kHour)};
  EXPECT_NEAR(LostAFailure(spec, Cause::kRestart), 100, 2);
  spec.failures = {OneEvery("host", spec.job, 6 * kHour)};
  EXPECT_NEAR(LostAFailure(spec, Cause::kRestart), 600, 12);
}

TEST(TrialRecovery, ARackTakesAllOfItsHosts) {
  RunSpec spec = Quick();
  spec.recovery = {.repair_s = 2 * kHour, .when_short = WhenShort::kShrink};
  spec.failures = {OneEvery("rack", spec.job, 4 * kDay)};
  EXPECT_THAT(SharesThatTrain(spec, 1), testing::ElementsAre("2 of 4", "4 of 4"));
  spec.failures = {OneEvery("host", spec.job, 4 * kDay)};
  EXPECT_THAT(SharesThatTrain(spec, 1), testing::ElementsAre("3 of 4", "4 of 4"));
}

// Of hosts that fail one by one and are not repaired, each is there after a time t with
// probability e^(-t / MTBF): those that are left fail less often than all did.
TEST(TrialRecovery, FewerHostsFailLessOften) {
  RunSpec spec = Quick();
  spec.job.replicas = 8;
  spec.recovery = {.repair_s = kForever, .when_short = WhenShort::kShrink};
  spec.failures = {OneEvery("host", spec.job, spec.length_s / 8)};
  EXPECT_NEAR(SummaryOf(spec, 500).interruptions.mean, 8 * (1 - std::exp(-1.0)), 0.2);
}

TEST(TrialRecovery, HostsThatAreAwayDoNotFail) {
  RunSpec spec = Quick();
  spec.failures = {OneEvery("software", spec.job, 2 * kHour)};
  EXPECT_NEAR(SummaryOf(spec, 100).interruptions.mean, 20 * 12, 5);
  spec.stops = {{.name = "maintenance", .every_s = kDay, .away = {kDay / 2, kDay / 2}}};
  // All of the first day, and half of the others.
  EXPECT_NEAR(SummaryOf(spec, 100).interruptions.mean, 12 + 19 * 6, 5);
}

TEST(TrialRecovery, ComponentsFailByTheirNumberAndTheirTime) {
  RunSpec spec = Quick();
  spec.failures = {OneEvery("host", spec.job, 4 * kHour), OneEvery("device", spec.job, 4 * kHour),
                   OneEvery("switch", spec.job, 12 * kHour)};
  double hosts = 0, devices = 0, switches = 0;
  for (const TrialResult& result : PlayTrials(spec, 100, {.seed = 1, .threads = 2})) {
    hosts += result.failures[0];
    devices += result.failures[1];
    switches += result.failures[2];
  }
  EXPECT_NEAR(hosts / 100, 120, 4);
  EXPECT_NEAR(devices / 100, 120, 4);
  EXPECT_NEAR(switches / 100, 40, 3);
}

TEST(TrialRecovery, OfTwoCheckpointsThatHoldTheSameTheSoonerIsRead) {
  RunSpec spec = Quick();
  spec.failures = {OneEvery("software", spec.job, 6 * kHour)};
  const CheckpointTier slow{.name = "slow", .every_steps = 6, .load_s = 100};
  const CheckpointTier fast{.name = "fast", .every_steps = 6, .load_s = 1};
  for (const auto& tiers : {std::vector{slow, fast}, std::vector{fast, slow}}) {
    spec.tiers = tiers;
    EXPECT_NEAR(LostAFailure(spec, Cause::kLoading), 1, 0.1);
  }
}

// A failure is read from what survived it; hosts that join, from what all can read.
TEST(TrialRecovery, HostsThatJoinReadTheSafestCheckpoint) {
  RunSpec spec = Quick();
  spec.failures = {OneEvery("host", spec.job, 2 * kDay)};
  spec.recovery = {.repair_s = kHour, .when_short = WhenShort::kShrink};
  spec.tiers = {{.name = "near", .survives = Loss::kHost, .every_steps = 6, .load_s = 1},
                {.name = "pfs", .every_steps = 60, .load_s = 100}};
  spec.tiers[1].stall_s = 10;
  std::vector<Episode> episodes;
  const TrialResult result = PlayTrial(spec, 1, 0, &episodes);
  const auto joins = std::ranges::count(episodes, "before hosts join", &Episode::detail);
  ASSERT_GE(joins, 5);
  const double loading = result.lost_s[static_cast<size_t>(Cause::kLoading)];
  EXPECT_NEAR(loading, static_cast<double>(joins) * 100 + result.failures[0], 1e-6);
}

// Hosts go, and what is in them: a checkpoint there would be for nothing.
TEST(TrialRecovery, NothingIsSavedBeforeAStopThatTakesItAway) {
  RunSpec spec = Quick();
  spec.tiers = {{.name = "host", .survives = Loss::kProcesses, .every_steps = 1'000'000'000}};
  spec.tiers[0].stall_s = 20;
  spec.stops = {{.name = "maintenance", .every_s = kDay, .away = {600, 600}, .notice_s = 1e9}};
  const TrialResult result = PlayTrial(spec, 1, 0);
  EXPECT_EQ(result.lost_s[static_cast<size_t>(Cause::kCheckpoints)], 0);
  EXPECT_EQ(result.saves[0], 0);
  spec.tiers[0].survives = Loss::kRack;
  EXPECT_EQ(PlayTrial(spec, 1, 0).saves[0], 19);
}

}  // namespace
}  // namespace trial_recovery_test_cc
}  // namespace orrery::simulator::goodput
