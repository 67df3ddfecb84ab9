#ifndef ORRERY_LOWERING_NETWORK_PLACES_H_
#define ORRERY_LOWERING_NETWORK_PLACES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/topology.h"
#include "support/id.h"

// Where groups of ranks are. Of the thousands of groups of a cluster most are in the same place as
// another one, seen from within: a rotation of the topology moves one onto the other, rank by rank,
// and so each pays what the other pays. What is found of one group is then known of all of its
// place.

namespace orrery::lowering {

/// Devices, by rank of a group.
using Devices = std::vector<cluster::DeviceId>;

ORRERY_DEFINE_ID(PlaceId, "place");

/// The places of groups on a topology: those of one place are moved onto each other, rank r onto
/// rank r, by rotations (cluster::Topology::Rotations) that move nodes onto nodes. So their routes
/// are alike link by link, and so is all that follows from routes and from who is in a node with
/// whom. Groups that are alike for other reasons may be in two places; where no rotation is known,
/// each group is in one of its own. Not for several threads.
class Places {
 public:
  explicit Places(const cluster::Topology& topology);

  /// The place of a group. O(ranks × rotations).
  PlaceId Of(std::span<const cluster::DeviceId> group);

 private:
  // A rotation by `step` members at once.
  struct Turn {
    int32_t stride = 1;
    int32_t size = 1;
    int32_t step = 1;
  };

  std::vector<Turn> turns_;
  absl::flat_hash_map<Devices, PlaceId> numbers_;  // by groups that are turned to their origin
  Devices turned_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_PLACES_H_
