#ifndef ORRERY_COST_MODELS_COLLECTIVES_LAID_TREES_H_
#define ORRERY_COST_MODELS_COLLECTIVES_LAID_TREES_H_

#include "cost_models/collectives/collective_algorithm.h"

namespace orrery::cost_models {

/// The collective over trees that are laid along links, an equal share of the data on each, in
/// chunks that follow each other through all levels: an all-reduce up to the root and down again, a
/// broadcast or all-gather (each tree with a part of its root's) down, a reduce or reduce-scatter
/// up. Requires trees that are laid for `call.kind`.
Rounds TreeRounds(const CollectiveCall& call, const cluster::SpanningTrees& trees);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_LAID_TREES_H_
