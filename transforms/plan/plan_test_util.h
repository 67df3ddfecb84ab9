#ifndef ORRERY_TRANSFORMS_PLAN_PLAN_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_PLAN_PLAN_TEST_UTIL_H_

#include "transforms/plan/parallel_plan.h"

// For tests only.

namespace orrery::transforms {

/// The plan with stages of about equal flops, unless it says otherwise: where they begin does not
/// depend on what ops cost.
inline ParallelPlan ByFlops(ParallelPlan plan) {
  if (plan.stages_by == StagesBy::kCost) plan.stages_by = StagesBy::kFlops;
  return plan;
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_PLAN_TEST_UTIL_H_
