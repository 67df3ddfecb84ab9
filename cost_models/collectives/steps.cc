#include "cost_models/collectives/steps.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "cost_models/collectives/alike_ranks.h"

namespace orrery::cost_models {
namespace steps_cc {
namespace {

using cluster::DeviceId;

class StepCounter {
 public:
  StepCounter(const cluster::Topology& topology, std::span<const DeviceId> group,
              const Rounds& rounds)
      : topology_(topology), group_(group), rounds_(rounds) {}

  StepCount Count() {
    for (const Round& round : rounds_.rounds) {
      const StepCount steps = round.pipelined ? Chain(round) : Repeated(round);
      sum_.between_nodes += steps.between_nodes;
      sum_.in_node += steps.in_node;
      sum_.messages += steps.messages;
    }
    return sum_;
  }

 private:
  bool Leaves(const Transfer& transfer) {
    if (!LeavesNode(topology_, group_, rounds_, transfer)) return false;
    if (IsHub(transfer.from) || IsHub(transfer.to)) return true;
    const cluster::PathInfo path = topology_.Path(group_[static_cast<size_t>(transfer.from)],
                                                  group_[static_cast<size_t>(transfer.to)]);
    sum_.wire = std::max(sum_.wire, path.latency);
    return true;
  }

  // Of one repetition.
  struct Messages {
    int64_t all = 0;
    int64_t leaving = 0;  // the node
    int64_t busiest = 0;  // of one rank, in the node: sent, or received
  };

  Messages Listed(const Round& round) {
    Messages messages;
    messages_.assign(2 * static_cast<size_t>(rounds_.ranks), 0);
    for (const Transfer& transfer : round.transfers) {
      messages.all += transfer.messages;
      if (Leaves(transfer)) {
        messages.leaving += transfer.messages;
      } else if (!IsHub(transfer.from) && !IsHub(transfer.to)) {
        messages_[2 * static_cast<size_t>(transfer.from)] += transfer.messages;
        messages_[2 * static_cast<size_t>(transfer.to) + 1] += transfer.messages;
      }
    }
    messages.busiest = *std::ranges::max_element(messages_);
    return messages;
  }

  // By how many ranks each node has. Ranks that are alike send as far.
  Messages AllPairs() {
    const int64_t ranks = rounds_.ranks;
    Messages messages = {.all = ranks * (ranks - 1)};
    const int32_t a_node = DevicesANode(topology_);
    if (a_node == 1) {
      messages.busiest = ranks - 1;
      return messages;
    }
    std::vector<int32_t> nodes;
    for (const DeviceId device : group_) nodes.push_back(device.index() / a_node);
    std::ranges::sort(nodes);
    messages.leaving = messages.all;
    for (size_t first = 0, last = 0; first < nodes.size(); first = last) {
      while (last < nodes.size() && nodes[last] == nodes[first]) ++last;
      const auto count = static_cast<int64_t>(last - first);
      messages.leaving -= count * (count - 1);
      messages.busiest = std::max(messages.busiest, count - 1);
    }
    std::vector<AlikeBlocks> senders = FindAlikeBlocks(topology_, group_, 1);
    if (!RotationsKeepNodes(topology_, a_node)) {
      senders.assign(group_.size(), {});
      for (size_t rank = 0; rank < senders.size(); ++rank) senders[rank].first = rank;
    }
    for (const AlikeBlocks& sender : senders) {
      Transfer transfer = {.from = static_cast<int32_t>(sender.first)};
      for (transfer.to = 0; transfer.to < rounds_.ranks; ++transfer.to) {
        if (transfer.to != transfer.from) Leaves(transfer);
      }
    }
    return messages;
  }

