#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/attempts.h"
#include "search/settings/setting_test_util.h"

// Where stages begin near the limit of memory, held against all divisions that there are.

namespace orrery::search {
namespace divisions_test_cc {
namespace {

// A training step of 32 samples.
Setting GptSetting(const std::string& keys) {
  Setting setting = MlpSetting();
  setting.step = ir::BuildModel("gpt", keys, 32);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.batch_size = 32;
  return setting;
}

Run Best(const Setting& setting, const ParallelPlan& plan) {
  PlanPlayer player(setting, plan);
  EXPECT_TRUE(player.Prepare().ok());
  absl::StatusOr<Run> run = BestRun(player);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

// Divisions of `layers` into `stages` with a layer each at least.
void ForEachDivision(int64_t layers, size_t stages, std::vector<int64_t> begun,
                     const std::function<void(const std::vector<int64_t>&)>& visit) {
  if (begun.size() + 1 == stages) {
    begun.push_back(layers);
    return visit(begun);
  }
  const auto left = static_cast<int64_t>(stages - begun.size() - 1);
  for (int64_t next = 1; next + left <= layers; ++next) {
    std::vector<int64_t> more = begun;
    more.push_back(next);
    ForEachDivision(layers - next, stages, std::move(more), visit);
  }
}

// Whatever room there is, of all divisions that fit none is much faster than what is taken, on
// average.
TEST(Divisions, CutsAboutAsWellAsAnyDivisionThatFits) {
  Setting setting = GptSetting("layers=10,hidden=128,heads=8,seq=512,vocab=64,flash=1");
  for (const int64_t zero : {0, 1}) {
    const ParallelPlan plan = {.dp = 2, .pp = 4, .microbatches = 8, .zero = zero};
    setting.lowering.memory_limit = Bytes(0);
    std::vector<std::pair<Bytes, Duration>> cuts;
    ForEachDivision(10, 4, {}, [&](const std::vector<int64_t>& layers) {
      ParallelPlan given = plan;
      given.layers_per_stage = layers;
      const search::Run run = Best(setting, given);
      cuts.emplace_back(run.report.peak_memory, run.report.step_time);
    });
    const Bytes most = Best(setting, plan).report.peak_memory;
    int32_t tight = 0;
    double slower = 0;
    for (int64_t percent = 62; percent < 100; percent += 2) {
      setting.lowering.memory_limit = Bytes(most.count() * percent / 100);
      std::optional<Duration> fastest;
      for (const auto& [peak, time] : cuts) {
        if (peak > setting.lowering.memory_limit) continue;
        fastest = std::min(fastest.value_or(time), time);
      }
      if (!fastest.has_value()) continue;
      const search::Run run = Best(setting, plan);
      EXPECT_TRUE(run.report.fits) << "zero " << zero << " within " << percent << " %";
      slower += run.report.step_time.seconds() / fastest->seconds() - 1;
      ++tight;
    }
    EXPECT_GT(tight, 10);
    EXPECT_LT(slower / tight, 0.05);  // of two cuts that need less than the fastest 0.22
  }
}

// Of what ZeRO shards each rank has a part: what is taken as needing the least does.
TEST(Divisions, NeedLeastByWhatZeroLeaves) {
  for (const char* shape : {"hidden=64,seq=32", "hidden=64,seq=64", "hidden=64,seq=128"}) {
    Setting setting = GptSetting(absl::StrCat("layers=40,heads=8,vocab=64,flash=1,", shape));
    setting.lowering.memory_limit = Bytes(1);  // to which none keeps
    for (const int64_t zero : {0, 1}) {
      SCOPED_TRACE(absl::StrCat(shape, " zero ", zero));
      const ParallelPlan plan = {.dp = 4, .pp = 2, .microbatches = 4, .zero = zero};
      const auto peak_of = [&](const ParallelPlan& of, const Way& way) {
        PlanPlayer player(setting, of);
        EXPECT_TRUE(player.Prepare().ok());
        return static_cast<double>(player.Play(way)->report.peak_memory.count());
      };
      std::vector<double> peaks;
      ForEachDivision(40, 2, {}, [&](const std::vector<int64_t>& layers) {
        ParallelPlan given = plan;
        given.layers_per_stage = layers;
        peaks.push_back(peak_of(given, {}));
      });
      EXPECT_LE(peak_of(plan, {.stage_share = 0}), 1.01 * *std::ranges::min_element(peaks));
    }
  }
}

// Where stages that are to need least surely do not fit, there are no others; and those with less
// memory than ones that surely are too slow are slower.
TEST(BestRun, CutsNoFinerThanMayHelp) {
  Setting setting = GptSetting("layers=24,hidden=1024,heads=8,seq=512,vocab=65536,flash=1");
  const ParallelPlan plan = {.pp = 4, .microbatches = 32};
  PlanPlayer once(setting, plan);
  ASSERT_TRUE(once.Prepare().ok());
  ASSERT_TRUE(once.Play({}).ok());
  const int64_t of_one = once.work() - once.tasks();
  // Its peak, and how many ways were tried.
  const auto within = [&](Bytes limit) {
    setting.lowering.memory_limit = limit;
    PlanPlayer player(setting, plan);
    EXPECT_TRUE(player.Prepare().ok());
    const Bytes peak = BestRun(player)->report.peak_memory;
    return std::pair(peak, (player.work() - player.tasks()) / of_one);
  };
  constexpr int64_t kAll = 1 + 8;  // with as much as there is, and with eight shares of it
  const auto [peak, tries] = within(Bytes(0));
  EXPECT_GT(tries, 2);
  EXPECT_LT(tries, kAll);
  EXPECT_EQ(within(Bytes(peak.count() * 9 / 10)).second, kAll) << "as long as nothing fits";
  EXPECT_LT(within(Bytes(peak.count() / 4)).second, 5);
}

}  // namespace
}  // namespace divisions_test_cc
}  // namespace orrery::search
