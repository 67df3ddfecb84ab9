#include "search/recomputations_that_help.h"

#include <iterator>

#include "transforms/parallel.h"

namespace orrery::search {
namespace recomputations_that_help_cc {
namespace {

// What one stage leaves to backward to do; -1 where it cannot be recomputed so.
int64_t OpsOf(const Setting& setting, const transforms::RecomputePolicy& recompute) {
  const auto step = transforms::ParallelTransform3d(
      setting.step, {.recompute = recompute},
      {.fuses_pointwise = setting.lowering.kernels.fuses_pointwise});
  return step.ok() ? std::ssize(step->stages.front().backward.function.order()) : -1;
}

}  // namespace
}  // namespace recomputations_that_help_cc

bool RecomputationsThatHelp::Has(const Setting& setting, const ParallelPlan& plan) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [known, is_new] =
      helps_.try_emplace({&setting, transforms::ToString(plan.recompute)}, true);
  if (is_new) {
    const int64_t with = recomputations_that_help_cc::OpsOf(setting, plan.recompute);
    known->second = with < 0 || with != recomputations_that_help_cc::OpsOf(setting, {});
  }
  return known->second;
}

}  // namespace orrery::search
