#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_NAIVE_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_NAIVE_H_

#include <optional>
#include <span>

#include "transforms/redistribution/search.h"

// What plans are compared with.

namespace orrery::transforms::redistribution {

/// The plan that goes from `from` through `layouts` in turn, each reached by one of the move set's
/// moves; of several the cheapest. Nothing where there is none.
std::optional<RedistributionPlan> Follow(const MoveSet& move_set, const PackedLayout& from,
                                         std::span<const PackedLayout> layouts);

/// The plan that reduces and gathers axis by axis until every rank has everything, and then slices
/// as the target is; nothing where the move set has no such moves.
std::optional<RedistributionPlan> NaivePlan(const MoveSet& move_set, const Problem& problem);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_NAIVE_H_
