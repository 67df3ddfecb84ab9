#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cost_models/collectives/alike_pairs.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/collectives/routes.h"
#include "cost_models/collectives/slower.h"
#include "cost_models/collectives/steps.h"
#include "support/check.h"

// What the rounds of a collective load, counted link by link.

namespace orrery::cost_models {
namespace round_counter_cc {
namespace {

using cluster::LinkNumber;
using cluster::Topology;

// Links by their position in the order of first use. Where the topology has not many more links
// than there are routes, their positions stand in an array: twice as fast as a hash table for a
// ring of 1,024 ranks, five times for a million, and a hundred times slower for each small group of
// many.
class LinkTable {
 public:
  struct Entry {
    LinkNumber link;
    cluster::PathInfo speed;
    int64_t parts = 0;     // in the rounds that are being counted
    int64_t volume = 0;    // in all rounds
    bool in_node = false;  // whether messages within a node use it
  };

  LinkTable(const Topology& topology, int64_t routes)
      : topology_(topology),
        dense_(topology.link_count() <= std::min(kMaxDense, kLinksARoute * routes)) {
    if (dense_) positions_.assign(static_cast<size_t>(topology.link_count()), -1);
  }

  int32_t Find(LinkNumber link) {
    int32_t& position = dense_ ? positions_[static_cast<size_t>(link)]
                               : sparse_.try_emplace(link, -1).first->second;
    if (position < 0) {
      position = static_cast<int32_t>(entries_.size());
      entries_.push_back({.link = link, .speed = topology_.LinkAt(link).speed});
    }
    return position;
  }
  Entry& operator[](int32_t position) { return entries_[static_cast<size_t>(position)]; }
  std::vector<Entry>& entries() { return entries_; }

 private:
  static constexpr int64_t kMaxDense = int64_t{1} << 26;
  static constexpr int64_t kLinksARoute = 8;

  const Topology& topology_;
  bool dense_;
  std::vector<int32_t> positions_;
  absl::flat_hash_map<LinkNumber, int32_t> sparse_;
  std::vector<Entry> entries_;
};

// At least as slow in both respects.
bool Covers(const RoundCandidate& a, const RoundCandidate& b) {
  return a.leaves_node == b.leaves_node && a.latency >= b.latency &&
         !Slower(b.parts, b.rate, a.parts, a.rate);
}

void AddCandidate(const RoundCandidate& candidate, std::vector<RoundCandidate>& candidates) {
  for (const RoundCandidate& other : candidates) {
    if (Covers(other, candidate)) return;
  }
  std::erase_if(candidates, [&](const RoundCandidate& c) { return Covers(candidate, c); });
  candidates.push_back(candidate);
}

// Whether both send as much from whom to whom, as an all-gather does after a reduce-scatter.
bool LoadTheSame(const Round& a, const Round& b) {
  return !a.pipelined && !b.pipelined && a.all_pairs == b.all_pairs &&
         std::ranges::equal(a.transfers, b.transfers, [](const Transfer& x, const Transfer& y) {
           return x.from == y.from && x.to == y.to && x.parts == y.parts && x.way == y.way;
         });
}

// Rounds that overlap each other, or one.
struct Block {
  std::span<const Round> rounds;
  int64_t times = 1;   // rounds that load links as these do: one, or of overlapping ones blocks
  size_t same_as = 0;  // the number of the first block that does

