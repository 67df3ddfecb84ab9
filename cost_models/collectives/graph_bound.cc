#include "cost_models/collectives/graph_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "cluster/link_graph.h"
#include "cluster/spanning_trees.h"
#include "cost_models/collectives/slower.h"

namespace orrery::cost_models {
namespace graph_bound_cc {
namespace {

using cluster::DeviceId;
using cluster::Link;
using cluster::LinkNumber;
using cluster::Topology;

// A set of vertices with some ranks, and what leads out of it and into it.
struct Part {
  int64_t ranks = 0;
  bool root = false;  // holds rank 0
  Bandwidth out = {}, in = {};
};

// The part that a vertex is in, by a vertex of it.
class Partition {
 public:
  explicit Partition(int32_t vertices) : above_(static_cast<size_t>(vertices)) {
    std::iota(above_.begin(), above_.end(), size_t{0});
  }
  size_t Find(int32_t vertex) {
    auto at = static_cast<size_t>(vertex);
    while (above_[at] != at) at = above_[at] = above_[above_[at]];
    return at;
  }
  void Join(int32_t a, int32_t b) { above_[Find(a)] = Find(b); }

 private:
  std::vector<size_t> above_;
};

// Those with ranks.
std::vector<Part> PartsOf(Partition& partition, std::span<const DeviceId> group,
                          const Topology& topology) {
  std::vector<Part> parts(static_cast<size_t>(topology.shape().graph->vertex_count()));
  for (const DeviceId device : group) ++parts[partition.Find(device.index())].ranks;
  parts[partition.Find(group.front().index())].root = true;
  for (LinkNumber number = 0; number < topology.link_count(); ++number) {
    const Link link = topology.LinkAt(number);
    const size_t from = partition.Find(link.from.index()), to = partition.Find(link.to.index());
    if (from == to) continue;
    parts[from].out = cluster::Sum(parts[from].out, link.speed.rate);
    parts[to].in = cluster::Sum(parts[to].in, link.speed.rate);
  }
  std::erase_if(parts, [](const Part& part) { return part.ranks == 0; });
  return parts;
}

// What a part must send and receive, in ranks' shares of the size: n of them are the size.
struct Must {
  int64_t send = 0;
  int64_t receive = 0;
};

Must MustOf(CollectiveKind kind, const Part& part, int64_t n) {
  using enum CollectiveKind;
  const int64_t m = part.ranks;
  switch (kind) {
    case kAllReduce:
      return {n, n};
    case kAllGather:
      return {m, n - m};
    case kReduceScatter:
      return {n - m, m};
    case kAllToAll:
      return {m * (n - m), m * (n - m)};
    case kBroadcast:
      return part.root ? Must{.send = n} : Must{.receive = n};
    case kReduce:
      return part.root ? Must{.receive = n} : Must{.send = n};
    case kScatter:
      return part.root ? Must{.send = n - m} : Must{.receive = m};
    case kGather:
      return part.root ? Must{.receive = n - m} : Must{.send = m};
    case kSendReceive:  // a message to the next rank, if that is in another part
      return m == 1 ? Must{n, n} : Must{};
    case kBarrier:
      return {};
  }
  return {};
}

// What all parts must send to each other together, in sizes.
int64_t SentByAll(CollectiveKind kind, int64_t parts) {
  if (kind == CollectiveKind::kAllReduce) return 2 * (parts - 1);
  const bool once = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
  return once ? parts - 1 : 0;
}

Duration BoundOf(CollectiveKind kind, Bytes size, std::span<const Part> parts, bool in_network) {
  if (parts.size() < 2) return {};
  int64_t n = 0;
  for (const Part& part : parts) n += part.ranks;
  Duration bound;
  Bandwidth all;
  for (const Part& part : parts) {
    all = cluster::Sum(all, part.out);
    const auto [send, receive] = MustOf(kind, part, n);
    if (send > 0) bound = std::max(bound, TransferTime(size, send, n, part.out));
    if (receive > 0) bound = std::max(bound, TransferTime(size, receive, n, part.in));
  }
  const int64_t sent = in_network ? 0 : SentByAll(kind, std::ssize(parts));
  if (sent == 0) return bound;
  return std::max(bound, TransferTime(size, sent, 1, all));
}

}  // namespace
}  // namespace graph_bound_cc

Duration GraphBandwidthBound(CollectiveKind kind, Bytes size,
                             std::span<const cluster::DeviceId> group, bool in_network,
                             const cluster::Topology& topology) {
  const int32_t vertices = topology.shape().graph->vertex_count();
  graph_bound_cc::Partition alone(vertices);
  Duration bound = graph_bound_cc::BoundOf(
      kind, size, graph_bound_cc::PartsOf(alone, group, topology), in_network);
  std::vector<cluster::TreeLoad> loads =
      SpanningTreesOf({.group = {group.begin(), group.end()}}, topology).loads;
  const auto less = [](const cluster::TreeLoad& a, const cluster::TreeLoad& b) {
    return Slower(b.trees, b.rate, a.trees, a.rate);
  };
  // The least loaded first: what they join is one part. All others are between parts.
  std::ranges::stable_sort(loads, less);
  graph_bound_cc::Partition partition(vertices);
  std::vector<char> loaded(static_cast<size_t>(topology.link_count()), 0);
  for (const cluster::TreeLoad& load : loads) loaded[static_cast<size_t>(load.link)] = 1;
  const auto join = [&](cluster::LinkNumber number) {
    const cluster::Link link = topology.LinkAt(number);
    partition.Join(link.from.index(), link.to.index());
  };
  for (cluster::LinkNumber link = 0; link < topology.link_count(); ++link) {
    if (loaded[static_cast<size_t>(link)] == 0) join(link);
  }
  for (size_t i = 0; i < loads.size(); ++i) {
    if (i == 0 || less(loads[i - 1], loads[i])) {
      const std::vector<graph_bound_cc::Part> parts =
          graph_bound_cc::PartsOf(partition, group, topology);
      bound = std::max(bound, graph_bound_cc::BoundOf(kind, size, parts, in_network));
    }
    join(loads[i].link);
  }
  return bound;
}

}  // namespace orrery::cost_models
