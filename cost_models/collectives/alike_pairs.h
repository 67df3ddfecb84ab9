#ifndef ORRERY_COST_MODELS_COLLECTIVES_ALIKE_PAIRS_H_
#define ORRERY_COST_MODELS_COLLECTIVES_ALIKE_PAIRS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cluster/topology.h"

// What links carry when every rank of a group sends to each other, where ranks are so alike that
// the routes of a few tell: links that rotations move onto each other carry the same.

namespace orrery::cost_models {

/// A link, and of the routes between all pairs of ranks those that take it.
struct PairLoad {
  cluster::LinkNumber link = 0;
  int64_t pairs = 0;
  bool in_node = false;  // whether a pair within a node takes it
};

/// The routes from ranks that stand for all, to all others.
struct AlikePairs {
  std::vector<PairLoad> loads = {};  // of all links of these routes, in order of first use
  std::vector<int32_t> steps = {};   // the routes one after the other, as positions in `loads`
  std::vector<size_t> ends = {};     // where each ends in `steps`
};

/// Routes in the order of ForEachTransfer. Nothing where too many ranks are unlike, or that they
/// are alike tells nothing about links. O((ranks + links) × links of a route).
std::optional<AlikePairs> FindAlikePairs(const cluster::Topology& topology,
                                         std::span<const cluster::DeviceId> group);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_ALIKE_PAIRS_H_
