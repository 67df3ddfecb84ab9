#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/sharding/sharding_memory.h"
#include "transforms/strategies/strategy_graph.h"

namespace orrery::transforms {

/// The function whose choices are to be priced, and how often its update counts.
struct ShardingCosts {
  const AxisProblem& problem;
  int64_t microbatches;  // that share one update
  ShardingMemory& memory;
};

/// Whether the choice is to be weighed by memory at all.
inline bool WeighsMemory(const AutoShardOptions& options) {
  return options.memory_price > 0 || options.memory_limit > Bytes(0);
}
inline KeptGathered GatheredOf(const AutoShardOptions& options) {
  return options.gathers ? KeptGathered::kInParts : KeptGathered::kWhole;
}

/// The prices of all choices, in seconds: which to take where, as a problem for the solver. An
/// error where a node has none that can be.
absl::StatusOr<strategies::StrategyGraph> PriceChoices(const ShardingCosts& costs,
                                                       const ShardingChoices& choices,
                                                       LayoutWays& ways);

/// What they keep, as a problem of as many nodes and choices: in bytes as
/// AutoShardOptions::memory_limit counts them, also what two choices together keep more.
strategies::StrategyGraph WeighChoices(const ShardingChoices& choices, KeptGathered gathered,
                                       ShardingMemory& memory);

/// The problem in seconds where each byte costs `price`.
strategies::StrategyGraph WithMemory(strategies::StrategyGraph seconds,
                                     const strategies::StrategyGraph& bytes, double price);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
