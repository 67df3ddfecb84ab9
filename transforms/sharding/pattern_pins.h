#ifndef ORRERY_TRANSFORMS_SHARDING_PATTERN_PINS_H_
#define ORRERY_TRANSFORMS_SHARDING_PATTERN_PINS_H_

#include "ir/function.h"
#include "support/id_table.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/shard_plan.h"
#include "transforms/sharding/sharding_choices.h"

// Megatron's pattern as pins for the choice by cost: weights lie where it has them, and with its
// sequence parallelism the residual stream, too. What it leaves open, prices decide.

namespace orrery::transforms {

/// Pins the weights of experts, those of products which have a dimension of their own for each
/// expert, along it: each rank of "ep" serves whole experts. Where their number does not divide,
/// nothing is pinned, and true stands for those of which some dimension should be split anyway.
IdTable<ir::ValueId, char> PinExperts(const AxisProblem& problem, PinnedLayouts& pins);

/// Pins all parameters that are not pinned yet as whole, but for `others`, if any: of the axes that
/// share samples, positions or experts.
void PinWhole(const AxisProblem& problem, const IdTable<ir::ValueId, char>& others,
              PinnedLayouts& pins);

/// Pins parameters as `splits` has them.
void PinWeights(const AxisProblem& problem, const TensorSplits& splits, PinnedLayouts& pins);

/// Pins what the pattern leaves a sum, and the residual stream to which that is added, along the
/// sequence (Korthikanti et al. 2022). Whether something was to be pinned so.
bool PinSequence(const AxisProblem& problem, const TensorSplits& splits, PinnedLayouts& pins);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_PATTERN_PINS_H_
