#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/evaluate.h"
#include "search/memory_fit.h"
#include "search/settings/setting_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/plan_test_util.h"

// Runs that do not fit, with figures that are made up.

namespace orrery::search {
namespace misfit_test_cc {
namespace {

using simulator::MemoryKind;
using simulator::RankClassId;

// Adds a rank with a limit of 100 bytes that holds so much of some kinds.
void AddRank(const std::vector<std::pair<MemoryKind, int64_t>>& held, Run& run) {
  const int32_t number = run.program.rank_count();
  const RankClassId id = run.program.AddRank({.members = {10 * number}, .capacity = Bytes(100)});
  run.report.ranks.resize(number + 1);
  simulator::RankReport& rank = run.report.ranks[id];
  for (const auto& [kind, bytes] : held) {
    rank.memory.by_kind[static_cast<size_t>(kind)] = Bytes(bytes);
    rank.memory.total += Bytes(bytes);
  }
  rank.fits = rank.memory.total <= Bytes(100);
}

TEST(MisfitText, IsOfTheFirstRankThatNeedsMost) {
  search::Run run;
  AddRank({{MemoryKind::kOther, 100}}, run);
  AddRank({{MemoryKind::kOther, 200}}, run);
  AddRank({{MemoryKind::kOther, 60}, {MemoryKind::kParameters, 240}}, run);
  AddRank({{MemoryKind::kOther, 300}}, run);
  AddRank({{MemoryKind::kOther, 50}}, run);
  EXPECT_EQ(MisfitText(run),
            "needs 300 B on rank 20; the limit is 100 B; 200 B too much: parameters 240 B, other "
            "60 B");
}

// On one device, into which nothing fits: what was tried, and came nearest.
PlayedSuggestions Tried(const std::vector<std::pair<MemoryKind, int64_t>>& held, size_t tries) {
  Setting setting = MlpSetting("uniform:1@200Gbps");
  setting.lowering.memory_limit = Bytes(1);
  Run run;
  AddRank(held, run);
  return PlaySuggestions(setting, transforms::ByFlops({}), run, 4, tries);
}

TEST(PlayedSuggestions, TheLeastIsOfThoseThatWereTried) {
  Setting setting = MlpSetting("uniform:1@200Gbps");
  std::vector<Bytes> peaks;
  for (const transforms::Suggestion& suggestion : Neighbours(setting, transforms::ByFlops({}))) {
    const auto run = Play(setting, suggestion.plan);
    ASSERT_TRUE(run.ok()) << run.status();
    peaks.push_back(run->report.peak_memory);
    const PlayedSuggestions found = Tried({{MemoryKind::kOther, 101}}, peaks.size());
    ASSERT_TRUE(found.least.has_value());
    EXPECT_TRUE(found.fit.empty());
    EXPECT_EQ(found.least->peak_memory, *std::ranges::min_element(peaks)) << peaks.size();
    if (peaks.size() == 4) break;
  }
  EXPECT_GT(peaks.size(), 2u);
}

// Sixty-four layers that do not fit are played in many ways, and so would be a dozen changes, with
// ten times the work. They do what the run did, and at most one play more at the end of each half.
TEST(PlayedSuggestions, DoNoMoreWorkThanTheRun) {
  Setting setting = MlpSetting("uniform:8@200Gbps");
  setting.step = ir::BuildModel(
      "gpt",
      absl::StrCat("layers=", 2 * CasesToWalk(32), ",hidden=64,heads=8,seq=64,vocab=64,flash=1"),
      8);
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.batch_size = 8;
  const ParallelPlan plan = transforms::ByFlops({.hp = 2, .pp = 2, .microbatches = 2});
  const auto unlimited = Play(setting, plan);
  ASSERT_TRUE(unlimited.ok()) << unlimited.status();
  setting.lowering.memory_limit = Bytes(unlimited->report.peak_memory.count() * 2 / 5);
  const auto run = Play(setting, plan);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_FALSE(run->report.fits);
  const PlayedSuggestions found = PlaySuggestions(setting, plan, *run, 4, 100);
  EXPECT_GT(found.work, run->work / 4);
  EXPECT_LT(found.work, 4 * run->work);
}

TEST(SuggestionsText, TellsWhatWasNotPlayedToTheEnd) {
  transforms::Suggestion change;
  change.change = "--zero 3";
  PlayedSuggestion tried = {.suggestion = change,
                            .peak_memory = Bytes(7),
                            .step_time = Duration(3'000'000'000),
                            .at_most = true};
  EXPECT_EQ(SuggestionsText({.fit = {tried}}),
            "would fit with --zero 3 (7 B, at most 3.00 ms a step)");
  EXPECT_EQ(SuggestionsText({.fit = {}, .open = {"--pp 4", "--zero 1"}}),
            "nothing that was tried would make it fit; would take longer to try: --pp 4, --zero 1");
}

// A fifth above the limit is worth a try. More microbatches lessen none of these.
TEST(PlayedSuggestions, AreTriedWhereOneMayHope) {
  constexpr MemoryKind kKinds[] = {MemoryKind::kParameters, MemoryKind::kGradients,
                                   MemoryKind::kBuffers, MemoryKind::kOther};
  for (const MemoryKind one : kKinds) {
    EXPECT_TRUE(Tried({{one, 120}}, 1).least.has_value()) << ToString(one);
    for (const MemoryKind other : kKinds) {
      if (one == other) continue;
      EXPECT_FALSE(Tried({{one, 70}, {other, 70}}, 1).least.has_value())
          << ToString(one) << " " << ToString(other);
    }
  }
}

TEST(ClosestMisfit, IsTheFirstOfTheLeastMemory) {
  Setting setting = MlpSetting();
  setting.lowering.memory_limit = Bytes(1);
  const auto result = [](int64_t dp, int64_t bytes) {
    Result made;
    made.plan = transforms::ByFlops({.dp = dp});
    made.ran = true;
    made.peak_memory = Bytes(bytes);
    return made;
  };
  Result fits = result(8, 10);
  fits.fits = true;
  const auto closest = [&](const std::vector<Result>& results) {
    return ClosestMisfit([&](const ParallelPlan&) -> const Setting& { return setting; }, results);
  };
  EXPECT_THAT(closest({Result(), fits, result(1, 200), result(2, 100), result(4, 100)}),
              testing::StartsWith("closest: --dp 2 "));
  // What was not played has a bound alone: its peak is not what its row says.
  Result bounded = result(1, 1);
  bounded.ran = false;
  bounded.infeasible = {.reason = InfeasibleReason::kMemory, .detail = ""};
  EXPECT_THAT(closest({bounded, result(2, 200)}), testing::StartsWith("closest: --dp 2 "));
  EXPECT_THAT(closest({bounded, result(2, 1 << 30)}), testing::StartsWith("closest: --dp 1 "));
  EXPECT_EQ(closest({Result(), fits}), "");
  EXPECT_EQ(closest({}), "");
}

}  // namespace
}  // namespace misfit_test_cc
}  // namespace orrery::search
