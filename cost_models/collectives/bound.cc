#include "cost_models/collectives/bound.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cost_models/collectives/alike_ranks.h"
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
  LinkRates(const Topology& topology, size_t ranks) : topology_(topology) {
    if (topology.link_count() <= kMostLinksARank * static_cast<int64_t>(ranks)) {
      dense_.resize(static_cast<size_t>(topology.link_count()));
    }
  }

  Bandwidth Of(cluster::LinkNumber link) {
    Bandwidth& rate = dense_.empty() ? sparse_[link] : dense_[static_cast<size_t>(link)];
    if (rate == Bandwidth(0)) rate = topology_.LinkAt(link).speed.rate;
    return rate;
  }

  Bandwidth OfAll(std::vector<cluster::LinkNumber>& links) const {
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    Bandwidth rate;
    for (const cluster::LinkNumber link : links) {
      rate = cluster::Sum(rate, topology_.LinkAt(link).speed.rate);
    }
    return rate;
  }

 private:
  // More, and most are asked for never.
  static constexpr int64_t kMostLinksARank = 64;

  const Topology& topology_;
  absl::flat_hash_map<cluster::LinkNumber, Bandwidth> sparse_;
  std::vector<Bandwidth> dense_;
};

// The ranks of a group by sets of devices.
class RanksInSets {
 public:
  explicit RanksInSets(std::span<const DeviceId> group) : group_(group) {}

  // A rank of that set that is none of `count` from `first` on; nothing if there is none.
  std::optional<size_t> Find(const cluster::DeviceSet& set, size_t first, size_t count) {
    const std::vector<Entry>& order = OrderFor(set);
    const auto least = std::pair(set.rest, set.first);
    for (auto at = std::ranges::lower_bound(order, least, {}, &Entry::key);
         at != order.end() && at->key < std::pair(set.rest, set.last); ++at) {
      if (at->rank < first || at->rank >= first + count) return at->rank;
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    std::pair<int32_t, int32_t> key;  // rest and digit of its device
    size_t rank;
  };
  struct Order {
    int32_t stride, size;
    std::vector<Entry> entries;
  };

  // Sets of one topology have few strides.
  const std::vector<Entry>& OrderFor(const cluster::DeviceSet& set) {
    for (const Order& order : orders_) {
      if (order.stride == set.stride && order.size == set.size) return order.entries;
    }
    std::vector<Entry> entries;
    for (size_t rank = 0; rank < group_.size(); ++rank) {
      const int32_t device = group_[rank].index();
      entries.push_back({{device % set.stride, device / set.stride % set.size}, rank});
    }
    std::ranges::sort(entries, {}, &Entry::key);
    orders_.push_back({set.stride, set.size, std::move(entries)});
    return orders_.back().entries;
  }

  std::span<const DeviceId> group_;
  std::vector<Order> orders_;
};

// The most at which blocks of ranks send to all others: every way leads over its first link, and
// over its narrowest, which several ranks may share.
class RatesOut {
 public:
  RatesOut(std::span<const DeviceId> group, const Topology& topology)
      : group_(group), topology_(topology), rates_(topology, group.size()), ranks_(group) {}

  // Of ranks `first` to `first` + `count` - 1.
  Bandwidth Of(size_t first, size_t count) {
    first_links_.clear();
    narrowest_links_.clear();
    for (size_t from = first; from < first + count; ++from) {
      sets_.clear();
      if (group_.size() > kFew && topology_.devices() <= kMostDevicesARank * std::ssize(group_)) {
        topology_.AppendDestinations(group_[from], sets_);
      }
      if (sets_.empty() || kFew * sets_.size() >= group_.size()) {
        for (size_t to = 0; to < group_.size(); ++to) {
          if (to < first || to >= first + count) Add(from, to);
        }
        continue;
      }
      for (const cluster::DeviceSet& set : sets_) {
        if (const std::optional<size_t> to = ranks_.Find(set, first, count)) Add(from, *to);
      }
    }
    return std::min(rates_.OfAll(first_links_), rates_.OfAll(narrowest_links_));
  }

 private:
  // Where there are more, each set of devices is likely to have no rank.
  static constexpr int64_t kMostDevicesARank = 16;
  static constexpr size_t kFew = 4;  // to find a rank of a set takes as long as that many routes

  void Add(size_t from, size_t to) {
    route_.clear();
    topology_.AppendRoute(group_[from], group_[to], route_);
    first_links_.push_back(route_.front());
    // A way of one link need not be asked about: where each pair has its own, these are many.
    const auto rate_of = [&](cluster::LinkNumber link) { return rates_.Of(link); };
    narrowest_links_.push_back(route_.size() == 1 ? route_.front()
                                                  : *std::ranges::min_element(route_, {}, rate_of));
  }

  std::span<const DeviceId> group_;
  const Topology& topology_;
  LinkRates rates_;
  RanksInSets ranks_;
  std::vector<cluster::DeviceSet> sets_;
  std::vector<cluster::LinkNumber> first_links_, narrowest_links_, route_;
};

// For ranks, or nodes as if each were a rank. What all must send together over the rate of all;
// where ranks are not alike, what one must over the rate of the best.
Duration Bound(CollectiveKind kind, Bytes size, std::span<const DeviceId> group, size_t each,
               bool in_network, const Topology& topology) {
  const size_t count = group.size() / each;
  const CollectiveKindInfo& info = GetCollectiveKind(kind);
  Share share = info.bus_share(static_cast<int64_t>(count));
  const bool once = in_network && kind == CollectiveKind::kAllReduce;
  if (once) share = {1, 1};
  RatesOut rates(group, topology);
  Bandwidth sum, best;
  for (const AlikeBlocks& alike : FindAlikeBlocks(topology, group, each)) {
    const Bandwidth rate = rates.Of(alike.first * each, each);
    sum = cluster::Sum(sum, cluster::Aggregate(rate, alike.count));
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
