#include "cluster/link_graph.h"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/check.h"
#include "support/numbers/mix_bits.h"
#include "support/status.h"

namespace orrery::cluster {
namespace link_graph_cc {
namespace {

using Edges = std::vector<std::pair<int32_t, int32_t>>;

IdTable<LinkId, Link> Sorted(std::vector<Link> rows) {
  IdTable<LinkId, Link> links;
  links.rows() = std::move(rows);
  std::ranges::stable_sort(links.rows(), {},
                           [](const Link& link) { return std::tie(link.from, link.to); });
  return links;
}

Edges EdgesOf(const IdTable<LinkId, Link>& links, bool reversed) {
  Edges edges;
  edges.reserve(links.rows().size());
  for (const Link& link : links.rows()) {
    edges.emplace_back(reversed ? link.to.index() : link.from.index(),
                       reversed ? link.from.index() : link.to.index());
  }
  if (reversed) std::ranges::sort(edges);
  return edges;
}

template <typename Graph>
std::vector<int32_t> DistancesFrom(const Graph& graph, int32_t source) {
  std::vector<int32_t> distances(static_cast<size_t>(boost::num_vertices(graph)), -1);
  distances[static_cast<size_t>(source)] = 0;
  const auto start = static_cast<typename boost::graph_traits<Graph>::vertex_descriptor>(source);
  const auto index = boost::get(boost::vertex_index, graph);
  boost::breadth_first_search(
      graph, start,
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(
          boost::make_iterator_property_map(distances.begin(), index), boost::on_tree_edge()))));
  return distances;
}

absl::Status CheckLinks(const GraphParts& parts) {
  const auto vertices = int64_t{parts.devices} + parts.switches;
  const auto is_vertex = [&](VertexId vertex) {
    return vertex.valid() && vertex.index() < vertices;
  };
  for (size_t i = 0; i < parts.links.size(); ++i) {
    const Link& link = parts.links[i];
    const std::string where = absl::StrCat("link ", i);
    if (!is_vertex(link.from) || !is_vertex(link.to) || link.from == link.to) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": got ", ToString(link.from), " to ",
                                                     ToString(link.to), "; wanted two of ",
                                                     vertices, " vertices"));
    }
    if (link.speed.rate <= Bandwidth(0) || link.speed.latency < Duration(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": got ", link.speed.rate.bytes_per_second(), " bytes/s after ",
          link.speed.latency.picoseconds(), " ps; wanted a positive rate and no negative latency"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const GraphParts& parts) {
  if (parts.devices < 1 || parts.devices > kMaxDevices || parts.switches < 0 ||
      parts.switches > LinkGraph::kMaxLinks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", parts.devices, " devices and ", parts.switches, " switches; wanted 1 to ",
        kMaxDevices, ", and at most ", LinkGraph::kMaxLinks));
  }
  if (static_cast<int64_t>(parts.links.size()) > LinkGraph::kMaxLinks) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", parts.links.size(), " links; wanted at most ", LinkGraph::kMaxLinks));
  }
  return CheckLinks(parts);
}

}  // namespace
}  // namespace link_graph_cc

LinkGraph::DistanceCache::DistanceCache(int32_t devices) : rows_(static_cast<size_t>(devices)) {}

LinkGraph::DistanceCache::~DistanceCache() {
  for (const auto& row : rows_) delete row.load(std::memory_order_relaxed);
}

const LinkGraph::Distances* LinkGraph::DistanceCache::Get(DeviceId to) const {
  return rows_[static_cast<size_t>(to.index())].load(std::memory_order_acquire);
}

const LinkGraph::Distances* LinkGraph::DistanceCache::Keep(
    DeviceId to, std::unique_ptr<const Distances> distances) {
  const Distances* kept = nullptr;
  if (rows_[static_cast<size_t>(to.index())].compare_exchange_strong(kept, distances.get(),
                                                                     std::memory_order_acq_rel)) {
    return distances.release();
  }
  return kept;
}

