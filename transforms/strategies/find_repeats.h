#ifndef ORRERY_TRANSFORMS_STRATEGIES_FIND_REPEATS_H_
#define ORRERY_TRANSFORMS_STRATEGIES_FIND_REPEATS_H_

#include <vector>

#include "transforms/strategies/strategy_graph.h"

namespace orrery::transforms::strategies {

/// Blocks of `graph` that are equal, as SolveOptions::repeats wants them: one node of each of them
/// follows the other from layer to layer, and blocks begin where the fewest choices lie between
/// them. Blocks at the ends may be missing. Empty where there are none, or where they are in doubt.
/// For a graph that is valid; in time near linear in it.
std::vector<RepeatedBlocks> FindRepeats(const StrategyGraph& graph);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_FIND_REPEATS_H_
