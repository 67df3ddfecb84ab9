#include "cluster/link_graph.h"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/check.h"

namespace orrery::cluster {
namespace {

IdTable<LinkId, Link> SortedLinks(const Topology& topology) {
  IdTable<LinkId, Link> links;
  links.reserve(static_cast<int32_t>(topology.link_count()));
  for (LinkNumber link = 0; link < topology.link_count(); ++link) {
    links.push_back(topology.LinkAt(link));
  }
  std::ranges::stable_sort(links.rows(), {},
                           [](const Link& link) { return std::tie(link.from, link.to); });
  return links;
}

int32_t CountVertices(int32_t devices, const IdTable<LinkId, Link>& links) {
  int32_t count = devices;
  for (const Link& link : links.rows()) count = std::max(count, link.from.index() + 1);
  for (const Link& link : links.rows()) count = std::max(count, link.to.index() + 1);
  return count;
}

std::vector<std::pair<int32_t, int32_t>> Edges(const IdTable<LinkId, Link>& links) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  edges.reserve(links.rows().size());
  for (const Link& link : links.rows()) edges.emplace_back(link.from.index(), link.to.index());
  return edges;
}

// Notes the link over which a breadth-first search first reaches each vertex. As rows are sorted
// and the queue keeps order, that is the last link of the lexicographically least shortest route.
struct ArrivalRecorder : boost::default_bfs_visitor {
  explicit ArrivalRecorder(IdTable<VertexId, LinkId>* table) : arrivals(table) {}
  template <typename Edge, typename Graph>
  void tree_edge(const Edge& edge, const Graph& graph) const {
    (*arrivals)[VertexId(static_cast<int32_t>(boost::target(edge, graph)))] =
        LinkId(static_cast<int32_t>(boost::get(boost::edge_index, graph, edge)));
  }
  IdTable<VertexId, LinkId>* arrivals;
};

}  // namespace

absl::StatusOr<LinkGraph> LinkGraph::Create(const Topology& topology) {
  const int64_t count = topology.link_count();
  if (count > kMaxLinks) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a ", topology.kind().name, " topology of ", topology.devices(),
                     " devices has ", count, " links; wanted at most ", kMaxLinks,
                     "; try fewer devices, or a network model without shared links"));
  }
  return LinkGraph(topology);
}

LinkGraph::LinkGraph(const Topology& topology)
    : devices_(topology.devices()),
      links_(SortedLinks(topology)),
      vertex_count_(CountVertices(devices_, links_)) {
  const auto edges = Edges(links_);
  graph_ = Graph(boost::edges_are_sorted, edges.begin(), edges.end(), vertex_count_, links_.size());
}

std::string LinkGraph::VertexName(VertexId vertex) const {
  if (vertex.index() < devices_) return ToString(DeviceId(vertex.index()));
  return absl::StrCat("switch", vertex.index() - devices_);
}

std::string LinkGraph::LinkName(LinkId link) const {
  const Link& row = links_[link];
  return absl::StrCat(VertexName(row.from), " -> ", VertexName(row.to), " (", row.kind, ")");
}

const LinkGraph::ArrivalLinks& LinkGraph::RoutesFrom(DeviceId from) {
  const auto [entry, is_new] = routes_.try_emplace(from);
  if (is_new) {
    entry->second.resize(vertex_count_);
    const auto source = static_cast<boost::graph_traits<Graph>::vertex_descriptor>(from.index());
    boost::breadth_first_search(graph_, source, boost::visitor(ArrivalRecorder(&entry->second)));
  }
  return entry->second;
}

Route LinkGraph::FindRoute(DeviceId from, DeviceId to) {
  ORRERY_CHECK(from.valid() && to.valid() && from != to && from.index() < devices_ &&
               to.index() < devices_)
      << "from " << from << " to " << to << " of " << devices_;
  const ArrivalLinks& arrivals = RoutesFrom(from);
  Route route;
  for (VertexId at(to.index()); at != VertexId(from.index());
       at = links_[route.links.back()].from) {
    ORRERY_CHECK(arrivals[at].valid()) << "no route from " << from << " to " << to;
    route.links.push_back(arrivals[at]);
  }
  std::ranges::reverse(route.links);
  route.path = links_[route.links.front()].speed;
  for (size_t i = 1; i < route.links.size(); ++i) {
    route.path = Join(route.path, links_[route.links[i]].speed);
  }
  return route;
}

}  // namespace orrery::cluster
