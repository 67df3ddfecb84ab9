#ifndef ORRERY_TRANSFORMS_STAGES_COST_DIVISION_H_
#define ORRERY_TRANSFORMS_STAGES_COST_DIVISION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transforms/stages/stage_costs.h"
#include "transforms/stages/stage_plan.h"
#include "transforms/stages/stage_units.h"

// Which units a stage is made of, where costs decide.

namespace orrery::transforms {

/// A division that takes no longer than the fastest, times this, is as good as it: the one of them
/// that needs the least memory is taken.
inline constexpr double kAboutAsFast = 1.01;

/// The unit that each stage begins at.
struct UnitDivisions {
  std::vector<int32_t> fastest;
  std::vector<int32_t> leanest;  // that is about as fast (kAboutAsFast)
};

/// The fastest division that is found, and the one that needs the least memory of those that are
/// about as fast, within the memory of `options` where any is. Timed in the order of the schedule
/// that `options` has, or by its slowest rank where there is none, or it has millions of steps.
/// Requires no fewer units than stages.
UnitDivisions DivideUnits(std::span<const StageUnit> units, const UnitCosts& costs,
                          const StageOptions& options);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_COST_DIVISION_H_