  StepCount Repeated(const Round& round) {
    const auto [all, leaving, busiest] = round.all_pairs ? AllPairs() : Listed(round);
    const int64_t messages = busiest * round.repeat;
    const bool streams_across = round.overlaps_next && leaving == all;
    const int64_t repeat =
        streams_across ? static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(round.repeat)))
                       : round.repeat;
    if (repeat == 1) {
      return {.between_nodes = leaving > 0, .in_node = leaving == 0, .messages = messages};
    }
    // Rounded up; in this order no product exceeds its type.
    const int64_t between =
        leaving == all ? repeat
                       : static_cast<int64_t>(static_cast<__int128>(repeat) * leaving / all) +
                             (static_cast<__int128>(repeat) * leaving % all != 0);
    return {.between_nodes = between, .in_node = repeat - between, .messages = messages};
  }

  // Transfers in the order in which the first piece reaches them; each goes on from the longest
  // chain that ended at its sender before.
  StepCount Chain(const Round& round) {
    std::vector<std::pair<int64_t, const Transfer*>> order;
    const bool merged = !round.paced.empty();
    if (merged) {
      for (const Transfer& transfer : round.transfers) Leaves(transfer);
    }
    for (const Transfer& transfer : merged ? round.paced : round.transfers) {
      const int64_t shift = std::max<int64_t>(round.shift, 1);
      const int64_t first = (std::max<int64_t>(-transfer.first_part, 0) + shift - 1) / shift;
      order.push_back({first, &transfer});
    }
    std::ranges::stable_sort(order, {}, [](const auto& entry) { return entry.first; });
    std::vector<StepCount> ends(static_cast<size_t>(rounds_.ranks));
    std::vector<std::pair<int32_t, StepCount>> arrived;  // in the repetition that is looked at
    StepCount longest;
    const auto settle = [&] {
      for (const auto& [rank, steps] : arrived) {
        StepCount& end = ends[static_cast<size_t>(rank)];
        end = std::max(end, steps);
        longest = std::max(longest, end);
      }
      arrived.clear();
    };
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && order[i].first != order[i - 1].first) settle();
      const Transfer& transfer = *order[i].second;
      StepCount steps =
          IsHub(transfer.from) ? StepCount{} : ends[static_cast<size_t>(transfer.from)];
      (Leaves(transfer) ? steps.between_nodes : steps.in_node) += 1;
      if (!IsHub(transfer.to)) arrived.push_back({transfer.to, steps});
    }
    settle();
    return longest;
  }

  const cluster::Topology& topology_;
  std::span<const DeviceId> group_;
  const Rounds& rounds_;
  StepCount sum_;
  std::vector<int64_t> messages_;  // of a round, in the node: from each rank, and to it
};

}  // namespace
}  // namespace steps_cc

int32_t DevicesANode(const cluster::Topology& topology) {
  const cluster::TopologyShape& shape = topology.shape();
  if (shape.devices_per_node > 1 || shape.levels.size() < 2) return shape.devices_per_node;
  return shape.levels[0].size;
}

bool LeavesNode(const cluster::Topology& topology, std::span<const cluster::DeviceId> group,
                const Rounds& rounds, const Transfer& transfer) {
  const int32_t fabric = Hub(rounds.ranks / rounds.ranks_a_node);
  if (transfer.from == fabric || transfer.to == fabric) return true;
  const int32_t a_node = DevicesANode(topology);
  if (IsHub(transfer.from) || IsHub(transfer.to) || a_node == 1) return false;
  return group[static_cast<size_t>(transfer.from)].index() / a_node !=
         group[static_cast<size_t>(transfer.to)].index() / a_node;
}

StepCount CountSteps(const cluster::Topology& topology, std::span<const cluster::DeviceId> group,
                     const Rounds& rounds) {
  return steps_cc::StepCounter(topology, group, rounds).Count();
}

Duration LatencyOf(const StepCount& steps, const cluster::CollectiveProtocol& protocol) {
  if (protocol.start_up_has_steps) return protocol.start_up;
  return protocol.start_up +
         protocol.step_in_node * (protocol.sends ? steps.messages : steps.in_node) +
         (steps.wire + protocol.step_between_nodes) * steps.between_nodes;
}

}  // namespace orrery::cost_models
