#include "lowering/network/places.h"

#include "cost_models/collectives/alike_ranks.h"
#include "cost_models/collectives/steps.h"

namespace orrery::lowering {
namespace places_cc {
namespace {

// By how many members at once a rotation moves whole nodes onto nodes; 0: by none.
int32_t StepOf(const cluster::Rotation& rotation, int32_t devices_a_node) {
  if (cost_models::KeepsNodes(rotation, devices_a_node)) return 1;
  const int64_t span = int64_t{rotation.stride} * rotation.size;
  const bool of_nodes = devices_a_node % rotation.stride == 0 && span % devices_a_node == 0;
  return of_nodes ? devices_a_node / rotation.stride : 0;
}

}  // namespace
}  // namespace places_cc

Places::Places(const cluster::Topology& topology) {
  for (const cluster::Rotation& rotation : topology.Rotations()) {
    const int32_t step = places_cc::StepOf(rotation, cost_models::DevicesANode(topology));
    if (step > 0) {
      turns_.push_back({.stride = rotation.stride, .size = rotation.size, .step = step});
    }
  }
}

// One rotation after the other takes rank 0 as near to device 0 as it can, and the others with it.
PlaceId Places::Of(std::span<const cluster::DeviceId> group) {
  turned_.assign(group.begin(), group.end());
  for (const Turn& turn : turns_) {
    const int32_t first = turned_.front().index() / turn.stride % turn.size;
    const int32_t back = first - first % turn.step;
    if (back == 0) continue;
    for (cluster::DeviceId& device : turned_) {
      const int32_t digit = device.index() / turn.stride % turn.size;
      const int32_t moved = digit - back + (digit < back ? turn.size : 0);
      device = cluster::DeviceId(device.index() + (moved - digit) * turn.stride);
    }
  }
  const auto found = numbers_.find(turned_);
  if (found != numbers_.end()) return found->second;
  const PlaceId place(static_cast<int32_t>(numbers_.size()));
  numbers_.emplace(turned_, place);
  return place;
}

}  // namespace orrery::lowering
