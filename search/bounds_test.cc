#include "search/bounds/bounds.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "search/bounds/least_memory.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace bounds_test_cc {
namespace {

using Texts = std::vector<std::string>;

Setting SettingOf(const std::string& model, const std::string& options, int64_t batch,
                  const std::string& optimizer) {
  Setting setting = MlpSetting("uniform:8@200Gbps,device=a100-80gb", optimizer);
  setting.step = ir::BuildModel(model, options, batch);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = optimizer}).ok());
  setting.batch_size = batch;
  setting.model_flops = CountModelFlops(setting.step);
  return setting;
}

std::string OneOf(const Texts& texts, std::mt19937& random) {
  return texts[random() % texts.size()];
}

// A plan of up to 8 devices; what its axes contradict of each other is for Play to say.
ParallelPlan RandomPlanFor8(std::mt19937& random) {
  ParallelPlan plan;
  const auto set = [&](const char* flag, const Texts& texts) {
    const std::string text = OneOf(texts, random);
    EXPECT_TRUE(transforms::FindAxis(flag)->parse(text, plan).ok()) << flag << " " << text;
  };
  do {
    for (const char* degree : {"dp", "hp", "pp"}) set(degree, {"1", "2", "4"});
    for (const char* degree : {"cp", "ep"}) set(degree, {"1", "1", "1", "2"});
  } while (plan.ranks() > 8);
  set("micro-batches", {"1", "2", "4", "8"});
  set("schedule", {"1f1b", "1f1b", "gpipe", "interleaved", "zb-h1", "zbv", "dualpipe", "looped-bfs",
                   "terapipe", "pipedream-2bw", "distir"});
  if (plan.schedule->chunks == 0) set("chunks", {"0", "1", "2"});
  set("zero", {"0", "0", "1", "2", "3"});
  if (plan.zero > 0) set("zero-group", {"0", "0", "2"});
  set("recompute", {"none", "none", "selective", "full", "every:2"});
  set("offload", {"none", "none", "none", "optimizer", "activations"});
  set("sharding", {"auto", "auto", "megatron"});
  set("stages-by", {"cost", "flops"});
  return plan;
}

// What a run needs and takes is never less than the bounds say.
TEST(Bounds, AreNoMoreThanWhatARunNeeds) {
  const std::vector<std::pair<const char*, const char*>> models = {
      {"mlp", "layers=4,dim=64"},
      {"gpt", "layers=4,hidden=64,heads=4,seq=32,vocab=128"},
      {"gpt", "layers=3,hidden=64,heads=4,seq=32,vocab=64,flash=0,kv_heads=2,mlp=swiglu"},
      {"gpt", "layers=2,hidden=32,heads=4,seq=16,vocab=64,experts=4,topk=2"},
      {"gpt", "layers=4,hidden=32,heads=4,seq=16,vocab=512,tied_embeddings=1"}};
  std::mt19937 random(20);
  int played = 0, tight = 0;
  for (const auto& [model, options] : models) {
    for (const char* optimizer : {"sgd", "adam"}) {
      const Setting setting = SettingOf(model, options, 32, optimizer);
      Bounds bounds(setting);
      for (int i = 0; i < CasesToWalk(24); ++i) {
        const ParallelPlan plan = RandomPlanFor8(random);
        const auto run = Play(setting, plan);
        if (!run.ok()) continue;
        ++played;
        const PlanBound bound = bounds.Of(plan);
        const std::string text = absl::StrCat(options, " ", optimizer, ": ", ToString(plan));
        EXPECT_LE(bound.memory, run->report.peak_memory) << text;
        EXPECT_LE(bound.time, run->report.step_time) << text;
        if (2 * bound.memory.count() >= run->report.peak_memory.count()) ++tight;
      }
    }
  }
  EXPECT_GT(played, CasesToWalk(100));
  EXPECT_GT(tight, played / 8);  // or it says little
}