absl::StatusOr<LinkGraph> LinkGraph::Create(const Topology& topology) {
  const int64_t count = topology.link_count();
  if (count > kMaxLinks) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a ", topology.kind().name, " topology of ", topology.devices(),
                     " devices has ", count, " links; wanted at most ", kMaxLinks,
                     "; try fewer devices, or a network model without shared links"));
  }
  GraphParts parts = {.devices = topology.devices()};
  parts.links.reserve(static_cast<size_t>(count));
  int32_t vertices = topology.devices();
  for (LinkNumber link = 0; link < count; ++link) {
    parts.links.push_back(topology.LinkAt(link));
    vertices = std::max(
        {vertices, parts.links.back().from.index() + 1, parts.links.back().to.index() + 1});
  }
  parts.switches = vertices - parts.devices;
  for (int32_t vertex = parts.devices; vertex < vertices; ++vertex) {
    if (topology.SwitchReduces(VertexId(vertex))) parts.reducing.push_back(VertexId(vertex));
  }
  return LinkGraph(std::move(parts));
}

absl::StatusOr<LinkGraph> LinkGraph::Create(GraphParts parts) {
  ORRERY_RETURN_IF_ERROR(link_graph_cc::CheckParts(parts));
  LinkGraph graph(std::move(parts));
  ORRERY_RETURN_IF_ERROR(graph.CheckConnected());
  return graph;
}

LinkGraph::LinkGraph(GraphParts parts)
    : devices_(parts.devices),
      vertex_count_(parts.devices + parts.switches),
      links_(link_graph_cc::Sorted(std::move(parts.links))),
      names_(std::move(parts.names)),
      reduces_(vertex_count_),
      distances_(std::make_unique<DistanceCache>(devices_)) {
  ORRERY_CHECK(names_.empty() || names_.size() == static_cast<size_t>(vertex_count_));
  for (const VertexId vertex : parts.reducing) reduces_[vertex] = 1;
  const link_graph_cc::Edges edges = link_graph_cc::EdgesOf(links_, false);
  graph_ = Graph(boost::edges_are_sorted, edges.begin(), edges.end(), vertex_count_, links_.size());
  const link_graph_cc::Edges back = link_graph_cc::EdgesOf(links_, true);
  reversed_ =
      Graph(boost::edges_are_sorted, back.begin(), back.end(), vertex_count_, links_.size());
}

// Every device to device 0 and back is enough: two others have the way over device 0.
absl::Status LinkGraph::CheckConnected() const {
  const std::vector<int32_t> to = link_graph_cc::DistancesFrom(reversed_, 0);
  const std::vector<int32_t> from = link_graph_cc::DistancesFrom(graph_, 0);
  for (int32_t device = 1; device < devices_; ++device) {
    const bool sends = to[static_cast<size_t>(device)] >= 0;
    if (sends && from[static_cast<size_t>(device)] >= 0) continue;
    const std::string first = VertexName(VertexId(sends ? 0 : device));
    const std::string second = VertexName(VertexId(sends ? device : 0));
    return absl::InvalidArgumentError(absl::StrCat("no way leads from ", first, " to ", second,
                                                   "; wanted links between all devices"));
  }
  return absl::OkStatus();
}

std::string LinkGraph::VertexName(VertexId vertex) const {
  if (!names_.empty()) return names_[static_cast<size_t>(vertex.index())];
  if (vertex.index() < devices_) return ToString(DeviceId(vertex.index()));
  return absl::StrCat("switch", vertex.index() - devices_);
}

std::string LinkGraph::LinkName(LinkId link) const {
  const Link& row = links_[link];
  return absl::StrCat(VertexName(row.from), " -> ", VertexName(row.to), " (", row.kind, ")");
}

