#include "lowering/network/transfers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cost_models/collectives/routes.h"

namespace orrery::lowering {
namespace transfers_cc {
namespace {

using cost_models::Round;
using cost_models::Rounds;
using cost_models::Transfer;
using simulator::FlowId;
using simulator::TaskId;

// Ranks, and the switches that reduce, as the program knows them. So many fields: what a transfer
// is made of is kept from one to the next.
class TransferAdder {
 public:
  TransferAdder(cost_models::DeviceGroup group, const Rounds& rounds, Bytes size,
                LinkResources& links)
      : group_(group), rounds_(rounds), size_(size), links_(links), program_(links.program()) {
    members_.resize(static_cast<size_t>(rounds.ranks) +
                    static_cast<size_t>(rounds.ranks / rounds.ranks_a_node) + 1);
  }

  void Add() {
    bool overlaps = false;  // the round before and this one
    for (const Round& round : rounds_.rounds) {
      flows_.assign(round.transfers.size(), FlowId());
      overlaps = overlaps || round.overlaps_next;
      for (int64_t repetition = 0; repetition < round.repeat; ++repetition) {
        AddTransfers(round, repetition, overlaps);
        if (!overlaps) EndRounds();
      }
      if (!overlaps || round.overlaps_next) continue;
      EndRounds();
      overlaps = false;
    }
  }

 private:
  struct Member {
    simulator::RankClassId rank;                    // invalid before its first task
    std::vector<simulator::StreamId> streams = {};  // as many as it sends at once
    size_t busy = 0;                                // streams taken in this round
    std::vector<TaskId> before = {};                // what it waits for before it sends again
    std::vector<TaskId> now = {};                   // what it sends and receives in this round
  };

  struct Added {
    TaskId task;
    size_t from, to;  // members
    int64_t part;
  };

  size_t IndexOf(int32_t rank) const {
    return static_cast<size_t>(cost_models::IsHub(rank) ? rounds_.ranks + cost_models::Hub(rank)
                                                        : rank);
  }

  // Of rounds that overlap, each transfer goes on at its own pace: it waits for those that brought
  // what it sends, where these rounds did, and else for all that its rank did.
  void AddTransfers(const Round& round, int64_t repetition, bool overlaps) {
    added_.clear();
    for (size_t i = 0; i < round.transfers.size(); ++i) {
      const Transfer& transfer = round.transfers[i];
      int64_t part = cost_models::FirstPart(transfer, round, repetition, rounds_.parts);
      if (part < 0) continue;
      // Every n-th of all parts are the same ones, whichever of them is the first.
      if (transfer.parts * transfer.stride == rounds_.parts) part %= transfer.stride;
      const size_t from = IndexOf(transfer.from), to = IndexOf(transfer.to);
      before_ = members_[from].before;
      before_.insert(before_.end(), members_[to].before.begin(), members_[to].before.end());
      if (overlaps) {
        const auto brought = brought_.find({from, part});
        const std::vector<TaskId>& ready =
            brought != brought_.end() ? brought->second : members_[from].now;
        before_.insert(before_.end(), ready.begin(), ready.end());
      }
      const TaskId task =
          program_.AddTask(FreeStream(members_[from], from),
                           {.flow = FlowOf(transfer, i), .label = Label()}, before_);
      added_.push_back({.task = task, .from = from, .to = to, .part = part});
    }
    for (const Added& each : added_) {
      for (const size_t member : {each.from, each.to}) {
        if (members_[member].now.empty()) touched_.push_back(member);
        members_[member].now.push_back(each.task);
      }
    }
    if (!overlaps) return;
    for (const Added& each : added_) brought_.erase({each.to, each.part});
    for (const Added& each : added_) brought_[{each.to, each.part}].push_back(each.task);
  }

  void EndRounds() {
    for (const size_t member : touched_) EndRound(members_[member], member);
    touched_.clear();
    brought_.clear();
  }

