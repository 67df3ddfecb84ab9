#ifndef ORRERY_TRANSFORMS_STRATEGIES_IMPROVE_H_
#define ORRERY_TRANSFORMS_STRATEGIES_IMPROVE_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/model.h"

namespace orrery::transforms::strategies {

/// Changes the strategy of one node after the other while that makes `choice` cheaper, within the
/// memory limits, which it must fit already.
void Improve(const Model& model, std::vector<int32_t>& choice);

/// Changes strategies, each time the one that costs the least for the memory that it frees, until
/// `choice` fits. Returns whether it does.
bool Repair(const Model& model, std::vector<int32_t>& choice);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_IMPROVE_H_
