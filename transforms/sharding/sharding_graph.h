#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/sharding/sharding_memory.h"
#include "transforms/strategies/strategy_graph.h"

namespace orrery::transforms {

/// What each choice costs: which to take where, as a problem for the solver.
struct ShardingGraph {
  strategies::StrategyGraph graph;  // in seconds
  /// Bytes that each choice of each node keeps, as AutoShardOptions::memory_limit counts them, and
  /// that two choices together keep more: where the options weigh memory, else none.
  std::vector<std::vector<double>> memory;
  std::vector<strategies::StrategyEdge> copies;
};

/// The function whose choices are to be priced, and what is known of it.
struct ShardingCosts {
  const AxisProblem& problem;
  const AutoShardOptions& options;  // microbatches, and how memory counts
  ShardingMemory& memory;
};

/// Whether the choice is to be weighed by memory at all.
inline bool WeighsMemory(const AutoShardOptions& options) {
  return options.memory_price > 0 || options.memory_limit > Bytes(0);
}
inline KeptGathered GatheredOf(const AutoShardOptions& options) {
  return options.gathers ? KeptGathered::kInParts : KeptGathered::kWhole;
}

/// The prices of all choices; an error where a node has none that can be.
absl::StatusOr<ShardingGraph> PriceChoices(const ShardingCosts& costs,
                                           const ShardingChoices& choices, LayoutWays& ways);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
