#include "search/details.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ir/models/model_test_util.h"
#include "search/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace details_test_cc {
namespace {

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
}  // namespace details_test_cc
}  // namespace orrery::search
