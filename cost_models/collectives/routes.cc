#include "cost_models/collectives/routes.h"

#include "support/check.h"

namespace orrery::cost_models {
namespace routes_cc {
namespace {

// A rank that `rank` meets at that hub: the next of its node, or the one in its position of the
// next node.
int32_t Opposite(int32_t rank, int32_t hub, int32_t ranks, int32_t ranks_a_node) {
  const int32_t node = rank / ranks_a_node;
  if (hub == Hub(ranks / ranks_a_node)) return (rank + ranks_a_node) % ranks;
  ORRERY_CHECK(hub == Hub(node)) << "rank " << rank << " at hub " << Hub(hub);
  return node * ranks_a_node + (rank + 1 - node * ranks_a_node) % ranks_a_node;
}

// The position of the first link after the middle of a route: there is the hub.
std::ptrdiff_t Middle(size_t links) { return static_cast<std::ptrdiff_t>(links / 2); }

}  // namespace
}  // namespace routes_cc

cluster::VertexId MiddleSwitch(const cluster::Topology& topology, cluster::DeviceId from,
                               cluster::DeviceId to) {
  std::vector<cluster::LinkNumber> route;
  topology.AppendRoute(from, to, route);
  if (route.empty() || route.size() % 2 != 0) return cluster::VertexId();
  const cluster::VertexId middle =
      topology.LinkAt(route[static_cast<size_t>(routes_cc::Middle(route.size()) - 1)]).to;
  return middle.index() >= topology.devices() ? middle : cluster::VertexId();
}

void AppendTransferRoute(const cluster::Topology& topology,
                         std::span<const cluster::DeviceId> group, int32_t ranks_a_node,
                         const Transfer& transfer, std::vector<cluster::LinkNumber>& route) {
  const auto device = [&](int32_t rank) { return group[static_cast<size_t>(rank)]; };
  if (!IsHub(transfer.from) && !IsHub(transfer.to)) {
    topology.AppendWay(device(transfer.from), device(transfer.to), transfer.way, route);
    return;
  }
  const bool up = IsHub(transfer.to);
  const int32_t rank = up ? transfer.from : transfer.to;
  const int32_t opposite = routes_cc::Opposite(rank, up ? transfer.to : transfer.from,
                                               static_cast<int32_t>(group.size()), ranks_a_node);
  const size_t begin = route.size();
  topology.AppendRoute(device(up ? rank : opposite), device(up ? opposite : rank), route);
  const auto first = route.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto middle = first + routes_cc::Middle(route.size() - begin);
  if (up) {
    route.erase(middle, route.end());
  } else {
    route.erase(first, middle);
  }
}

}  // namespace orrery::cost_models
