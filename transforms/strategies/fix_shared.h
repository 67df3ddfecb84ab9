#ifndef ORRERY_TRANSFORMS_STRATEGIES_FIX_SHARED_H_
#define ORRERY_TRANSFORMS_STRATEGIES_FIX_SHARED_H_

#include <vector>

#include "transforms/strategies/model.h"

namespace orrery::transforms::strategies {

/// Nodes in no block that blocks between the first and the last read, as all layers do tables of
/// angles, take a strategy that costs the least whatever all others take, if they have one. What
/// that costs their neighbours then counts there, and the edges are gone. Leaves limits alone: a
/// solution of a model with limits that bind may be lost.
void FixShared(Model& model, const std::vector<RepeatedBlocks>& repeats);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_FIX_SHARED_H_
