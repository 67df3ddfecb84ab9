#include "cost_models/collectives/bound.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/graph_bound.h"

namespace orrery::cost_models {
namespace bound_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;

constexpr size_t kMostRanks = 2048;

// Rates of links, remembered: ways of several links between all pairs of ranks ask for few of them
// very often.
class LinkRates {
 public:
  explicit LinkRates(const Topology& topology) : topology_(topology) {}

  Bandwidth Of(cluster::LinkNumber link) {
    const auto [found, is_new] = rates_.try_emplace(link);
    if (is_new) found->second = topology_.LinkAt(link).speed.rate;
    return found->second;
  }

  Bandwidth OfAll(std::vector<cluster::LinkNumber> links) const {
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    Bandwidth rate;
    for (const cluster::LinkNumber link : links) {
      rate = cluster::Sum(rate, topology_.LinkAt(link).speed.rate);
    }
    return rate;
  }

 private:
  const Topology& topology_;
  absl::flat_hash_map<cluster::LinkNumber, Bandwidth> rates_;
};

// The most at which ranks `first` to `first` + `count` - 1 send to all others: every way leads over
// its first link, and over its narrowest, which several ranks may share.
Bandwidth RateOut(std::span<const DeviceId> group, size_t first, size_t count,
                  const Topology& topology, LinkRates& rates) {
  std::vector<cluster::LinkNumber> first_links, narrowest_links, route;
  const auto rate_of = [&](cluster::LinkNumber link) { return rates.Of(link); };
  for (size_t from = first; from < first + count; ++from) {
    for (size_t to = 0; to < group.size(); ++to) {
      if (to >= first && to < first + count) continue;
      route.clear();
      topology.AppendRoute(group[from], group[to], route);
      first_links.push_back(route.front());
      // A way of one link need not be asked about: where each pair has its own, these are many.
      narrowest_links.push_back(route.size() == 1 ? route.front()
                                                  : *std::ranges::min_element(route, {}, rate_of));
    }
  }
  return std::min(rates.OfAll(std::move(first_links)), rates.OfAll(std::move(narrowest_links)));
}

// For ranks, or nodes as if each were a rank. What all must send together over the rate of all;
// where ranks are not alike, what one must over the rate of the best.
Duration Bound(CollectiveKind kind, Bytes size, std::span<const DeviceId> group, size_t each,
               bool in_network, const Topology& topology) {
  const size_t count = group.size() / each;
  const CollectiveKindInfo& info = GetCollectiveKind(kind);
  Share share = info.bus_share(static_cast<int64_t>(count));
  const bool once = in_network && kind == CollectiveKind::kAllReduce;
  if (once) share = {1, 1};
  LinkRates rates(topology);
  Bandwidth sum, best;
  for (size_t i = 0; i < count; ++i) {
    const Bandwidth rate = RateOut(group, i * each, each, topology, rates);
    sum = cluster::Sum(sum, rate);
    best = std::max(best, rate);
  }
  // Each node brings all data of an all-to-all of its ranks; of others, its share.
  const auto members = static_cast<int64_t>(kind == CollectiveKind::kAllToAll ? each : 1);
  const auto n = static_cast<int64_t>(count);
  // A message to the next rank leaves the node only from its last.
  if (info.has_root) return TransferTime(size, share.numerator, share.denominator, best);
  return TransferTime(size, share.numerator * n * members, share.denominator, sum);
}

}  // namespace
}  // namespace bound_cc

std::optional<Duration> BandwidthBound(CollectiveKind kind, Bytes size,
                                       std::span<const cluster::DeviceId> group,
                                       int32_t ranks_a_node, InNetwork in_network,
                                       const cluster::Topology& topology) {
  if (group.size() > bound_cc::kMostRanks) return std::nullopt;
  if (topology.shape().graph != nullptr) {
    return GraphBandwidthBound(kind, size, group, in_network.in_nodes || in_network.between,
                               topology);
  }
  const auto a_node = static_cast<size_t>(ranks_a_node);
  Duration bound =
      bound_cc::Bound(kind, size, group, 1, in_network.in_nodes || in_network.between, topology);
  if (a_node > 1 && a_node < group.size()) {
    bound =
        std::max(bound, bound_cc::Bound(kind, size, group, a_node, in_network.between, topology));
  }
  return bound;
}

}  // namespace orrery::cost_models
