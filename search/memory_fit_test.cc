#include "search/memory_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/models/model_test_util.h"
#include "search/details.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace memory_fit_test_cc {
namespace {

using transforms::ByFlops;
using transforms::Suggestion;

std::string ChangesOf(const Setting& setting, const ParallelPlan& plan) {
  return absl::StrJoin(
      Neighbours(setting, plan), "; ",
      [](std::string* out, const Suggestion& suggestion) { *out += suggestion.change; });
}

// On devices that are free; else instead of data-parallel ranks.
TEST(Neighbours, AreWithinTheBatchAndTheCluster) {
  const Setting setting = MlpSetting();  // 48 samples, 8 devices
  EXPECT_THAT(ChangesOf(setting, {}),
              testing::HasSubstr("--micro-batches 2; --micro-batches 4; --micro-batches 8"));
  EXPECT_THAT(ChangesOf(setting, {}), testing::HasSubstr("--pp 2; --hp 2; --pp 4; --hp 4"));
  EXPECT_THAT(ChangesOf(setting, {.dp = 4, .pp = 2, .microbatches = 12}),
              testing::HasSubstr("--pp 4 --dp 2; --hp 2 --dp 2"));
  EXPECT_THAT(ChangesOf(setting, {.dp = 4, .pp = 2, .microbatches = 12}),
              testing::Not(testing::HasSubstr("--micro-batches")));
  EXPECT_THAT(ChangesOf(setting, {.hp = 8, .microbatches = 48}),
              testing::Not(testing::AnyOf(testing::HasSubstr("pp"), testing::HasSubstr("hp"))));
}

// What one slice holds only while it works gets less with more of them.
TEST(Neighbours, AreMoreSlicesWhereTheSequenceDivides) {
  Setting setting = MlpSetting();
  setting.step = ir::BuildModel("gpt", "layers=2,hidden=8,heads=2,seq=12,vocab=8", 48);
  ParallelPlan plan{.pp = 2, .microbatches = 3, .schedule = "terapipe"};
  EXPECT_THAT(ChangesOf(setting, plan),
              testing::StartsWith("--micro-batches 6; --micro-batches 12; "));
  plan.slices.rows = {4, 4, 4};
  EXPECT_THAT(ChangesOf(setting, plan), testing::Not(testing::HasSubstr("--micro-batches")));
}

// The plan played where it does not fit into `limit`, and the suggestions that were played.
PlayedSuggestions PlayedSuggestionsOf(Setting& setting, const ParallelPlan& plan, Bytes limit,
                                      size_t enough = 4, size_t most_tries = 12) {
  setting.lowering.memory_limit = limit;
  const ParallelPlan by_flops = ByFlops(plan);  // and all neighbours
  const auto run = Play(setting, by_flops);
  EXPECT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->report.fits);
  return PlaySuggestions(setting, by_flops, *run, enough, most_tries);
}

std::vector<std::string> ChangesOf(const PlayedSuggestions& found) {
  std::vector<std::string> changes;
  for (const PlayedSuggestion& tried : found.fit) changes.push_back(tried.suggestion.change);
  return changes;
}

Bytes PeakOf(const Setting& setting, const ParallelPlan& plan) {
  const auto run = Play(setting, ByFlops(plan));
  EXPECT_TRUE(run.ok()) << run.status();
  return run->report.peak_memory;
}

TEST(PlayedSuggestions, FitAndAreWhatTheySay) {
  Setting setting = MlpSetting();
  const ParallelPlan plan = {.dp = 2};
  const Bytes limit(PeakOf(setting, plan).count() * 3 / 4);
  const PlayedSuggestions found = PlayedSuggestionsOf(setting, plan, limit);
  ASSERT_FALSE(found.fit.empty());
  EXPECT_LE(found.fit.size(), 4u);
  for (const PlayedSuggestion& tried : found.fit) {
    const auto run = Play(setting, tried.suggestion.plan);
    ASSERT_TRUE(run.ok()) << tried.suggestion.change;
    EXPECT_TRUE(run->report.fits);
    EXPECT_LE(tried.peak_memory, limit);
    EXPECT_EQ(run->report.peak_memory, tried.peak_memory);
    EXPECT_EQ(run->report.step_time, tried.step_time);
  }
  EXPECT_EQ(SuggestionsText(found).substr(0, 15), "would fit with ");
  EXPECT_THAT(SuggestionsText(found),
              testing::HasSubstr(absl::StrCat(found.fit.back().suggestion.change, " (",
                                              ToString(found.fit.back().peak_memory), ", ",
                                              ToString(found.fit.back().step_time), " a step)")));
}

