#include "search/views/kernel_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "search/details.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"

namespace orrery::search {
namespace kernel_list_test_cc {
namespace {

using cost_models::KernelForm;

Setting Priced(const std::string& cost_model) {
  Setting setting = MlpSetting("dgx-a100:1", "adam");
  setting.cost_model = *cost_models::MakeCostModel(cost_model);
  return setting;
}

std::vector<StepKernel> KernelsOf(const Setting& setting, const ParallelPlan& plan) {
  const absl::StatusOr<Run> run = Play(setting, plan);
  EXPECT_TRUE(run.ok()) << run.status();
  return KernelsOfStep(setting, *run);
}

// With and without stages and microbatches, the kernels are what the simulated ranks computed.
TEST(KernelsOfStep, TakeWhatTheSimulationSays) {
  for (const char* cost_model : {"kernels", "roofline"}) {
    const Setting setting = Priced(cost_model);
    for (const ParallelPlan& plan :
         {ParallelPlan{}, ParallelPlan{.pp = 2}, ParallelPlan{.hp = 2}}) {
      const search::Run run = *Play(setting, plan);
      const auto details = DetailsOf(setting, plan, run);
      ASSERT_TRUE(details.ok()) << details.status();
      double simulated = 0, listed = 0;
      for (const double seconds : details->kernels) simulated += seconds;
      for (const StepKernel& kernel : KernelsOfStep(setting, run)) listed += kernel.seconds();
      // Means over ranks, of which each stage has as many; the kernels are of one rank of each, and
      // wait for no slower one.
      EXPECT_NEAR(listed / static_cast<double>(plan.pp), simulated, 2e-2 * simulated)
          << cost_model << " " << plan.pp << " " << plan.hp;
    }
  }
}

TEST(KernelsOfStep, AreOneWhereTheyAreAlike) {
  const Setting setting = Priced("kernels");
  const std::vector<StepKernel> kernels = KernelsOf(setting, {});
  ASSERT_FALSE(kernels.empty());
  int64_t products = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_LE(kernels[i].seconds(), kernels[i == 0 ? 0 : i - 1].seconds());
    if (kernels[i].kernel.form == KernelForm::kProduct) products += kernels[i].count;
  }
  int64_t ops = 0;
  for (const ir::OpId op : setting.step.order()) {
    if (setting.step.info(op).products != nullptr) ops += setting.step.info(op).kernels;
  }
  EXPECT_EQ(products, ops);
  EXPECT_LT(kernels.size(), static_cast<size_t>(ops));
  ParallelPlan twice;
  twice.microbatches = 2;
  int64_t of_two = 0;
  for (const StepKernel& kernel : KernelsOf(setting, twice)) {
    if (kernel.kernel.form == KernelForm::kProduct) of_two += kernel.count;
  }
  EXPECT_EQ(of_two, 2 * products);
}

}  // namespace
}  // namespace kernel_list_test_cc
}  // namespace orrery::search
