#include "absl/strings/str_cat.h"
#include "cluster/link_graph.h"
#include "cluster/topologies.h"

// Any links at all, listed one by one. Routes have the fewest links; of several, a pair of devices
// always takes the same one, and pairs spread over them.

namespace orrery::cluster {
namespace graph_cc {
namespace {

absl::Status Check(const TopologyShape& shape) {
  if (shape.graph == nullptr) return absl::InvalidArgumentError("got no graph; wanted its links");
  if (shape.graph->devices() == shape.devices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got a graph of ", shape.graph->devices(), " devices; wanted ", shape.devices));
}

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  return shape.graph->links()[LinkId(static_cast<int32_t>(link))];
}

}  // namespace
}  // namespace graph_cc

constinit const TopologyKind kGraphTopology = {
    .name = "graph",
    .summary = "Any links, listed one by one; messages spread over the shortest routes.",
    .parameters = "graph",
    .check = graph_cc::Check,
    .link_count = [](const TopologyShape& shape) { return int64_t{shape.graph->links().size()}; },
    .link_at = graph_cc::LinkAt,
    .append_route =
        [](const TopologyShape& shape, DeviceId from, DeviceId to, std::vector<LinkNumber>& route) {
          shape.graph->AppendRoute(from, to, route);
        },
    .reduces = [](const TopologyShape& shape,
                  VertexId vertex) { return shape.graph->reduces(vertex); },
    .vertex_name = [](const TopologyShape& shape,
                      VertexId vertex) { return shape.graph->VertexName(vertex); },
};

}  // namespace orrery::cluster
