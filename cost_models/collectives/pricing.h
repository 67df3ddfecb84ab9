#ifndef ORRERY_COST_MODELS_COLLECTIVES_PRICING_H_
#define ORRERY_COST_MODELS_COLLECTIVES_PRICING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/topology.h"
#include "cost_models/collectives/collective_kind.h"
#include "cost_models/collectives/rounds.h"
#include "cost_models/collectives/steps.h"
#include "support/units.h"

// What the rounds of a collective cost on a topology. Transfers of a round share links: one takes
// its latency and then as long as its most loaded link needs for all that passes over it. A round
// takes as long as the slowest of its transfers, a collective all rounds one after the other. Where
// no link is shared and all paths are alike, this is what a simulation of every transfer gives.
//
// A protocol of a communication library (cluster/collective_profile.h) changes that: the collective
// starts up, then a message's steps follow each other, each of which takes what the protocol says,
// while the data stream over the most loaded link of each round at the part of its rate that the
// protocol reaches. A rank of n has a part of its own, size / n, that it copies or adds up in its
// memory: one more step of the n - 1 or 2 (n - 1) of a ring, at a rate of its own. Links within the
// node wait for it, those between nodes do not. Pieces are so small that a pipeline's filling is in
// its steps.

namespace orrery::cost_models {

struct CollectiveAlgorithm;

/// A way to be the slowest transfer of a round: with `parts` parts over a link of that rate.
struct RoundCandidate {
  Duration latency = {};
  int64_t parts = 0;
  Bandwidth rate = {};
  bool leaves_node = false;  // told apart where the topology's profile is not ideal

  friend bool operator==(const RoundCandidate&, const RoundCandidate&) = default;
};

/// What one round costs, or several that overlap: none of the candidates is in all respects better
/// than another. Which one counts depends on the size.
struct RoundCost {
  int64_t repeat = 1;
  int64_t active = 1;  // of the repetitions, those in which a pipeline moves something
  std::vector<RoundCandidate> candidates = {};
};

/// Parts that a link carries in all rounds together.
struct LinkVolume {
  cluster::LinkNumber link = 0;
  int64_t parts = 0;
  Bandwidth rate = {};
};

/// What rounds cost on a topology, whatever the size. Made once for a group, used for every tensor.
struct RoundsCost {
  int64_t parts_a_size = 1;
  std::vector<RoundCost> rounds = {};
  std::vector<LinkVolume> volumes = {};  // of all links that carry anything, in order of first use
  StepCount steps = {};                  // counted where the topology's profile is not ideal
  double own_parts = 0;                  // that a rank handles beside those on links
};

/// A group of devices: rank r is device r.
using DeviceGroup = std::span<const cluster::DeviceId>;

/// The cost of `rounds` when all `groups` run them at the same time, step by step. Requires groups
/// of rounds.ranks different devices of `topology`. O(transfers × links of a route).
RoundsCost CostOf(const cluster::Topology& topology, std::span<const DeviceGroup> groups,
                  const Rounds& rounds);

/// The same of one group, but `volumes` may lack links: BusiestLinkOf finds what it would with all,
/// FlowOf does not. O(ranks × links of a route), in place of O(ranks²), for all pairs of ranks that
/// are alike.
RoundsCost CostOfBusiest(const cluster::Topology& topology, DeviceGroup group,
                         const Rounds& rounds);

/// No library, only wires.
const cluster::CollectiveProtocol& IdealProtocol();

/// Time on a network that nobody else uses; rounded once, up. See CollectiveKind for `size`.
Duration TimeOf(const RoundsCost& cost, Bytes size,
                const cluster::CollectiveProtocol& protocol = IdealProtocol());

/// How much of a link's bandwidth a flow takes for each unit of its rate.
struct LinkLoad {
  cluster::LinkNumber link = 0;
  double load = 0;
};

/// A whole collective as one flow (docs/adr/0007). Alone it takes latency + size / rate, which is
/// TimeOf to the picosecond; others slow it down through the loads.
struct CollectiveFlow {
  Bytes size = {};      // what the busiest link of each round carries; a multiple, to be whole
  Bandwidth rate = {};  // the most it takes
  Duration latency = {};
  std::vector<LinkLoad> loads = {};
};

/// What a protocol sends beside the data, its flags, loads links too: up to as much as the data.
CollectiveFlow FlowOf(const RoundsCost& cost, Bytes size,
                      const cluster::CollectiveProtocol& protocol = IdealProtocol());

/// That flow with the load of its first link alone, which says what a part is: of thousands of
/// links, that is all that some want to know.
CollectiveFlow FlowOfFirstLink(const RoundsCost& cost, Bytes size,
                               const cluster::CollectiveProtocol& protocol = IdealProtocol());

/// The link that needs longest for what it carries.
struct BusiestLink {
  cluster::LinkNumber link = -1;  // -1: no link carries anything
  Duration busy = {};
};
/// Of a collective of that size: the link that is busy longest, and how long; the first of those
/// that are equally busy.
BusiestLink BusiestLinkOf(const RoundsCost& cost, Bytes size);

/// What rounds of a group follow from, beside the group.
struct RoundsKey {
  CollectiveKind kind = CollectiveKind::kSendReceive;
  const CollectiveAlgorithm* algorithm = nullptr;
  int64_t parts = 0;
  int64_t parts_a_size = 0;
  int64_t repetitions = 0;

  friend bool operator==(const RoundsKey&, const RoundsKey&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const RoundsKey& key) {
    return H::combine(std::move(hash), key.kind, key.algorithm, key.parts, key.parts_a_size,
                      key.repetitions);
  }
};

/// The key of rounds that `algorithm` made; null: no algorithm, but the one message of a send.
RoundsKey KeyOf(const CollectiveAlgorithm* algorithm, const Rounds& rounds);

/// CostOf the rounds of algorithms for one group, each found once: a plan has collectives of a
/// hundred sizes among the same ranks, and what rounds cost does not depend on the size, only on
/// into how many parts it is cut. Not for several threads.
class KeptCosts {
 public:
  /// It stays where it is for as long as this lives. Requires the same group each time, or one that
  /// a rotation moves onto it: then the volumes are of the links of the first.
  const RoundsCost& Of(const CollectiveAlgorithm& algorithm, const Rounds& rounds,
                       DeviceGroup group, const cluster::Topology& topology);

 private:
  absl::flat_hash_map<RoundsKey, std::unique_ptr<const RoundsCost>> costs_;
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_PRICING_H_
