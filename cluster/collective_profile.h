#ifndef ORRERY_CLUSTER_COLLECTIVE_PROFILE_H_
#define ORRERY_CLUSTER_COLLECTIVE_PROFILE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

// What a communication library (NCCL, RCCL) adds to the wires of a machine: kernels that start,
// flags that travel with the data, copies in a device's own memory. Plain data of few numbers;
// cost_models/collectives/pricing.h says how they become times.

namespace orrery::cluster {

/// One way to move the data of a collective: quick to start, or quick when it runs.
struct CollectiveProtocol {
  std::string name = {};  // "ll128"; empty: ideal, nothing but the wires
  /// The part of a link's rate that the data reach in a node: more than 0, at most 1.
  double rate = 1;
  double rate_between_nodes = 1;  // likewise of links that only messages between nodes use
  Duration start_up = {};         // of a collective: launches, and ranks that wait for each other
  /// What a step from rank to rank takes within a node, instead of the links' latencies: kernels
  /// that poll each other's memory are quicker than the ping that measures a link.
  Duration step_in_node = {};
  /// What a step between nodes takes on top of the links' latencies: proxies, registration.
  Duration step_between_nodes = {};
  /// The rate at which a rank of n deals with a part, size / n, that no link of the node carries
  /// for it: its own, which it copies or adds up in its memory before or after the others pass.
  /// Few ranks have large parts, so that two are slower than eight. 0: that takes no time.
  Bandwidth part_rate = {};
  /// Whether it is for reductions in switches (NVLS, SHARP). Others are for all other algorithms.
  bool in_network = false;
  /// Whether it is for what libraries make of sends and receives: all-to-all, scatter, gather, send
  /// and receive. `step_in_node` is then what each further message of a rank takes. Others are for
  /// all other kinds.
  bool sends = false;
  /// Whether `start_up` is of all steps too, as where it was measured. Not for files.
  bool start_up_has_steps = false;

  bool ideal() const { return name.empty(); }
  friend bool operator==(const CollectiveProtocol&, const CollectiveProtocol&) = default;
};

/// The protocols of a library on a machine. The fastest is taken.
struct CollectiveProfile {
  std::string name = {};
  std::vector<CollectiveProtocol> protocols = {};  // none: ideal

  bool ideal() const { return protocols.empty(); }
  friend bool operator==(const CollectiveProfile&, const CollectiveProfile&) = default;
};

/// What is impossible about a profile: InvalidArgument of one line that names the protocol.
absl::Status CheckCollectiveProfile(const CollectiveProfile& profile);

/// The profile of that name; the error lists the names that there are. "ideal" has no protocols.
absl::StatusOr<CollectiveProfile> FindCollectiveProfile(absl::string_view name);

/// Every name of a profile, "ideal" first.
std::span<const absl::string_view> CollectiveProfileNames();

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_COLLECTIVE_PROFILE_H_
