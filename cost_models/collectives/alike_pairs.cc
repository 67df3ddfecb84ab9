#include "cost_models/collectives/alike_pairs.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cost_models/collectives/alike_ranks.h"
#include "cost_models/collectives/rounds.h"
#include "cost_models/collectives/steps.h"

namespace orrery::cost_models {
namespace alike_pairs_cc {
namespace {

using cluster::DeviceId;
using cluster::LinkNumber;
using cluster::Topology;

// More, and all pairs are not much slower.
constexpr size_t kMostUnlike = 16;
constexpr size_t kMostLinksARank = 64;

// A link where a route takes it.
struct Use {
  size_t from = 0, to = 0;  // ranks
  size_t hop = 0;
  size_t hops = 0;  // of that route
};

// Links of the routes from some ranks, and all that rotations move them onto.
class Orbits {
 public:
  Orbits(const Topology& topology, std::span<const DeviceId> group,
         std::vector<RankRotation> rotations)
      : topology_(topology), group_(group), rotations_(std::move(rotations)) {}

  // The routes from `from` to all others.
  void AddRoutes(size_t from, AlikePairs& pairs) {
    const int32_t a_node = DevicesANode(topology_);
    const auto node = [&](size_t rank) { return group_[rank].index() / a_node; };
    ForEachOther(static_cast<int32_t>(from), static_cast<int32_t>(group_.size()), [&](int32_t to) {
      Use use = {.from = from, .to = static_cast<size_t>(to)};
      const bool in_node = a_node == 1 || node(use.from) == node(use.to);
      Walk(use);
      use.hops = route_.size();
      for (use.hop = 0; use.hop < use.hops; ++use.hop) {
        const size_t position = PositionOf(use);
        if (position == pairs.loads.size()) pairs.loads.push_back({.link = route_[use.hop]});
        ++pairs.loads[position].pairs;
        pairs.loads[position].in_node |= in_node;
        // The shorter a route, the sooner it is found again.
        if (use.hops < uses_[position].hops) uses_[position] = use;
        pairs.steps.push_back(static_cast<int32_t>(position));
      }
      pairs.ends.push_back(pairs.steps.size());
    });
  }

  // Whether no link of these routes has a second pair. So has no other, then: it is a rotated one,
  // and leads from its sender to its receiver.
  bool AreAllApart(const AlikePairs& pairs) const {
    return pairs.steps.size() == pairs.ends.size();
  }

  // From those of the routes added to those of all pairs. False where there are too many links.
  bool Spread(AlikePairs& pairs) {
    int64_t combinations = 1;
    for (const RankRotation& rotation : rotations_) combinations *= rotation.order;
    const size_t known = pairs.loads.size();
    std::vector<char> met(known, 0);
    for (size_t first = 0; first < known; ++first) {
      if (met[first] != 0) continue;
      orbit_.assign(1, first);
      met[first] = 1;
      for (size_t i = 0; i < orbit_.size(); ++i) {
        if (!Rotate(orbit_[i], met)) return false;
      }
      PairLoad sum;
      for (const size_t position : orbit_) {
        if (position >= known) continue;
        sum.pairs += pairs.loads[position].pairs;
        sum.in_node |= pairs.loads[position].in_node;
      }
      // So many combinations leave the link where it is.
      sum.pairs *= combinations / std::ssize(orbit_);
      for (const size_t position : orbit_) {
        if (position >= known) continue;
        pairs.loads[position].pairs = sum.pairs;
        pairs.loads[position].in_node = sum.in_node;
      }
    }
    return true;
  }

 private:
  void Walk(const Use& use) {
    route_.clear();
    topology_.AppendRoute(group_[use.from], group_[use.to], route_);
  }

  // Of the link of `route_` that `use` tells.
  size_t PositionOf(const Use& use) {
    const auto [found, is_new] = positions_.try_emplace(route_[use.hop], uses_.size());
    if (is_new) uses_.push_back(use);
    return found->second;
  }

  // Adds to the orbit where each rotation moves a link of it.
  bool Rotate(size_t position, std::vector<char>& met) {
    for (const RankRotation& rotation : rotations_) {
      Use use = uses_[position];
      use.from = rotation.after[use.from];
      use.to = rotation.after[use.to];
      Walk(use);
      const size_t other = PositionOf(use);
      if (other == met.size()) met.push_back(0);
      if (std::exchange(met[other], 1) == 0) orbit_.push_back(other);
    }
    return uses_.size() <= kMostLinksARank * group_.size();
  }

  const Topology& topology_;
  std::span<const DeviceId> group_;
  std::vector<RankRotation> rotations_;
  absl::flat_hash_map<LinkNumber, size_t> positions_;
  std::vector<Use> uses_;  // of each link one
  std::vector<LinkNumber> route_;
  std::vector<size_t> orbit_;
};

}  // namespace
}  // namespace alike_pairs_cc

std::optional<AlikePairs> FindAlikePairs(const cluster::Topology& topology,
                                         std::span<const cluster::DeviceId> group) {
  if (!RotationsKeepNodes(topology, DevicesANode(topology))) return std::nullopt;
  std::vector<RankRotation> rotations = RankRotations(topology, group);
  int64_t combinations = 1;
  for (const RankRotation& rotation : rotations) combinations *= rotation.order;
  const std::vector<AlikeBlocks> ranks = FindAlikeBlocks(topology, group, 1);
  if (ranks.size() > alike_pairs_cc::kMostUnlike) return std::nullopt;
  for (const AlikeBlocks& alike : ranks) {
    if (alike.count != combinations) return std::nullopt;
  }
  alike_pairs_cc::Orbits orbits(topology, group, std::move(rotations));
  AlikePairs pairs;
  for (const AlikeBlocks& alike : ranks) orbits.AddRoutes(alike.first, pairs);
  if (!orbits.AreAllApart(pairs) && !orbits.Spread(pairs)) return std::nullopt;
  return pairs;
}

}  // namespace orrery::cost_models
