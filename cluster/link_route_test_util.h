#ifndef ORRERY_CLUSTER_LINK_ROUTE_TEST_UTIL_H_
#define ORRERY_CLUSTER_LINK_ROUTE_TEST_UTIL_H_

#include <vector>

#include "cluster/link_graph.h"

namespace orrery::cluster {

/// The links that a message takes, in order, and what it meets on them.
struct Route {
  std::vector<LinkId> links;
  PathInfo path;
};

/// The route that LinkGraph::AppendRoute appends, with its links joined.
inline Route FindRoute(const LinkGraph& graph, DeviceId from, DeviceId to) {
  std::vector<LinkNumber> numbers;
  graph.AppendRoute(from, to, numbers);
  Route route;
  for (const LinkNumber number : numbers) {
    route.links.push_back(LinkId(static_cast<int32_t>(number)));
    const PathInfo& speed = graph.links()[route.links.back()].speed;
    route.path = route.links.size() == 1 ? speed : Join(route.path, speed);
  }
  return route;
}

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_LINK_ROUTE_TEST_UTIL_H_
