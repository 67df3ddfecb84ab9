// What is tried where a plan does not fit: SearchOptions::relief.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "search/search.h"
#include "search/settings/setting_test_util.h"

namespace orrery::search {
namespace relief_test_cc {
namespace {

// What is tried where a plan does not fit stands behind all plans, up to what fits.
TEST(Relief, IsTriedUntilAPlanFits) {
  Setting setting = MlpSetting();
  const std::vector<ParallelPlan> plans = {{.dp = 1}, {.dp = 8}, {.dp = 2}};
  const Bytes peak = Play(setting, plans[1]).value().report.peak_memory;
  setting.lowering.memory_limit = peak;
  const auto relief = [](const ParallelPlan& plan) {
    std::vector<ParallelPlan> tries = {plan, plan, plan, plan};
    for (size_t i = 0; i < tries.size(); ++i) tries[i].microbatches = int64_t{2} << i;
    return tries;
  };
  const auto texts = [&](int32_t threads) {
    std::vector<std::string> list;
    const std::vector<Result> results =
        RunSearch(setting, plans, {.threads = threads, .relief = relief}).value();
    for (const Result& result : results) {
      list.push_back(absl::StrCat(result.plan.dp, ".", result.plan.microbatches,
                                  result.feasible() ? " fits" : ""));
    }
    return list;
  };
  const std::vector<std::string> list = texts(1);
  EXPECT_EQ(texts(3), list);
  EXPECT_EQ(list[1], "8.1 fits");  // wants no relief
  std::vector<std::string> expected = {"1.1", "8.1 fits", "2.1"};
  for (const int64_t dp : {1, 2}) {
    for (int64_t microbatches = 2; microbatches <= 16; microbatches *= 2) {
      const Result tried = Evaluate(setting, {.dp = dp, .microbatches = microbatches}).value();
      expected.push_back(absl::StrCat(dp, ".", microbatches, tried.feasible() ? " fits" : ""));
      if (tried.feasible()) break;
    }
  }
  EXPECT_EQ(list, expected);
}

// Fused attention keeps no scores that `selective` could leave.
TEST(Relief, PassesOverRecomputationThatLeavesNothing) {
  const auto relief = [](const ParallelPlan& plan) {
    std::vector<ParallelPlan> tries = {plan, plan};
    tries[0].recompute = transforms::ParseRecomputePolicy("selective").value();
    tries[1].recompute = transforms::ParseRecomputePolicy("full").value();
    return tries;
  };
  for (const bool flash : {false, true}) {
    Setting setting = MlpSetting();
    setting.step = ir::BuildModel(
        "gpt", absl::StrCat("layers=2,hidden=64,heads=8,seq=64,vocab=64,flash=", flash ? 1 : 0),
        64);
    ASSERT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
    setting.batch_size = 64;
    const Bytes peak = Play(setting, {}).value().report.peak_memory;
    setting.lowering.memory_limit = Bytes(peak.count() / 3);
    std::vector<std::string> list;
    const std::vector<Result> results = RunSearch(setting, {{}}, {.relief = relief}).value();
    for (const Result& result : results) {
      list.push_back(transforms::ToString(result.plan.recompute));
    }
    EXPECT_EQ(list.size(), flash ? 2u : 3u);
    EXPECT_EQ(list.back(), "full");
  }
}

// Weights that are too much by themselves want another plan altogether.
TEST(Relief, IsNoneForWeights) {
  Setting setting = MlpSetting();
  setting.lowering.memory_limit = Bytes(1000);
  const auto relief = [](const ParallelPlan& plan) {
    std::vector<ParallelPlan> tries = {plan};
    tries[0].microbatches = 2;
    return tries;
  };
  EXPECT_EQ(RunSearch(setting, {{}}, {.relief = relief}).value().size(), 1u);
}

// What a plan has already is not tried in its place.
TEST(Relief, IsNotThePlanItself) {
  Setting setting = MlpSetting();
  const Bytes peak = Play(setting, {}).value().report.peak_memory;
  setting.lowering.memory_limit = Bytes(peak.count() - 1);
  const auto relief = [](const ParallelPlan& plan) {
    std::vector<ParallelPlan> tries = {plan, plan};
    tries[0].microbatches = 1;
    tries[1].microbatches = 2;
    return tries;
  };
  const auto results = RunSearch(setting, {{}}, {.relief = relief}).value();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].plan.microbatches, 2);
}

}  // namespace
}  // namespace relief_test_cc
}  // namespace orrery::search