// Breadth first, and widths in the order in which vertices were found: each has those that are
// closer before it. A search for each of many devices is what routes on large graphs cost.
std::unique_ptr<const LinkGraph::Distances> LinkGraph::Search(DeviceId to) const {
  auto found = std::make_unique<Distances>();
  std::vector<int32_t>& distances = found->links;
  std::vector<int64_t>& widths = found->width;
  distances.assign(static_cast<size_t>(vertex_count_), -1);
  widths.assign(static_cast<size_t>(vertex_count_), 0);
  const auto start = static_cast<size_t>(to.index());
  distances[start] = 0;
  widths[start] = std::numeric_limits<int64_t>::max();
  std::vector<int32_t> order = {to.index()};
  order.reserve(static_cast<size_t>(vertex_count_));
  for (size_t i = 0; i < order.size(); ++i) {
    const auto [first, last] = boost::out_edges(order[i], reversed_);
    for (auto edge = first; edge != last; ++edge) {
      const int32_t next = boost::target(*edge, reversed_);
      int32_t& distance = distances[static_cast<size_t>(next)];
      if (distance >= 0) continue;
      distance = distances[static_cast<size_t>(order[i])] + 1;
      order.push_back(next);
    }
  }
  for (const int32_t vertex : order) {
    const int32_t closer = distances[static_cast<size_t>(vertex)] - 1;
    int64_t& width = widths[static_cast<size_t>(vertex)];
    const auto [first, last] = boost::out_edges(vertex, graph_);
    for (auto edge = first; edge != last && closer >= 0; ++edge) {
      const auto next = static_cast<size_t>(boost::target(*edge, graph_));
      if (distances[next] != closer) continue;
      const LinkId link(boost::get(boost::edge_index, graph_, *edge));
      width = std::max(width, std::min(widths[next], links_[link].speed.rate.bytes_per_second()));
    }
  }
  return found;
}

// The links from a vertex to those that are one link closer.
std::vector<LinkId> LinkGraph::Closer(const std::vector<int32_t>& distances, int32_t vertex) const {
  std::vector<LinkId> links;
  const auto distance = [&](int32_t at) { return distances[static_cast<size_t>(at)]; };
  const auto [first, last] = boost::out_edges(vertex, graph_);
  for (auto edge = first; edge != last; ++edge) {
    const int32_t next = boost::target(*edge, graph_);
    if (distance(next) >= 0 && distance(next) == distance(vertex) - 1) {
      links.push_back(LinkId(boost::get(boost::edge_index, graph_, *edge)));
    }
  }
  return links;
}

const LinkGraph::Distances& LinkGraph::DistancesTo(DeviceId to) const {
  if (const Distances* known = distances_->Get(to)) return *known;
  return *distances_->Keep(to, Search(to));
}

void LinkGraph::AppendRoute(DeviceId from, DeviceId to, std::vector<LinkNumber>& route,
                            int32_t way) const {
  ORRERY_CHECK(from.valid() && to.valid() && from != to && from.index() < devices_ &&
               to.index() < devices_)
      << "from " << from << " to " << to << " of " << devices_;
  const Distances& distances = DistancesTo(to);
  const auto start = static_cast<size_t>(from.index());
  ORRERY_CHECK(distances.links[start] > 0) << "no route from " << from << " to " << to;
  const int64_t width = distances.width[start];
  const auto is_wide = [&](LinkId link) {
    return links_[link].speed.rate.bytes_per_second() >= width &&
           distances.width[static_cast<size_t>(links_[link].to.index())] >= width;
  };
  uint64_t hash = MixBits(
      ((static_cast<uint64_t>(from.index()) << 32) | static_cast<uint64_t>(to.index())) + kMixStep);
  for (VertexId at(from.index()); at != VertexId(to.index()); hash = MixBits(hash + kMixStep)) {
    std::vector<LinkId> choices = Closer(distances.links, at.index());
    std::erase_if(choices, [&](LinkId link) { return !is_wide(link); });
    const LinkId chosen =
        choices[(hash % choices.size() + static_cast<uint64_t>(way)) % choices.size()];
    route.push_back(chosen.index());
    at = links_[chosen].to;
  }
}

}  // namespace orrery::cluster