  bool overlaps() const { return rounds.size() > 1; }
};

bool LoadTheSame(const Block& a, const Block& b) {
  return std::ranges::equal(a.rounds, b.rounds, [&](const Round& x, const Round& y) {
    return (!a.overlaps() || x.repeat == y.repeat) && LoadTheSame(x, y);
  });
}

std::vector<Block> BlocksOf(std::span<const Round> rounds) {
  std::vector<Block> blocks;
  for (size_t first = 0; first < rounds.size();) {
    size_t last = first;
    while (rounds[last].overlaps_next) ++last;
    Block block = {.rounds = rounds.subspan(first, last + 1 - first), .same_as = blocks.size()};
    if (!block.overlaps()) block.times = rounds[first].repeat;
    for (size_t before = 0; before < blocks.size(); ++before) {
      if (blocks[before].same_as != before || !LoadTheSame(blocks[before], block)) continue;
      blocks[before].times += block.times;
      block.same_as = before;
      break;
    }
    blocks.push_back(block);
    first = last + 1;
  }
  return blocks;
}

// Of kinds in which each rank has a share of the data: as many parts as that is. Where the whole
// passes through chains of the nodes (trees), the share that a rank is the head of in its node.
double OwnParts(const Rounds& rounds, const Topology& topology) {
  using enum CollectiveKind;
  constexpr CollectiveKinds kWithShares = {kAllReduce, kReduceScatter, kAllGather,
                                           kAllToAll,  kScatter,       kGather};
  if (!kWithShares.contains(rounds.kind)) return 0;
  const int32_t a_node = DevicesANode(topology);
  const bool chains = rounds.kind == kAllReduce && rounds.rounds.front().pipelined;
  const int32_t ranks = chains && a_node > 1 ? std::min(rounds.ranks, a_node) : rounds.ranks;
  return static_cast<double>(rounds.parts_a_size) / ranks;
}

int64_t RouteCount(std::span<const DeviceGroup> groups, const Rounds& rounds) {
  int64_t routes = 0;
  for (const Round& round : rounds.rounds) {
    routes += round.all_pairs ? rounds.ranks : std::ssize(round.transfers);
  }
  return routes * std::ssize(groups);
}

// Counts rounds one by one, or several that overlap together.
class RoundCounter {
 public:
  // `all`: whether the volumes of all links are asked for.
  RoundCounter(const Topology& topology, std::span<const DeviceGroup> groups, const Rounds& rounds,
               bool all)
      : topology_(topology),
        groups_(groups),
        rounds_(rounds),
        all_(all),
        links_(topology, RouteCount(groups, rounds)),
        tells_nodes_apart_(!topology.collective_profile().ideal()) {}

  RoundsCost Count() {
    RoundsCost cost{.parts_a_size = rounds_.parts_a_size,
                    .own_parts = OwnParts(rounds_, topology_)};
    if (tells_nodes_apart_) {
      for (const DeviceGroup group : groups_) {
        cost.steps = std::max(cost.steps, CountSteps(topology_, group, rounds_));
      }
    }
    const std::vector<Block> blocks = BlocksOf(rounds_.rounds);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Block& block = blocks[b];
      if (block.same_as != b) {
        cost.rounds.push_back(cost.rounds[block.same_as]);
        if (block.overlaps()) continue;
        cost.rounds.back().repeat = cost.rounds.back().active = block.rounds[0].repeat;
        continue;
      }
      for (LinkTable::Entry& entry : links_.entries()) entry.parts = 0;
      cost.rounds.push_back(block.overlaps() ? Overlapping(block) : OneRound(block));
    }
    for (const LinkTable::Entry& entry : links_.entries()) {
      if (entry.volume == 0) continue;
      cost.volumes.push_back({.link = entry.link, .parts = entry.volume, .rate = entry.speed.rate});
    }
    return cost;
  }

 private:
  // How often what a transfer moves counts: at the same time, and in all rounds.
  struct Times {
    int64_t at_once = 1;
    int64_t in_all = 1;
  };

  bool Leaves(const LinkTable::Entry& entry) const { return tells_nodes_apart_ && !entry.in_node; }

  // Finds the routes of all transfers of a round and adds what they carry.
  void Add(const Round& round, Times times) {
    steps_.clear();
    ends_.clear();
    if (round.all_pairs && !all_ && AddAlikePairs(times)) return;
    for (const DeviceGroup group : groups_) {
      ForEachTransfer(round, rounds_.ranks, [&](const Transfer& transfer) {
        route_.clear();
        AppendTransferRoute(topology_, group, rounds_.ranks_a_node, transfer, route_);
        const int64_t in_all =
            round.pipelined ? ActiveRepetitions(transfer, round, rounds_.parts) : times.in_all;
        const bool in_node = tells_nodes_apart_ && !LeavesNode(topology_, group, rounds_, transfer);
        for (const LinkNumber link : route_) {
          const int32_t position = links_.Find(link);
          LinkTable::Entry& entry = links_[position];
          entry.parts += transfer.parts * times.at_once;
          entry.volume += transfer.parts * in_all;
          entry.in_node |= in_node;
          steps_.push_back(position);
        }
        ends_.push_back(steps_.size());
      });
    }
  }