// The ideal of all: one kernel after another, at the peak, with what memory takes in between.
TEST(Bounds, OfTimeAreHardlyMoreThanProductsAtThePeak) {
  const Setting setting = SettingOf("mlp", "layers=4,dim=4096", 8192, "sgd");
  const double at_peak =
      setting.model_flops.count() / setting.cluster.device.fp32.flops_per_second();
  const double least = Bounds(setting).Of({}).time.seconds();
  EXPECT_GT(least, at_peak);
  EXPECT_LT(least, 1.02 * at_peak);
  EXPECT_GT(Bounds(setting).Of({.dp = 8}).time.seconds(), at_peak / 8);
  EXPECT_LT(Bounds(setting).Of({.dp = 8}).time.seconds(), 1.05 * at_peak / 8);
  // 8,192 microbatches read the weights so often.
  EXPECT_GT(Bounds(setting).Of({.microbatches = 8192}).time, Bounds(setting).Of({}).time * 2);
  const ParallelPlan asynchronous = {
      .pp = 2, .schedule = transforms::ScheduleChoice::Parse("pipedream").value()};
  EXPECT_EQ(Bounds(setting).Of(asynchronous).time, Duration(0));
}

// Nothing is promised of measurements.
TEST(Bounds, OfTimeAreNothingWhereTheCostModelPromisesNone) {
  Setting setting = SettingOf("mlp", "layers=4,dim=64", 32, "sgd");
  setting.cost_model = cost_models::MakeCostModel("distir").value();
  EXPECT_EQ(Bounds(setting).Of({}).time, Duration(0));
  EXPECT_GT(Bounds(setting).Of({}).memory, Bytes(0));
}

// Whatever is kept counts above weights and state, less of it where more is made anew.
TEST(Bounds, OfMemoryCountWhatForwardKeeps) {
  const Setting setting =
      SettingOf("gpt", "layers=4,hidden=64,heads=4,seq=128,vocab=64", 32, "adam");
  Bounds bounds(setting);
  ParallelPlan full;
  full.recompute = transforms::ParseRecomputePolicy("full").value();
  EXPECT_GT(bounds.Of({}).memory, bounds.Of(full).memory);
  EXPECT_GT(bounds.Of(full).memory, LeastMemory(setting, full));
  EXPECT_LT(bounds.Of({.microbatches = 8}).memory, bounds.Of({}).memory);
}

// From the second microbatch on a rank has gradients beside what it keeps.
TEST(Bounds, OfMemoryCountGradientsBesideWhatForwardKeeps) {
  const Setting setting =
      SettingOf("gpt", "layers=4,hidden=64,heads=4,seq=128,vocab=64", 32, "adam");
  Bounds bounds(setting);
  const auto beside_weights = [&](const ParallelPlan& plan) {
    return static_cast<double>((bounds.Of(plan).memory - LeastMemory(setting, plan)).count());
  };
  const double kept = beside_weights({}), gradients = SumWeights(setting).parameters;
  ASSERT_GT(kept, 8 * gradients);
  EXPECT_NEAR(beside_weights({.microbatches = 8}), gradients + kept / 8, 1e-3 * kept);
  EXPECT_NEAR(beside_weights({.microbatches = 16}), gradients + kept / 16, 1e-3 * kept);
}

// A sum of weights has one gradient, which each has a view of.
TEST(Bounds, OfMemoryCountOneGradientOnce) {
  Setting setting = MlpSetting("uniform:8@200Gbps,device=a100-80gb", "adam");
  setting.step = ir::ParseFunction(R"(func @sum (
  %x: f32[16,512] data,
  %a: f32[512,512] parameter,
  %b: f32[1,512,512] parameter,
  %c: f32[512,1,512] parameter,
  %d: f32[512,512,1] parameter
) {
  %b1: f32[512,512] = Reshape(%b) {shape=[512,512]}
  %c1: f32[512,512] = Reshape(%c) {shape=[512,512]}
  %d1: f32[512,512] = Reshape(%d) {shape=[512,512]}
  %s: f32[512,512] = Add(%a, %b1)
  %t: f32[512,512] = Add(%s, %c1)
  %u: f32[512,512] = Add(%t, %d1)
  %y: f32[16,512] = MatMul(%x, %u)
  return %y: result
})")
                     .value();
  ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "adam"}).ok());
  setting.batch_size = 16;
  for (const int64_t microbatches : {1, 2}) {
    const ParallelPlan plan = {.microbatches = microbatches};
    const auto run = Play(setting, plan);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_LE(Bounds(setting).Of(plan).memory, run->report.peak_memory);
  }
}

