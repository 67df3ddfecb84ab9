#include <algorithm>

#include "cluster/link_graph.h"
#include "cluster/spanning_trees.h"
#include "support/check.h"

namespace orrery::cluster {
namespace ring_order_cc {
namespace {

// Their distances are 64 Ki numbers, and take a few milliseconds to find.
constexpr size_t kMostDevices = 256;

// A ring over some devices, and how many links it takes.
class Ring {
 public:
  Ring(const std::vector<DeviceId>& group, const Topology& topology) : order_(group) {
    const size_t count = group.size();
    links_.resize(count * count);
    for (size_t i = 0; i < count; ++i) positions_.push_back(i);
    std::vector<LinkNumber> route;
    for (size_t from = 0; from < count; ++from) {
      for (size_t to = 0; to < count; ++to) {
        if (from == to) continue;
        route.clear();
        topology.AppendRoute(group[from], group[to], route);
        links_[from * count + to] = static_cast<int32_t>(route.size());
      }
    }
  }

  std::vector<DeviceId> Shortest() {
    while (Improve()) {
    }
    std::vector<DeviceId> order;
    for (const size_t position : positions_) order.push_back(order_[position]);
    return order;
  }

 private:
  int32_t LinksBetween(size_t from, size_t to) const {
    const size_t count = order_.size();
    return links_[positions_[from % count] * count + positions_[to % count]];
  }
  // There and back, as ways back may be longer.
  int32_t Both(size_t from, size_t to) const {
    return LinksBetween(from, to) + LinksBetween(to, from);
  }

  // Two hops a-b and c-d become a-c and b-d, with what is between them the other way round.
  bool Improve() {
    bool improved = false;
    for (size_t first = 0; first + 2 < order_.size(); ++first) {
      for (size_t second = first + 2; second < order_.size(); ++second) {
        if (first == 0 && second + 1 == order_.size()) continue;
        const int32_t now = Both(first, first + 1) + Both(second, second + 1);
        if (Both(first, second) + Both(first + 1, second + 1) >= now) continue;
        std::reverse(positions_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                     positions_.begin() + static_cast<std::ptrdiff_t>(second) + 1);
        improved = true;
      }
    }
    return improved;
  }

  const std::vector<DeviceId>& order_;
  std::vector<size_t> positions_;  // in order_, as the ring passes through them
  std::vector<int32_t> links_;     // from each to each
};

std::vector<DeviceId> Lay(const std::vector<DeviceId>& group, const Topology& topology) {
  if (group.size() < 4 || group.size() > kMostDevices) return group;
  return Ring(group, topology).Shortest();
}

}  // namespace
}  // namespace ring_order_cc

const std::vector<DeviceId>& RingOrderOf(const std::vector<DeviceId>& group,
                                         const Topology& topology) {
  ORRERY_CHECK(topology.shape().graph != nullptr) << topology.kind().name;
  LaidOutCache& cache = topology.shape().graph->laid_out();
  return cache.Find(cache.rings, group, [&] { return ring_order_cc::Lay(group, topology); });
}

}  // namespace orrery::cluster
