#ifndef ORRERY_COST_MODELS_COLLECTIVES_STEPS_H_
#define ORRERY_COST_MODELS_COLLECTIVES_STEPS_H_

#include <compare>
#include <cstdint>
#include <span>

#include "cluster/collective_profile.h"
#include "cluster/topology.h"
#include "cost_models/collectives/rounds.h"
#include "support/units.h"

// How many steps from rank to rank follow each other in a collective: what a communication library
// adds to the wires, it adds to each of them.

namespace orrery::cost_models {

/// Steps that follow each other, whatever the number of pieces that a pipeline cuts the data into.
struct StepCount {
  int64_t between_nodes = 0;
  int64_t in_node = 0;
  Duration wire = {};  // the largest latency of the links of a step between nodes
  /// Of the busiest rank, messages from or to others of its node, one after the other.
  int64_t messages = 0;

  friend auto operator<=>(const StepCount&, const StepCount&) = default;
};

/// How many devices are in each node: where a topology has levels, the lowest is what others call a
/// node; 1 where there are no nodes to tell apart.
int32_t DevicesANode(const cluster::Topology& topology);

/// Whether a transfer goes from one node to another, when rank r is device r of `group`. Without
/// nodes to tell apart none does.
bool LeavesNode(const cluster::Topology& topology, std::span<const cluster::DeviceId> group,
                const Rounds& rounds, const Transfer& transfer);

/// The steps of `rounds` when rank r is device r of `group`. A round that repeats is a ring: a
/// message takes all its hops in turn, so its steps are between nodes in the share that its hops
/// are. Of a pipeline, the longest chain that the first piece goes through. Rings across nodes that
/// overlap with what switches do are trees in libraries (NVLSTree): as many steps as twice a number
/// fits into the nodes. Requires groups of rounds.ranks devices. O(transfers).
StepCount CountSteps(const cluster::Topology& topology, std::span<const cluster::DeviceId> group,
                     const Rounds& rounds);

/// Start-up and steps by that protocol, which is not the ideal one. By one for sends a rank's
/// messages in the node count, whether or not they wait for each other.
Duration LatencyOf(const StepCount& steps, const cluster::CollectiveProtocol& protocol);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_STEPS_H_
