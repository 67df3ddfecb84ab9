#ifndef ORRERY_TRANSFORMS_STRATEGIES_ELIMINATION_ORDER_H_
#define ORRERY_TRANSFORMS_STRATEGIES_ELIMINATION_ORDER_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/model.h"

namespace orrery::transforms::strategies {

/// In which order nodes are eliminated.
struct EliminationOrder {
  std::vector<int32_t> nodes;     // all of them, the first eliminated first
  std::vector<int32_t> position;  // of each node in `nodes`
  /// [node]: the first neighbour to be eliminated after it, once those before have joined their
  /// neighbours; -1: none. All other such neighbours are ancestors in this forest.
  std::vector<int32_t> parent;
  size_t core = 0;     // nodes from this position on are not eliminated within the table limit
  int64_t visits = 0;  // neighbours that were looked at on the way
};

/// Always next the node whose elimination makes the smallest table; of equal ones the first. This
/// takes nodes of degree 0, 1 and 2 before others, and so undoes series-parallel graphs. `last`
/// come at the end, in the order given, and belong to the core.
EliminationOrder OrderNodes(const Model& model, double table_limit,
                            const std::vector<int32_t>& last);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_ELIMINATION_ORDER_H_
