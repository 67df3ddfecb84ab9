#ifndef ORRERY_CLUSTER_LINK_GRAPH_H_
#define ORRERY_CLUSTER_LINK_GRAPH_H_

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "cluster/link.h"
#include "cluster/topology.h"
#include "support/id_table.h"

// The links of a topology as an explicit graph, with a route for every pair of devices: what a
// network model needs that lets flows share links. Only who asks for it pays for it.

namespace orrery::cluster {

/// The links that a message takes, in order, and what it meets on them.
struct Route {
  std::vector<LinkId> links;
  PathInfo path;
};

class LinkGraph {
 public:
  /// The most links that a graph is made for: 2,048 devices fully connected.
  static constexpr int64_t kMaxLinks = int64_t{1} << 22;

  /// The graph of `topology`; ResourceExhausted when it would have more than kMaxLinks links.
  static absl::StatusOr<LinkGraph> Create(const Topology& topology);

  /// Every link, ascending by (from, to).
  const IdTable<LinkId, Link>& links() const { return links_; }
  /// Devices and switches.
  int32_t vertex_count() const { return vertex_count_; }

  /// "device3" or, counted from 0 after the devices, "switch0".
  std::string VertexName(VertexId vertex) const;
  /// "device3 -> switch0 (port)".
  std::string LinkName(LinkId link) const;

  /// The route of fewest links; of several, that of the lexicographically least vertices. Finds
  /// the routes from `from` to everywhere on the first call and remembers them (4 bytes a vertex).
  /// Requires two different devices.
  Route FindRoute(DeviceId from, DeviceId to);

 private:
  // Rows of out-edges, sorted: an edge's index is its link's id, and searches meet lower vertices
  // first. An adjacency_list would take a heap block for each link's properties.
  using Graph =
      boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                         boost::no_property, int32_t, int32_t>;
  // For each vertex the last link of the route to it.
  using ArrivalLinks = IdTable<VertexId, LinkId>;

  explicit LinkGraph(const Topology& topology);
  const ArrivalLinks& RoutesFrom(DeviceId from);

  int32_t devices_;
  IdTable<LinkId, Link> links_;
  int32_t vertex_count_;
  Graph graph_;
  absl::flat_hash_map<DeviceId, ArrivalLinks> routes_;
};

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_LINK_GRAPH_H_