// Kernels that are captured are launched together: starting them counts for nothing.
TEST(Bounds, OfTimeKnowGraphs) {
  Setting setting = SettingOf("mlp", "layers=8,dim=256", 16, "adam");
  setting.cost_model = cost_models::MakeCostModel("kernels").value();
  const PlanBound launched = Bounds(setting).Of({});
  setting.lowering.kernels.graphs = true;
  EXPECT_LT(Bounds(setting).Of({}).time, launched.time);
  for (const int64_t microbatches : {1, 4, 16}) {
    const ParallelPlan plan = {.microbatches = microbatches};
    EXPECT_LE(Bounds(setting).Of(plan).time, Play(setting, plan)->report.step_time);
  }
}

// All of what is kept may lie on the rank that has fewest microbatches in flight.
TEST(LeastPeak, IsOfTheBestWayToSpread) {
  const auto least = [](double resident, double kept, const std::vector<int64_t>& in_flight) {
    return LeastPeak(resident, kept, in_flight);
  };
  EXPECT_DOUBLE_EQ(least(10, 6, {1}), 16);
  EXPECT_DOUBLE_EQ(least(10, 0, {1, 2}), 5);
  EXPECT_DOUBLE_EQ(least(10, 6, {1, 1}), 8);
  EXPECT_DOUBLE_EQ(least(0, 6, {1, 2}), 4);     // 4 on the last, 2 twice on the first
  EXPECT_DOUBLE_EQ(least(100, 6, {1, 2}), 53);  // 6 on the last, with 47 beside
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<int64_t> in_flight;
    std::vector<double> kept, resident;
    double all_kept = 0, all_resident = 0, peak = 0;
    for (auto ranks = 1 + random() % 5; ranks > 0; --ranks) {
      in_flight.push_back(1 + static_cast<int64_t>(random() % 6));
      all_kept += kept.emplace_back(static_cast<double>(random() % 10));
      all_resident += resident.emplace_back(static_cast<double>(random() % 30));
      peak = std::max(peak, resident.back() + static_cast<double>(in_flight.back()) * kept.back());
    }
    std::ranges::sort(in_flight);
    EXPECT_LE(LeastPeak(all_resident, all_kept, in_flight), peak + 1e-9);
  }
}

TEST(LeastInFlight, CountsWhatAllStagesOfARankHave) {
  const auto of = [](const char* name, int32_t ranks, int32_t microbatches) {
    const transforms::PipelineSchedule& schedule = *transforms::FindSchedule(name).value();
    const transforms::PipelineShape shape = schedule.ShapeOf(ranks, microbatches);
    return LeastInFlight(schedule.OrdersOf(shape), shape);
  };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(of("1f1b", 4, 8).most, (Counts{4, 3, 2, 1}));
  EXPECT_EQ(of("1f1b", 4, 2).most, (Counts{2, 2, 2, 1}));
  EXPECT_EQ(of("gpipe", 3, 5).most, (Counts{5, 5, 5}));
  EXPECT_EQ(of("interleaved", 2, 4).most, (Counts{2, 1}));
  // The first backward has ended then, of each stage; where it is split, with its second part.
  EXPECT_EQ(of("1f1b", 4, 8).beside_gradients, (Counts{4, 3, 2, 1}));
  EXPECT_EQ(of("1f1b", 4, 2).beside_gradients, (Counts{1, 1, 1, 1}));
  EXPECT_EQ(of("1f1b", 4, 1).beside_gradients, (Counts{0, 0, 0, 0}));
  EXPECT_EQ(of("gpipe", 3, 5).beside_gradients, (Counts{4, 4, 4}));
  EXPECT_EQ(of("zb-h1", 2, 2).beside_gradients, (Counts{1, 0}));
}

}  // namespace
}  // namespace bounds_test_cc
}  // namespace orrery::search
