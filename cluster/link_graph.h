#ifndef ORRERY_CLUSTER_LINK_GRAPH_H_
#define ORRERY_CLUSTER_LINK_GRAPH_H_

#include <atomic>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/link.h"
#include "cluster/spanning_trees.h"
#include "cluster/topology.h"
#include "support/id_table.h"

// Links as an explicit graph, with a route for every pair of devices: for a network that no kind of
// topology describes, and as the oracle that their routes are tested against.

namespace orrery::cluster {

/// What an explicit graph is made from.
struct GraphParts {
  int32_t devices = 1;           // vertices 0 to devices - 1; >= 1
  int32_t switches = 0;          // the vertices after them
  std::vector<Link> links = {};  // in any order; several from one vertex to another are several
  std::vector<std::string> names = {};  // of the vertices; empty: "device3", "switch0"
  std::vector<VertexId> reducing = {};  // switches that add up what they are sent
};

/// Devices and switches with the links between them, each by itself. Never changes; copies are as
/// large as it.
class LinkGraph {
 public:
  /// The most links that a graph is made for: 2,048 devices fully connected.
  static constexpr int64_t kMaxLinks = int64_t{1} << 22;

  /// The graph of `topology`; ResourceExhausted when it would have more than kMaxLinks links.
  static absl::StatusOr<LinkGraph> Create(const Topology& topology);

  /// A graph of these parts. InvalidArgument when a link leads from or to no vertex, or to where it
  /// comes from, is not faster than 0 or has a negative latency; when there are more than
  /// kMaxLinks; and when some device cannot send to another.
  static absl::StatusOr<LinkGraph> Create(GraphParts parts);

  /// Every link, ascending by (from, to); else in the order given.
  const IdTable<LinkId, Link>& links() const { return links_; }
  int32_t devices() const { return devices_; }
  /// Devices and switches.
  int32_t vertex_count() const { return vertex_count_; }
  /// Whether a vertex is a switch that adds up what it is sent.
  bool reduces(VertexId vertex) const { return reduces_[vertex] != 0; }

  /// As it was given, or "device3" and, counted from 0 after the devices, "switch0".
  std::string VertexName(VertexId vertex) const;
  /// "device3 -> switch0 (port)".
  std::string LinkName(LinkId link) const;

  /// Appends a route of fewest links, of these one that is widest, and of these one by a fixed hash
  /// of `from` and `to`, so that pairs spread over them (equal-cost multipath). Any number of
  /// threads may ask. The first call for a `to` searches from there, once, and keeps 12 bytes a
  /// vertex. Requires two different devices. Ways 1, 2, … are others as good, one after the other
  /// at every fork: of n links side by side, ways 0 to n - 1 take each once.
  void AppendRoute(DeviceId from, DeviceId to, std::vector<LinkNumber>& route,
                   int32_t way = 0) const;

  /// What has been laid on this graph, so that nobody lays it twice.
  LaidOutCache& laid_out() const { return *laid_out_; }

 private:
  // Rows of out-edges, sorted: an edge's index is its link's id. An adjacency_list would take a
  // heap block for each link's properties.
  using Graph =
      boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                         boost::no_property, int32_t, int32_t>;
  // For each vertex the fewest links from it to one device, -1 where there is no way, and the
  // narrowest rate on the widest such way.
  struct Distances {
    std::vector<int32_t> links;
    std::vector<int64_t> width;
  };

  // Distances by device, each made by whoever needs it first.
  class DistanceCache {
   public:
    explicit DistanceCache(int32_t devices);
    ~DistanceCache();
    const Distances* Get(DeviceId to) const;
    // Keeps `distances`, or what another thread kept before.
    const Distances* Keep(DeviceId to, std::unique_ptr<const Distances> distances);

   private:
    std::vector<std::atomic<const Distances*>> rows_;
  };

  explicit LinkGraph(GraphParts parts);
  std::vector<LinkId> Closer(const std::vector<int32_t>& distances, int32_t vertex) const;
  std::unique_ptr<const Distances> Search(DeviceId to) const;
  const Distances& DistancesTo(DeviceId to) const;
  absl::Status CheckConnected() const;

  int32_t devices_;
  int32_t vertex_count_;
  IdTable<LinkId, Link> links_;
  std::vector<std::string> names_;
  IdTable<VertexId, char> reduces_;
  Graph graph_;
  Graph reversed_;
  std::unique_ptr<DistanceCache> distances_;
  std::unique_ptr<LaidOutCache> laid_out_ = std::make_unique<LaidOutCache>();
};

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_LINK_GRAPH_H_