  // The routes of ranks that stand for all, where they do; links of others are left out.
  bool AddAlikePairs(Times times) {
    const std::optional<AlikePairs> pairs = FindAlikePairs(topology_, groups_[0]);
    if (!pairs.has_value()) return false;
    std::vector<int32_t> positions;
    for (const PairLoad& load : pairs->loads) {
      positions.push_back(links_.Find(load.link));
      LinkTable::Entry& entry = links_[positions.back()];
      entry.parts += load.pairs * times.at_once;
      entry.volume += load.pairs * times.in_all;
      entry.in_node |= tells_nodes_apart_ && load.in_node;
    }
    for (const int32_t step : pairs->steps) steps_.push_back(positions[static_cast<size_t>(step)]);
    ends_ = pairs->ends;
    return true;
  }

  RoundCost OneRound(const Block& block) {
    const Round& round = block.rounds[0];
    Add(round, {.in_all = block.times});
    RoundCost cost{.repeat = round.repeat, .active = round.repeat};
    if (round.pipelined) {
      cost.active = 0;
      for (const Transfer& transfer : round.transfers) {
        cost.active = std::max(cost.active, ActiveRepetitions(transfer, round, rounds_.parts));
      }
    }
    size_t begin = 0;
    for (const size_t end : ends_) {
      AddCandidate(CandidateOf(std::span(steps_).subspan(begin, end - begin)), cost.candidates);
      begin = end;
    }
    return cost;
  }

  RoundCandidate CandidateOf(std::span<const int32_t> steps) {
    RoundCandidate candidate{.rate = Bandwidth(1)};
    for (const int32_t step : steps) {
      const LinkTable::Entry& entry = links_[step];
      candidate.latency += entry.speed.latency;
      if (Slower(entry.parts, entry.speed.rate, candidate.parts, candidate.rate)) {
        candidate.parts = entry.parts;
        candidate.rate = entry.speed.rate;
        candidate.leaves_node = Leaves(entry);
      }
    }
    return candidate;
  }

  RoundCost Overlapping(const Block& block) {
    std::vector<RoundCandidate> ways = {{.rate = Bandwidth(1)}};
    if (tells_nodes_apart_) ways.push_back({.rate = Bandwidth(1), .leaves_node = true});
    for (const Round& round : block.rounds) {
      Add(round, {.at_once = round.repeat, .in_all = round.repeat * block.times});
      Duration slowest;
      size_t begin = 0;
      for (const size_t end : ends_) {
        const auto steps = std::span(steps_).subspan(begin, end - begin);
        slowest = std::max(slowest, CandidateOf(steps).latency);
        begin = end;
      }
      for (RoundCandidate& way : ways) way.latency += slowest * round.repeat;
    }
    for (const LinkTable::Entry& entry : links_.entries()) {
      RoundCandidate& way = ways[Leaves(entry) ? 1 : 0];
      if (!Slower(entry.parts, entry.speed.rate, way.parts, way.rate)) continue;
      way.parts = entry.parts;
      way.rate = entry.speed.rate;
    }
    return {.repeat = 1, .candidates = std::move(ways)};
  }

  const Topology& topology_;
  std::span<const DeviceGroup> groups_;
  const Rounds& rounds_;
  const bool all_;
  LinkTable links_;
  const bool tells_nodes_apart_;
  std::vector<LinkNumber> route_;  // of one transfer
  std::vector<int32_t> steps_;     // positions of the links of all routes of a round
  std::vector<size_t> ends_;       // where each route ends in steps_
};

RoundsCost Count(const Topology& topology, std::span<const DeviceGroup> groups,
                 const Rounds& rounds, bool all) {
  for (const DeviceGroup group : groups) {
    ORRERY_CHECK(static_cast<int64_t>(group.size()) == rounds.ranks) << group.size() << " devices";
  }
  ORRERY_CHECK(rounds.rounds.empty() || !rounds.rounds.back().overlaps_next) << "no next round";
  return RoundCounter(topology, groups, rounds, all).Count();
}

}  // namespace
}  // namespace round_counter_cc

RoundsCost CostOf(const cluster::Topology& topology, std::span<const DeviceGroup> groups,
                  const Rounds& rounds) {
  return round_counter_cc::Count(topology, groups, rounds, /*all=*/true);
}

RoundsCost CostOfBusiest(const cluster::Topology& topology, DeviceGroup group,
                         const Rounds& rounds) {
  return round_counter_cc::Count(topology, std::span(&group, 1), rounds, /*all=*/false);
}

}  // namespace orrery::cost_models
