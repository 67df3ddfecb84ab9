#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/strategies/strategy_graph.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {

/// What each choice costs: which to take where, as a problem for the solver.
struct ShardingGraph {
  strategies::StrategyGraph graph;  // in seconds
  /// Bytes that each choice of each node keeps, as AutoShardOptions::memory_limit counts them.
  std::vector<std::vector<double>> memory;
};

/// The function whose choices are to be priced, and what is known of it.
struct ShardingCosts {
  const AxisProblem& problem;
  const IdTable<ir::OpId, StepPhase>& phase;
  const AutoShardOptions& options;  // microbatches, in_flight and held are read
};

/// The prices of all choices; an error where a node has none that can be.
absl::StatusOr<ShardingGraph> PriceChoices(const ShardingCosts& costs,
                                           const ShardingChoices& choices, LayoutWays& ways);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