Setting BigBatch(const std::string& cluster) {
  Setting setting = MlpSetting(cluster);
  setting.step = ir::Mlp({.layers = 4, .dim = 64, .batch = 4096}).value();
  EXPECT_TRUE(transforms::AppendOptimizer(setting.step, "adam").ok());
  setting.batch_size = 4096;
  return setting;
}

// Where nothing alone would do: more microbatches as well.
TEST(PlayedSuggestions, OfTwoThingsAtOnce) {
  Setting setting = BigBatch("uniform:2@200Gbps");
  const Bytes most = std::min(PeakOf(setting, {.microbatches = 8}), PeakOf(setting, {.pp = 2}));
  const std::vector<PlayedSuggestion> found = PlayedSuggestionsOf(setting, {}, most - Bytes(1)).fit;
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found[0].suggestion.change,
              testing::MatchesRegex("--micro-batches [0-9]+( --[ph]p 2)?|--hp 2"));
}

TEST(PlayedSuggestions, OfZeroAndRecomputationTogether) {
  Setting setting = BigBatch("uniform:8@200Gbps");
  const ParallelPlan plan = {.dp = 8, .microbatches = 512};
  ParallelPlan both = plan, zero = plan, recompute = plan;
  both.zero = zero.zero = 3;
  both.recompute = recompute.recompute = transforms::ParseRecomputePolicy("full").value();
  const Bytes least = PeakOf(setting, both);
  ASSERT_LT(least, PeakOf(setting, zero));
  ASSERT_LT(least, PeakOf(setting, recompute));
  const PlayedSuggestions found = PlayedSuggestionsOf(setting, plan, least, 8, 40);
  EXPECT_THAT(ChangesOf(found), testing::Contains("--zero 3 --recompute full"));
}

// As many microbatches as it takes, and not all that are more.
TEST(PlayedSuggestions, OfManyMicrobatches) {
  Setting setting = BigBatch("uniform:1@200Gbps");
  const PlayedSuggestions found =
      PlayedSuggestionsOf(setting, {}, PeakOf(setting, {.microbatches = 16}), 8, 40);
  const std::vector<std::string> changes = ChangesOf(found);
  EXPECT_THAT(changes, testing::IsSupersetOf({"--micro-batches 16", "--micro-batches 32"}));
  EXPECT_THAT(changes, testing::Not(testing::Contains("--micro-batches 64")));
}

// Enough of one kind ends that kind alone.
TEST(PlayedSuggestions, OfOtherKindsAfterEnoughOfOne) {
  Setting setting = BigBatch("uniform:8@200Gbps");
  const Bytes limit(PeakOf(setting, {}).count() * 4 / 5);
  const PlayedSuggestions found = PlayedSuggestionsOf(setting, {}, limit, 8, 40);
  EXPECT_THAT(ChangesOf(found),
              testing::IsSupersetOf({"--micro-batches 2", "--micro-batches 4", "--hp 2"}));
}

TEST(PlayedSuggestions, OfWhatFitsNowhere) {
  Setting setting = MlpSetting();
  EXPECT_TRUE(PlayedSuggestionsOf(setting, {}, Bytes(1)).fit.empty());
  EXPECT_EQ(SuggestionsText({}), "nothing that was tried would make it fit");
  const PlayedSuggestion near = {.suggestion = {.plan = {}, .change = "--hp 2"},
                                 .peak_memory = Bytes(2048)};
  EXPECT_EQ(SuggestionsText({.fit = {}, .least = near}),
            "nothing that was tried would make it fit; least: --hp 2 (2.00 KiB, 0.00 ns a step)");
}

TEST(PlayedSuggestions, TriesAreBounded) {
  Setting setting = MlpSetting();
  const Bytes limit = PeakOf(setting, {}) - Bytes(1);
  EXPECT_TRUE(PlayedSuggestionsOf(setting, {}, limit, /*enough=*/4, /*most_tries=*/0).fit.empty());
  EXPECT_EQ(PlayedSuggestionsOf(setting, {}, limit, /*enough=*/1).fit.size(), 1u);
}

