#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/drawing_test_util.h"
#include "search/evaluate.h"
#include "search/plan_player.h"
#include "search/play_step.h"
#include "search/runs/skip_ahead.h"
#include "search/settings/setting_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace skipping_test_cc {
namespace {

Setting DrawSetting(Drawing& draw) {
  Setting setting;
  setting.batch_size = 768;
  const auto [family, keys] = draw.Of<std::pair<const char*, const char*>>(
      {{"gpt", "layers=4,hidden=64,heads=4,seq=32,vocab=256,tied_embeddings=0"},
       {"gpt", "layers=8,hidden=64,heads=4,kv_heads=2,seq=32,vocab=512,mlp=swiglu,flash=1"},
       {"gpt", "layers=4,hidden=64,heads=4,seq=32,vocab=256,experts=4,topk=2"},
       {"mlp", "layers=8,dim=64"}});
  setting.step = ir::BuildModel(family, keys, setting.batch_size);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.model_name = absl::StrCat(family, ":", keys);
  // With links that are shared, and with kernels that slow down while ranks communicate.
  setting.cluster = cluster::ParseCluster(
                        draw.Of<const char*>({"uniform:16@200Gbps", "dgx-a100:2", "dgx-h100:2",
                                              "fat-tree:16@5GB/s", "torus:4x4@5GB/s,latency=500ns",
                                              "nodes:2x8@45GB/s,nic=5GB/s,nics=2,host=63GB/s"}))
                        .value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  setting.lowering.kernels.slowdown = draw.Of({0.0, 0.0, 0.1});
  setting.lowering.memory_overhead.fragmentation = draw.Of({0.0, 0.05});
  setting.lowering.memory_limit = draw.Of({Bytes(0), Bytes(1 << 20), Bytes(8 << 20)});
  setting.model_flops = CountModelFlops(setting.step);
  return setting;
}

ParallelPlan DrawPlan(Drawing& draw) {
  ParallelPlan plan;
  plan.pp = draw.Of<int64_t>({1, 2, 2, 4});
  plan.hp = draw.Of<int64_t>({1, 1, 2, 4});
  plan.dp = draw.Of<int64_t>({1, 2});
  plan.microbatches = draw.Of<int64_t>({48, 96, 128, 384});
  plan.schedule =
      draw.Of<const char*>({"1f1b", "1f1b", "interleaved", "gpipe", "interleaved-zero-bubble",
                            "distir", "dualpipe", "chimera"});
  plan.zero = draw.Of<int64_t>({0, 1, 3});
  plan.recompute =
      draw.Of({transforms::RecomputePolicy(), transforms::ParseRecomputePolicy("selective").value(),
               transforms::ParseRecomputePolicy("full").value()});
  plan.blocking = draw.Of({false, false, false, true});
  return plan;
}

void ExpectSame(const Result& skipped, const Result& whole) {
  EXPECT_EQ(skipped.step_time, whole.step_time);
  EXPECT_EQ(skipped.peak_memory, whole.peak_memory);
  EXPECT_EQ(skipped.fits, whole.fits);
  EXPECT_EQ(skipped.exposed_communication_s, whole.exposed_communication_s);
  EXPECT_EQ(skipped.bubble_fraction, whole.bubble_fraction);
  EXPECT_EQ(skipped.communication_overhead, whole.communication_overhead);
  EXPECT_EQ(skipped.figures.mfu, whole.figures.mfu);
  EXPECT_DOUBLE_EQ(skipped.figures.hfu, whole.figures.hfu);
  EXPECT_EQ(skipped.gathered, whole.gathered);
}

TEST(SkipAhead, FindsWhatPlayingAllFinds) {
  int played = 0, skipped = 0;
  ForEachDrawn(0, CasesToWalk(150u), DrawSetting, DrawPlan,
               [&](Setting& setting, const auto& plan) {
                 const auto fast = Evaluate(setting, plan);
                 if (!fast.ok() || !fast->ran) return;
                 setting.plays_all = true;
                 const auto whole = Evaluate(setting, plan);
                 ASSERT_TRUE(whole.ok()) << whole.status();
                 ExpectSame(*fast, *whole);
                 ++played;
                 skipped += fast->simulated_tasks < whole->simulated_tasks ? 1 : 0;
               });
  EXPECT_GT(4 * skipped, played) << "nothing is skipped";
}

// Of ways that are not the best in the end only the brief report is seen: it is right, too.
TEST(SkipAhead, TellsBrieflyWhatPlayingAllFinds) {
  uint32_t skipped = 0;
  const uint32_t cases = CasesToWalk(100u);
  ForEachDrawn(500, cases, DrawSetting, DrawPlan, [&](Setting& setting, const auto& plan) {
    const auto played = Play(setting, plan);
    if (!played.ok()) return;
    lowering::ExchangeStore exchanges(setting.cluster.topology);
    StepPlayer player({.setting = setting,
                       .plan = plan,
                       .step = played->pipelined,
                       .schedule = *plan.schedule,
                       .exchanges = exchanges,
                       .names = false,
                       .brief = true});
    size_t first = 0;
    auto few = player.PlaySkipping(first);
    if (!few.has_value()) return;
    const auto whole = player.PlayRounds(/*rounds=*/1).value();
    const auto expect_same = [&](const simulator::Report& brief) {
      EXPECT_EQ(brief.step_time, whole.report.step_time);
      EXPECT_EQ(brief.peak_memory, whole.report.peak_memory);
      EXPECT_EQ(brief.fits, whole.report.fits);
      EXPECT_EQ(brief.communication_overhead, whole.report.communication_overhead);
    };
    expect_same(few->report);
    // A way that begins with what would have done, or with more, says the same.
    size_t same = first, more = first + 1;
    const auto again = player.PlaySkipping(same), longer = player.PlaySkipping(more);
    ASSERT_TRUE(again.has_value());
    EXPECT_LE(again->report.simulated_tasks, few->report.simulated_tasks);
    expect_same(again->report);
    if (longer.has_value()) {
      EXPECT_GE(longer->report.simulated_tasks, again->report.simulated_tasks);
      expect_same(longer->report);
    }
    // What was not so is seen.
    auto later = *few, larger = *few;
    later.skipped->period.time += Duration(1);
    EXPECT_FALSE(player.Complete(later));
    larger.skipped->period.growth[simulator::RankClassId(0)][0] += Bytes(1);
    EXPECT_FALSE(player.Complete(larger));
    const auto is_seen = [&](const auto& spoil) {
      auto told = *few;
      spoil(told.report);
      EXPECT_FALSE(player.Complete(told));
    };
    is_seen([](auto& report) { report.step_time += Duration(1); });
    is_seen([](auto& report) { report.peak_memory += Bytes(1); });
    is_seen([](auto& report) { report.fits = !report.fits; });
    is_seen([](auto& report) { report.communication_overhead += 0.1; });
    EXPECT_TRUE(player.Complete(*few));
    expect_same(few->report);
    ++skipped;
  });
  EXPECT_GT(10 * skipped, cases);
}

// As where what was skipped was not as it seemed.
TEST(SkipAhead, IsLeftOutWhereAllIsToBePlayed) {
  const Setting setting = MlpSetting("uniform:16@200Gbps");
  const ParallelPlan plan = {.pp = 2, .microbatches = 48};
  const auto play = [&](bool all) {
    PlanPlayer player(setting, plan);
    player.WantFiguresAlone();
    if (all) player.PlayAll();
    EXPECT_TRUE(player.Prepare().ok());
    auto run = player.Play({}).value();
    EXPECT_NE(run.skipped.has_value(), all);
    EXPECT_TRUE(player.Complete(run));
    EXPECT_FALSE(run.brief_of.has_value());
    return run.report.step_time;
  };
  EXPECT_EQ(play(false), play(true));
}

// However ranks wait for each other, and whatever shares their links.
TEST(StepBound, IsNoMoreThanAStepHas) {
  uint32_t played = 0, told = 0, near = 0, full = 0;
  ForEachDrawn(900, CasesToWalk(150u), DrawSetting, DrawPlan, [&](Setting& setting, auto plan) {
    plan.microbatches /= 16;  // all are played
    const auto run = Play(setting, plan);
    if (!run.ok()) return;
    lowering::ExchangeStore exchanges(setting.cluster.topology);
    StepPlayer player({setting, plan, run->pipelined, *plan.schedule, exchanges});
    const auto orders = plan.schedule->OrdersOf(ShapeOf(*plan.schedule, plan));
    const auto least = player.BoundOf(orders);
    const simulator::Report step = player.PlayRounds(/*rounds=*/1).value().report;
    ++played;
    if (!least.has_value()) return;
    EXPECT_LE(least->time, step.step_time);
    EXPECT_LE(least->peak, step.peak_memory);
    EXPECT_LE(least->peak, least->likely_peak);
    EXPECT_LE(least->time, least->likely_time);
    EXPECT_TRUE(least->may_fit || !step.fits);
    ++told;
    const double bubble =
        1 + static_cast<double>(plan.pp - 1) / static_cast<double>(plan.microbatches);
    if (1.5 * bubble * least->time.seconds() > step.step_time.seconds()) ++near;
    if (least->likely_peak.count() > step.peak_memory.count() * 9 / 10) ++full;
  });
  EXPECT_GT(2 * told, played);
  EXPECT_GT(2 * near, told) << "it says little of time";
  RecordProperty("full", absl::StrCat(full, " of ", told));
  EXPECT_GT(2 * full, told) << "it says little of memory";
}

// What one way had to play, as another would have, is not played by the next one.
TEST(SkipAhead, BeginsWhereTheSteadyStateBegan) {
  const Setting setting = MlpSetting("uniform:16@200Gbps");
  const ParallelPlan plan = {.pp = 2, .microbatches = 48};
  const auto played = Play(setting, plan).value();
  lowering::ExchangeStore exchanges(setting.cluster.topology);
  StepPlayer player({setting, plan, played.pipelined, *plan.schedule, exchanges});
  const size_t most = FewerMicrobatches(48, 2).size() - 1;
  size_t first = most;
  const auto long_run = player.PlaySkipping(first);
  ASSERT_TRUE(long_run.has_value());
  EXPECT_LT(first, most);
  const auto short_run = player.PlaySkipping(first);
  ASSERT_TRUE(short_run.has_value());
  EXPECT_LT(2 * short_run->report.simulated_tasks, long_run->report.simulated_tasks);
  EXPECT_EQ(short_run->report.step_time, long_run->report.step_time);
}

TEST(SkipAhead, TakesFewOfMany) {
  EXPECT_TRUE(FewerMicrobatches(16, 4).empty());
  for (const int64_t ranks : {1, 3, 8}) {
    for (const int64_t all : {100, 1000, 32768}) {
      for (const int64_t few : FewerMicrobatches(all, ranks)) {
        EXPECT_EQ((all - few) % ranks, 0);
        EXPECT_LE(3 * few, 2 * all);
      }
    }
  }
  EXPECT_EQ(FewerMicrobatches(1000, 8), (std::vector<int64_t>{24, 40, 64, 112, 192}));
}

TEST(SkipAhead, OnlyWhereOrdersRepeat) {
  const auto repeats = [](const char* name, int32_t microbatches, int32_t chunks) {
    const transforms::PipelineSchedule& schedule = *transforms::FindSchedule(name).value();
    return MayRepeat(schedule.OrdersOf(schedule.ShapeOf(4, microbatches, chunks)));
  };
  EXPECT_TRUE(repeats("1f1b", 12, 1));
  EXPECT_TRUE(repeats("interleaved", 32, 2));
  EXPECT_FALSE(repeats("gpipe", 32, 1));
  EXPECT_FALSE(repeats("looped-bfs", 32, 2));
}

}  // namespace
}  // namespace skipping_test_cc
}  // namespace orrery::search
