#include "simulator/goodput/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "simulator/goodput/best_interval.h"
#include "simulator/goodput/trials.h"
#include "support/sanitized_test_util.h"

namespace orrery::simulator::goodput {
namespace trial_test_cc {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

const Component* FindComponent(absl::string_view name) {
  for (const Component& component : AllComponents()) {
    if (component.name == name) return &component;
  }
  return nullptr;
}

// Eight hosts of which something fails every two hours, and which are repaired at once.
RunSpec Usual() {
  return {.job = {.hosts = 8,
                  .devices_per_host = 8,
                  .hosts_per_rack = 4,
                  .replicas = 4,
                  .microbatches = 8,
                  .stages = 2},
          .length_s = 20 * kDay,
          .step_s = 10,
          .failures = {{FindComponent("device"), 64 * 4 * kHour},
                       {FindComponent("software"), 64 * 4 * kHour}},
          .tiers = {{.name = "pfs", .every_steps = 60, .stall_s = 20, .load_s = 30}},
          .recovery = {.detect = {30, 90}, .restart = {120, 120}}};
}

double Lost(const TrialResult& result, Cause cause) {
  return result.lost_s[static_cast<size_t>(cause)];
}

TEST(Trial, TimesAddUpToTheRun) {
  for (uint64_t seed = 0; seed < CasesToWalk(400u); ++seed) {
    Draws draws(seed, 1, 2);
    RunSpec spec = Usual();
    spec.failures.push_back({FindComponent("rack"), 100 * kHour});
    spec.recovery.repair_s = draws.Uniform() * kDay;
    spec.recovery.spares = static_cast<int64_t>(draws.Uniform() * 4);
    spec.recovery.when_short = static_cast<WhenShort>(static_cast<int>(draws.Uniform() * 2.999));
    spec.recovery.swap = {0, 100};
    spec.tiers.push_back({.name = "host",
                          .survives = Loss::kProcesses,
                          .every_steps = 12,
                          .stall_s = 1,
                          .write_s = 5,
                          .drag_s = 1,
                          .load_s = 2});
    OrderTiers(spec.tiers, spec.step_s);
    spec.stops = {{.name = "maintenance", .every_s = kDay, .away = {600, 900}, .notice_s = 1e9},
                  {.name = "preemption",
                   .every_s = kDay,
                   .random = true,
                   .away = {0, 900},
                   .notice_s = draws.Uniform() * 60}};
    ASSERT_TRUE(CheckRun(spec).ok());
    std::vector<Episode> episodes;
    const TrialResult result = PlayTrial(spec, seed, 0, &episodes);
    const double lost = std::accumulate(result.lost_s.begin(), result.lost_s.end(), 0.0);
    EXPECT_NEAR(result.trained_s + lost, spec.length_s, 1e-4) << seed;
    for (const double seconds : result.lost_s) EXPECT_GE(seconds, -1e-6);
    EXPECT_LE(result.worth_s, result.trained_s + 1e-6);
    if (spec.recovery.when_short == WhenShort::kWait) {
      EXPECT_NEAR(result.worth_s, result.trained_s, 1e-4);
    }
    // Episodes follow each other without a gap.
    double end_s = 0;
    for (const Episode& episode : episodes) {
      EXPECT_NEAR(episode.start_s, end_s, 1e-6);
      EXPECT_LT(episode.start_s, episode.end_s);
      end_s = episode.end_s;
    }
    EXPECT_NEAR(end_s, spec.length_s, 1e-6);
  }
}

TEST(Trial, WithoutFailuresOnlyCheckpointsCost) {
  RunSpec spec = Usual();
  spec.failures.clear();
  const TrialResult result = PlayTrial(spec, 1, 0);
  const double block_s = 60 * 10 + 20;
  EXPECT_NEAR(Lost(result, Cause::kCheckpoints), spec.length_s / block_s * 20, 20);
  EXPECT_NEAR(result.trained_s, spec.length_s / block_s * 600, 600);
  EXPECT_EQ(result.saves[0], static_cast<int64_t>(spec.length_s / block_s));
}

TEST(Trial, IsWhatDalyComputes) {
  for (const double interval_steps : {6, 30, 120, 400}) {
    RunSpec spec = Usual();
    spec.tiers[0].every_steps = static_cast<int64_t>(interval_steps);
    spec.recovery.detect = {100, 100};
    const RunSummary summary = Summarize(spec, PlayTrials(spec, 400, {.seed = 3, .threads = 2}));
    const double wanted =
        DalyEfficiency(interval_steps * spec.step_s, 20, 100 + 120 + 30, 2 * kHour);
    // Twice the interval: one of 400 means may be outside of it.
    EXPECT_NEAR(summary.effective.mean, wanted, 2 * summary.effective.ci95) << interval_steps;
    EXPECT_LT(summary.effective.ci95, 0.002);
    EXPECT_NEAR(summary.interruptions.mean, 20 * 12, 3 * summary.interruptions.ci95);
  }
}

TEST(Trial, FailuresDoNotDependOnWhatIsDoneAboutThem) {
  RunSpec spec = Usual();
  const TrialResult before = PlayTrial(spec, 5, 7);
  spec.tiers[0].every_steps = 5;
  spec.recovery.detect = {0, 0};
  EXPECT_EQ(PlayTrial(spec, 5, 7).failures, before.failures);
  EXPECT_NE(PlayTrial(spec, 5, 8).failures, before.failures);
  EXPECT_NE(PlayTrial(spec, 6, 7).failures, before.failures);
}

// The work that is lost is that since the last checkpoint which survives.
TEST(Trial, ACheckpointOfATierHelpsAgainstWhatItSurvives) {
  const auto rework = [](absl::string_view component, Loss survives) {
    RunSpec spec = Usual();
    spec.failures = {{FindComponent(component), 1}};
    spec.failures[0].mtbf_s =
        static_cast<double>(spec.failures[0].component->count(spec.job)) * 6 * kHour;
    spec.tiers = {{.name = "near", .survives = survives, .every_steps = 6},
                  {.name = "pfs", .every_steps = 600}};
    const RunSummary summary = Summarize(spec, PlayTrials(spec, 100, {.seed = 1, .threads = 2}));
    return summary.lost[static_cast<size_t>(Cause::kRework)] * spec.length_s /
           summary.interruptions.mean;
  };
  constexpr double kNear = 6 * 10 / 2, kFar = 600 * 10 / 2;  // half of what lies between two
  constexpr double kTolerance = 0.1;
  for (const auto& [component, loss] :
       {std::pair("software", Loss::kProcesses), std::pair("host", Loss::kHost),
        std::pair("switch", Loss::kRack)}) {
    for (const Loss survives : {Loss::kProcesses, Loss::kHost, Loss::kRack}) {
      const double wanted = survives >= loss ? kNear : kFar;
      EXPECT_NEAR(rework(component, survives), wanted, kTolerance * wanted)
          << component << " " << static_cast<int>(survives);
    }
  }
}

// Where nothing survives, work begins anew.
TEST(Trial, WithoutACheckpointAllIsLost) {
  RunSpec spec = Usual();
  spec.tiers.clear();
  std::vector<Episode> episodes;
  const TrialResult result = PlayTrial(spec, 1, 0, &episodes);
  ASSERT_EQ(episodes.back().what, "training");
  EXPECT_NEAR(result.trained_s, episodes.back().end_s - episodes.back().start_s, 1e-6);
}

TEST(Trial, WaitsForARepairWhereNothingIsSpare) {
  RunSpec spec = Usual();
  spec.failures = {{FindComponent("host"), 8 * kDay}};
  spec.recovery = {.repair_s = 6 * kHour};
  const RunSummary waits = Summarize(spec, PlayTrials(spec, 300, {.seed = 1, .threads = 2}));
  // Failures come once a day, whatever is away by then: some host is for a share of the time that
  // follows from a queue with as many servers as there are hosts (M/G/oo).
  EXPECT_NEAR(waits.lost[static_cast<size_t>(Cause::kHosts)], 1 - std::exp(-6.0 / 24), 0.01);
  spec.recovery.spares = 50;
  const RunSummary spare = Summarize(spec, PlayTrials(spec, 300, {.seed = 1, .threads = 2}));
  EXPECT_EQ(spare.lost[static_cast<size_t>(Cause::kHosts)], 0);
  EXPECT_GT(spare.goodput.mean, waits.goodput.mean);
}

TEST(Trial, MoreSparesAreNeverWorse) {
  RunSpec spec = Usual();
  spec.recovery.repair_s = 12 * kHour;
  double before = 0;
  for (const int64_t spares : {0, 1, 2, 4, 8, 16}) {
    spec.recovery.spares = spares;
    const RunSummary summary = Summarize(spec, PlayTrials(spec, 200, {.seed = 1, .threads = 2}));
    EXPECT_GE(summary.goodput.mean, before - summary.goodput.ci95) << spares;
    before = summary.goodput.mean;
  }
}

TEST(Trial, AJobThatShrinksTrainsOnWithLess) {
  RunSpec spec = Usual();
  spec.failures = {{FindComponent("host"), 8 * kDay}};
  spec.recovery = {.restart = {60, 60}, .repair_s = kDay};
  const RunSummary waits = Summarize(spec, PlayTrials(spec, 200, {.seed = 1, .threads = 2}));
  spec.recovery.when_short = WhenShort::kShrink;
  const RunSummary shrinks = Summarize(spec, PlayTrials(spec, 200, {.seed = 1, .threads = 2}));
  EXPECT_GT(shrinks.goodput.mean, waits.goodput.mean + 0.2);
  // It trains most of the time, but less than all of it.
  EXPECT_GT(shrinks.effective.mean, shrinks.goodput.mean + 0.05);
  spec.recovery.when_short = WhenShort::kKeepBatch;
  const RunSummary keeps = Summarize(spec, PlayTrials(spec, 200, {.seed = 1, .threads = 2}));
  // 3 of 4 replicas: 11 microbatches and a ramp in place of 8 and one are 0.75 of the speed, too.
  EXPECT_NEAR(keeps.goodput.mean, shrinks.goodput.mean, 0.02);
}

TEST(Trial, ShrunkJobsGrowAgainWhenHostsAreBack) {
  RunSpec spec = Usual();
  spec.failures = {{FindComponent("host"), 8 * 5 * kDay}};
  spec.recovery = {.repair_s = kHour, .when_short = WhenShort::kShrink};
  std::vector<Episode> episodes;
  PlayTrial(spec, 2, 0, &episodes);
  std::set<std::string> replicas;
  for (const Episode& episode : episodes) {
    if (episode.what == "training") replicas.insert(episode.detail.substr(0, 6));
  }
  EXPECT_THAT(replicas, testing::ElementsAre("3 of 4", "4 of 4"));
  EXPECT_EQ(episodes.back().detail.substr(0, 6), "4 of 4");
}

TEST(Trial, NoticeSavesTheWorkBeforeAStop) {
  RunSpec spec = Usual();
  spec.failures.clear();
  spec.stops = {{.name = "preemption", .every_s = 6 * kHour, .random = true, .away = {600, 600}}};
  const RunSummary none = Summarize(spec, PlayTrials(spec, 50, {.seed = 1, .threads = 2}));
  spec.stops[0].notice_s = 19;  // a checkpoint takes 20
  const RunSummary little = Summarize(spec, PlayTrials(spec, 50, {.seed = 1, .threads = 2}));
  spec.stops[0].notice_s = 20;
  const RunSummary enough = Summarize(spec, PlayTrials(spec, 50, {.seed = 1, .threads = 2}));
  const auto rework = static_cast<size_t>(Cause::kRework);
  EXPECT_GT(none.lost[rework], 0.005);
  EXPECT_EQ(little.lost[rework], none.lost[rework]);
  EXPECT_EQ(enough.lost[rework], 0);
  EXPECT_NEAR(enough.lost[static_cast<size_t>(Cause::kPreemption)] * spec.length_s,
              enough.planned_stops * 600, 600);
}

TEST(Trial, MaintenanceComesByTheClock) {
  RunSpec spec = Usual();
  spec.failures.clear();
  spec.stops = {
      {.name = "maintenance", .every_s = kDay, .away = {6 * kHour, 6 * kHour}, .notice_s = 1e9}};
  std::vector<Episode> episodes;
  const TrialResult result = PlayTrial(spec, 1, 0, &episodes);
  EXPECT_EQ(result.planned_stops, 19);
  EXPECT_NEAR(Lost(result, Cause::kMaintenance), 19 * 6 * kHour, 1e-6);
  EXPECT_EQ(Lost(result, Cause::kRework), 0);
}

}  // namespace
}  // namespace trial_test_cc
}  // namespace orrery::simulator::goodput