TEST(Misfit, SaysByHowMuchAndOfWhat) {
  Setting setting = MlpSetting();
  setting.lowering.memory_limit = Bytes(100'000);
  const auto run = Play(setting, {});
  ASSERT_TRUE(run.ok());
  const simulator::MemoryUse& use = run->report.ranks[simulator::RankClassId(0)].memory;
  EXPECT_EQ(MisfitText(*run),
            absl::StrCat("needs ", ToString(use.total), " on rank 0; the limit is 97.7 KiB; ",
                         ToString(use.total - Bytes(100'000)),
                         " too much: ", simulator::CompositionText(use)));
  EXPECT_THAT(MisfitText(*run), testing::ContainsRegex("optimizer [0-9.]+ KiB, "));
}

// What is beside the step counts as well.
TEST(Overhead, IsResident) {
  Setting setting = MlpSetting();
  const ParallelPlan plan = ByFlops({.dp = 2, .pp = 2, .microbatches = 2});
  const auto without = Play(setting, plan);
  setting.lowering.memory_overhead = {.framework = Bytes(1000),
                                      .communicator = Bytes(200),
                                      .workspace = Bytes(30),
                                      .fragmentation = 0.5};
  const auto with = Play(setting, plan);
  ASSERT_TRUE(without.ok() && with.ok());
  for (int32_t r = 0; r < 2; ++r) {
    const simulator::RankClassId id(r);
    const simulator::MemoryUse &bare = without->report.ranks[id].memory,
                               &all = with->report.ranks[id].memory;
    const Bytes data = without->program.resident(id, simulator::MemoryKind::kOther);
    EXPECT_EQ(all.of(simulator::MemoryKind::kBuffers), Bytes(400));  // dp and pp
    EXPECT_EQ(all.total - bare.total, Bytes(1430 + (bare.total.count() - data.count()) / 2));
  }
  EXPECT_EQ(with->report.step_time, without->report.step_time);
}

std::string VersionsText(const char* schedule, int64_t pp, int64_t microbatches) {
  const ParallelPlan plan = ByFlops({.pp = pp, .microbatches = microbatches, .schedule = schedule});
  const Setting setting = MlpSetting();
  const auto run = Play(setting, plan);
  if (!run.ok()) return std::string(run.status().message());
  const auto details = DetailsOf(setting, plan, *run);
  return absl::StrJoin(details->versions, " ",
                       [](std::string* out, const simulator::StageVersions& row) {
                         absl::StrAppend(out, row.staleness, "/", row.weight_versions);
                       });
}

// PipeDream: as many versions as there are stages from here on. 2BW: two, gradients one update late
// on all.
TEST(Details, StalenessOfEachStage) {
  EXPECT_EQ(VersionsText("pipedream", 4, 8), "3/4 2/3 1/2 0/1");
  EXPECT_EQ(VersionsText("pipedream", 2, 4), "1/2 0/1");
  EXPECT_EQ(VersionsText("pipedream-2bw", 4, 8), "1/2 1/2 1/2 1/2");
  EXPECT_EQ(VersionsText("1f1b", 4, 8), "");
}

// A report of the steady state: nobody fills or drains.
TEST(Details, TheBubbleOfASteadyStateIsSteadyOrImbalance) {
  const ParallelPlan plan = ByFlops({.pp = 4, .microbatches = 8, .schedule = "pipedream"});
  const Setting setting = MlpSetting();
  const auto run = Play(setting, plan);
  ASSERT_TRUE(run.ok());
  const auto details = DetailsOf(setting, plan, *run);
  for (int32_t r = 0; r < 4; ++r) {
    const simulator::Bubble& bubble = details->bubbles[simulator::RankClassId(r)];
    EXPECT_EQ(bubble.warm_up + bubble.cool_down, Duration(0));
    EXPECT_EQ(bubble.total(), run->report.ranks[simulator::RankClassId(r)].idle);
  }
}

// (p-1) forwards and backwards of every rank are waited for: filling and draining, never between.
TEST(Details, TheBubbleOf1f1bHasNoSteadyPart) {
  Setting setting = MlpSetting("uniform:8@100000Gbps", "sgd");
  const ParallelPlan plan = ByFlops({.pp = 4, .microbatches = 12});
  const auto run = Play(setting, plan);
  ASSERT_TRUE(run.ok());
  const auto details = DetailsOf(setting, plan, *run);
  const simulator::MeanBubble mean = MeanOf(run->program, details->bubbles);
  const double bubble_s = run->report.bubble_fraction * run->report.step_time.seconds();
  EXPECT_NEAR(mean.warm_up_s + mean.steady_s + mean.cool_down_s + mean.imbalance_s, bubble_s,
              1e-12);
  EXPECT_LT(mean.steady_s, 0.1 * bubble_s);
  EXPECT_GT(mean.warm_up_s, 0.1 * bubble_s);
  EXPECT_GT(mean.cool_down_s, 0.1 * bubble_s);
}

using simulator::KernelKind;
using simulator::KernelSeconds;

double Of(const KernelSeconds& kernels, KernelKind kind) {
  return kernels[static_cast<size_t>(kind)];
}

Setting GptSetting() {
  Setting setting = MlpSetting();
  setting.step = ir::BuildModel("gpt", "layers=4,hidden=64,heads=4,seq=32,vocab=64", 48);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  return setting;
}

// Kernels, exposed communication and the bubble are the whole step, whether kernels are played one
// by one or in runs, folded or not.
TEST(Details, PartsOfTheStepAddUp) {
  for (const bool fold : {true, false}) {
    for (const bool fuse : {true, false}) {
      Setting setting = GptSetting();
      setting.lowering.fold = fold;
      setting.lowering.every_link = !fuse;
      for (ParallelPlan plan : {ParallelPlan{},
                                {.dp = 2, .microbatches = 4},
                                {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4},
                                {.pp = 4, .microbatches = 8, .blocking = true},
                                {.dp = 4, .zero = 3}}) {
        plan = transforms::ByFlops(plan);
        SCOPED_TRACE(ToString(plan));
        const absl::StatusOr<search::Run> run = Play(setting, plan);
        ASSERT_TRUE(run.ok()) << run.status();
        const auto details = DetailsOf(setting, plan, *run);
        ASSERT_TRUE(details.ok()) << details.status();
        const KernelSeconds& kernels = details->kernels;
        const double step = run->report.step_time.seconds();
        EXPECT_NEAR(std::accumulate(kernels.begin(), kernels.end(), 0.0) +
                        run->report.exposed_communication_s + run->report.bubble_fraction * step,
                    step, 1e-5 * step);
        for (const double seconds : kernels) EXPECT_GT(seconds, 0);
      }
    }
  }
}

// What backward rematerializes is of the kinds that it is.
TEST(Details, TellKernelsApart) {
  const Setting setting = GptSetting();
  const auto kernels = [&](ParallelPlan plan) {
    plan = transforms::ByFlops(plan);
    return DetailsOf(setting, plan, *Play(setting, plan))->kernels;
  };
  const KernelSeconds plain = kernels({}), mlp = [] {
    const Setting of = MlpSetting();
    const ParallelPlan plan = transforms::ByFlops({});
    return DetailsOf(of, plan, *Play(of, plan))->kernels;
  }();
  EXPECT_EQ(Of(mlp, KernelKind::kAttention), 0);
  EXPECT_GT(Of(mlp, KernelKind::kProduct), 0);
  const KernelSeconds again =
      kernels({.recompute = transforms::ParseRecomputePolicy("selective").value()});
  EXPECT_GT(Of(again, KernelKind::kAttention), Of(plain, KernelKind::kAttention));
  EXPECT_NEAR(Of(again, KernelKind::kProduct), Of(plain, KernelKind::kProduct), 2e-9);
  EXPECT_NEAR(Of(again, KernelKind::kUpdate), Of(plain, KernelKind::kUpdate), 2e-9);
}

// Of a steady state the trace says nothing.
TEST(Details, HaveNoKernelsOfASteadyState) {
  const Setting setting = MlpSetting();
  const ParallelPlan plan =
      transforms::ByFlops({.pp = 2, .microbatches = 4, .schedule = "pipedream"});
  EXPECT_EQ(DetailsOf(setting, plan, *Play(setting, plan))->kernels, KernelSeconds());
}

}  // namespace
}  // namespace memory_fit_test_cc
}  // namespace orrery::search
