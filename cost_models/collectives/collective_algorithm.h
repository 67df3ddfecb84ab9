#ifndef ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_ALGORITHM_H_
#define ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_ALGORITHM_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "cluster/topology.h"
#include "cost_models/cost_model.h"
#include "support/units.h"

// An algorithm carries out a collective as messages between its ranks. Its closed form is the time
// that those take when nobody else uses the network.

namespace orrery::cost_models {

/// One collective, as a closed form sees it.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Bytes size;                   // the whole tensor, as CostModel::Collective has it
  int64_t ranks = 2;            // >= 2
  cluster::PathInfo ring = {};  // between neighbours of the group; see SlowestHop
};

/// The one record of an algorithm. All that a new one needs, besides its line in collectives.def.
struct CollectiveAlgorithm {
  absl::string_view name;     // "ring"
  absl::string_view summary;  // one sentence
  absl::string_view source;
  /// Time on an idle network, rounded once, up. Where all paths of the group are as `ring`, it is
  /// not below the bandwidth bound.
  Duration (*time)(const CollectiveCall& call) = nullptr;
};

/// All algorithms, in the order of collectives.def.
std::span<const CollectiveAlgorithm* const> AllCollectiveAlgorithms();

/// The least time over all algorithms: which one a communication library would choose.
Duration FastestTime(const CollectiveCall& call);

/// What the steps of a ring meet that passes through `group` in the order given and back to its
/// first device: the narrowest rate and the largest latency of its hops. Requires at least two
/// devices, all different, of `topology`.
cluster::PathInfo SlowestHop(std::span<const cluster::DeviceId> group,
                             const cluster::Topology& topology);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_COLLECTIVE_ALGORITHM_H_
