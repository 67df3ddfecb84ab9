#ifndef ORRERY_TRANSFORMS_STRATEGIES_REPARAMETRIZE_H_
#define ORRERY_TRANSFORMS_STRATEGIES_REPARAMETRIZE_H_

#include "transforms/strategies/model.h"

namespace orrery::transforms::strategies {

/// Moves costs between nodes and tables so that no choice changes its cost, but the sum of the
/// least of each grows (max-sum diffusion's sequential form, TRW-S: Kolmogorov 2006). Then takes
/// away strategies that cost more than a known choice. Only tables of two nodes change.
void Reparametrize(Model& model);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_REPARAMETRIZE_H_