  // What it waits for from here on. Many tasks are joined into one, so that n senders do not each
  // wait for n tasks.
  void EndRound(Member& member, size_t index) {
    if (member.now.size() > kMostWaits) {
      const TaskId join =
          program_.AddTask(FreeStream(member, index), {.label = Label()}, member.now);
      member.now.assign(1, join);
    }
    member.before.swap(member.now);
    member.now.clear();
    member.busy = 0;
  }

  simulator::StreamId FreeStream(Member& member, size_t index) {
    if (!member.rank.valid()) {
      member.rank = program_.AddRank(
          {.name = absl::StrCat("rank", index), .members = {program_.rank_count()}});
    }
    if (member.busy == member.streams.size()) {
      member.streams.push_back(program_.AddStream(member.rank, simulator::StreamKind::kSendNext));
    }
    return member.streams[member.busy++];
  }

  simulator::LabelId Label() {
    if (!label_.valid()) {
      label_ = program_.AddLabel({.name = "transfer", .kind = simulator::TaskKind::kSend});
    }
    return label_;
  }

  FlowId FlowOf(const Transfer& transfer, size_t index) {
    FlowId& flow = flows_[index];
    if (flow.valid()) return flow;
    route_.clear();
    cost_models::AppendTransferRoute(links_.topology(), group_, rounds_.ranks_a_node, transfer,
                                     route_);
    using Wide = unsigned __int128;
    const Wide moved = static_cast<Wide>(size_.count()) * static_cast<Wide>(transfer.parts);
    const auto divisor = static_cast<Wide>(rounds_.parts_a_size);
    const Bytes bytes(static_cast<int64_t>((moved + divisor - 1) / divisor));
    flow = links_.AddMessage(bytes, route_);
    return flow;
  }

  static constexpr size_t kMostWaits = 4;

  cost_models::DeviceGroup group_;
  const Rounds& rounds_;
  Bytes size_;
  LinkResources& links_;
  simulator::Program& program_;
  simulator::LabelId label_;
  std::vector<Member> members_;  // ranks, nodes' switches, the fabric
  std::vector<FlowId> flows_;    // of the transfers of a round, once they are needed
  std::vector<TaskId> before_;   // what a transfer waits for
  std::vector<size_t> touched_;  // members with tasks in this round, or in those that overlap
  std::vector<Added> added_;     // in this repetition
  // Of rounds that overlap, who brought a part to a member last.
  absl::flat_hash_map<std::pair<size_t, int64_t>, std::vector<TaskId>> brought_;
  std::vector<cluster::LinkNumber> route_;
};

}  // namespace
}  // namespace transfers_cc

simulator::ResourceId LinkResources::Find(cluster::LinkNumber link) {
  simulator::ResourceId& resource = resources_[link];
  if (resource.valid()) return resource;
  const cluster::Link row = topology_.LinkAt(link);
  resource = program_.AddResource({.name = topology_.LinkName(link),
                                   .kind = std::string(row.kind),
                                   .capacity = row.speed.rate,
                                   .latency = row.speed.latency});
  return resource;
}

simulator::FlowId LinkResources::AddMessage(Bytes size,
                                            std::span<const cluster::LinkNumber> route) {
  loads_.clear();
  cluster::PathInfo path{.rate = Bandwidth(std::numeric_limits<int64_t>::max())};
  for (const cluster::LinkNumber link : route) {
    path = cluster::Join(path, topology_.LinkAt(link).speed);
    loads_.push_back({.resource = Find(link)});
  }
  return program_.AddFlow(
      {.size = size, .rate = path.rate, .latency = path.latency, .loads = loads_});
}

absl::Status AddTransfers(cost_models::DeviceGroup group, const cost_models::Rounds& rounds,
                          Bytes size, LinkResources& links) {
  const int64_t transfers = cost_models::TransferCount(rounds);
  if (transfers > kMaxTransfers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("got ", transfers, " transfers to simulate one by one; wanted at most ",
                     kMaxTransfers, "; try the collective as one flow, or a smaller group"));
  }
  transfers_cc::TransferAdder(group, rounds, size, links).Add();
  return absl::OkStatus();
}

}  // namespace orrery::lowering
