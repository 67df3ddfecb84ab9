#include "cost_models/collectives/choice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cost_models/collectives/group_layout.h"
#include "cost_models/collectives/routes.h"
#include "cost_models/collectives/steps.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::cost_models {
namespace choice_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;

// Whether ranks `first`, `first` + `stride`, … meet in one switch that reduces.
bool SwitchReduces(const Topology& topology, std::span<const DeviceId> group, size_t first,
                   size_t count, size_t stride) {
  const auto middle = [&](size_t i) {
    return MiddleSwitch(topology, group[first + i * stride],
                        group[first + (i + 1) % count * stride]);
  };
  const cluster::VertexId meeting = middle(0);
  if (!meeting.valid() || !topology.SwitchReduces(meeting)) return false;
  for (size_t i = 1; i < count; ++i) {
    if (middle(i) != meeting) return false;
  }
  return true;
}

// Whether that holds for the ranks of each node.
bool NodesReduce(const Topology& topology, std::span<const DeviceId> group, size_t a_node) {
  for (size_t first = 0; first < group.size(); first += a_node) {
    if (!SwitchReduces(topology, group, first, a_node, 1)) return false;
  }
  return true;
}

// Whether that holds for those of one position in all nodes.
bool FabricReduces(const Topology& topology, std::span<const DeviceId> group, size_t a_node) {
  for (size_t local = 0; local < a_node; ++local) {
    if (!SwitchReduces(topology, group, local, group.size() / a_node, a_node)) return false;
  }
  return true;
}

// How many ranks of the group are in each node, when they lie node by node and equally many in
// each; else 1.
int32_t RanksANode(std::span<const DeviceId> group, const Topology& topology) {
  const int32_t devices_per_node = DevicesANode(topology);
  const auto node = [&](size_t rank) { return group[rank].index() / devices_per_node; };
  size_t first = 1;
  while (first < group.size() && node(first) == node(0)) ++first;
  if (group.size() % first != 0) return 1;
  for (size_t rank = 1; rank < group.size(); ++rank) {
    const bool same = node(rank) == node(rank - 1);
    if (same != (rank % first != 0)) return 1;
  }
  return static_cast<int32_t>(first);
}

// Trees for that kind; of kinds that do without, none.
void LayTrees(const CollectiveRequest& request, const Topology& topology, CollectiveCall& call) {
  using enum CollectiveKind;
  if (topology.shape().graph == nullptr) return;
  cluster::TreeQuery query{.group = {request.group.begin(), request.group.end()}};
  const bool each = request.kind == kAllGather || request.kind == kReduceScatter;
  const bool rooted = request.kind == kBroadcast || request.kind == kReduce;
  if (!each && !rooted && request.kind != kAllReduce && request.kind != kBarrier) return;
  if (each) query.roots = cluster::TreeRoots::kEach;
  if (rooted) query.roots = cluster::TreeRoots::kFirst;
  if (each || rooted) {
    const bool down = request.kind == kAllGather || request.kind == kBroadcast;
    query.use = down ? cluster::TreeUse::kDown : cluster::TreeUse::kUp;
  }
  if (request.kind != kBarrier) call.laid.packed = &SpanningTreesOf(query, topology);
  query.shortest = true;
  if (!each) call.laid.shortest = &SpanningTreesOf(query, topology);
}

absl::Status NotFor(const CollectiveAlgorithm& algorithm, const CollectiveCall& call) {
  const absl::string_view kind = GetCollectiveKind(call.kind).name;
  if (!algorithm.kinds.contains(call.kind)) {
    std::string others;
    for (const CollectiveAlgorithm* other : AllCollectiveAlgorithms()) {
      if (other->Supports(call)) absl::StrAppend(&others, others.empty() ? "" : ", ", other->name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("algorithm '", algorithm.name, "' is not for ", kind, "; try ", others));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("algorithm '", algorithm.name, "' cannot serve this group of ", call.ranks, ", ",
                   call.ranks_a_node, " a node; wanted ", algorithm.wanted));
}

// Whether the protocols for reductions in switches are those for `rounds`.
bool UsesSwitches(const cluster::CollectiveProfile& profile, const Rounds& rounds) {
  const auto for_switches = [](const auto& protocol) { return protocol.in_network; };
  if (std::ranges::none_of(profile.protocols, for_switches)) return false;
  return std::ranges::any_of(rounds.rounds, [](const Round& round) {
    if (round.transfers.empty()) return false;
    const Transfer& first = round.transfers.front();
    return IsHub(first.from) || IsHub(first.to);
  });
}

// Whether the protocols for sends and receives are those for `kind`.
bool UsesSends(const cluster::CollectiveProfile& profile, CollectiveKind kind) {
  using enum CollectiveKind;
  constexpr CollectiveKinds kOfSends = {kAllToAll, kScatter, kGather, kSendReceive};
  return kOfSends.contains(kind) &&
         std::ranges::any_of(profile.protocols,
                             [](const auto& protocol) { return protocol.sends; });
}

void Price(const CollectiveAlgorithm& algorithm, const Topology& topology, bool only_busiest,
           KeptCosts& costs, ChosenCollective& best) {
  const CollectiveCall& call = best.call;
  Rounds rounds = algorithm.RoundsToPrice(call);
  RoundsCost busiest;
  if (only_busiest) busiest = CostOfBusiest(topology, best.group, rounds);
  const RoundsCost& cost =
      only_busiest ? busiest : costs.Of(algorithm, rounds, best.group, topology);
  bool better = false;
  const auto consider = [&](const cluster::CollectiveProtocol& protocol) {
    const Duration time = TimeOf(cost, call.size, protocol);
    if (best.algorithm != nullptr && best.time <= time) return;
    best.algorithm = &algorithm;
    best.protocol = protocol;
    best.time = time;
    better = true;
  };
  const cluster::CollectiveProfile& profile = topology.collective_profile();
  if (profile.ideal()) consider(IdealProtocol());
  const bool in_network = UsesSwitches(profile, rounds), sends = UsesSends(profile, call.kind);
  for (const cluster::CollectiveProtocol& protocol : profile.protocols) {
    if (protocol.in_network == in_network && protocol.sends == sends) consider(protocol);
  }
  if (!better) return;
  best.rounds = std::move(rounds);
  best.cost = cost;
}

}  // namespace
}  // namespace choice_cc

absl::StatusOr<CollectiveChoice> CollectiveChoice::Parse(absl::string_view text) {
  CollectiveChoice choice;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    const bool one_kind = item.find('=') != absl::string_view::npos;
    const absl::string_view name = one_kind ? sides.second : sides.first;
    const CollectiveAlgorithm* algorithm = nullptr;
    if (name != "auto") {
      ORRERY_ASSIGN_OR_RETURN(algorithm, FindCollectiveAlgorithm(name));
    }
    if (one_kind) {
      ORRERY_ASSIGN_OR_RETURN(const CollectiveKind kind, FindCollectiveKind(sides.first));
      if (algorithm != nullptr && !algorithm->kinds.contains(kind)) {
        return choice_cc::NotFor(*algorithm, {.kind = kind});
      }
      choice.algorithms_[static_cast<size_t>(kind)] = algorithm;
      continue;
    }
    for (const CollectiveKindInfo& info : AllCollectiveKinds()) {
      const bool serves = algorithm == nullptr || algorithm->kinds.contains(info.kind);
      if (serves) choice.algorithms_[static_cast<size_t>(info.kind)] = algorithm;
    }
  }
  return choice;
}

std::string CollectiveChoice::ToString() const {
  std::string text;
  for (const CollectiveKindInfo& info : AllCollectiveKinds()) {
    if (of(info.kind) == nullptr) continue;
    absl::StrAppend(&text, text.empty() ? "" : ",", info.name, "=", of(info.kind)->name);
  }
  return text.empty() ? "auto" : text;
}

absl::Status CheckGroup(std::span<const cluster::DeviceId> group,
                        const cluster::Topology& topology) {
  std::vector<cluster::DeviceId> sorted(group.begin(), group.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", twice->index(), " stands twice in the group; wanted each once"));
  }
  for (const cluster::DeviceId device : {sorted.empty() ? cluster::DeviceId(0) : sorted.front(),
                                         sorted.empty() ? cluster::DeviceId(0) : sorted.back()}) {
    if (device.index() >= 0 && device.index() < topology.devices()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "device ", device.index(), " is not of the cluster; wanted 0 to ", topology.devices() - 1));
  }
  if (group.size() >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the group has ", group.size(), " device",
                                                 group.size() == 1 ? "" : "s",
                                                 "; wanted at least two, as in 0-7 or 0,8,16"));
}

// Neighbours in the group should be neighbours in the cluster.
std::vector<cluster::DeviceId> RanksOf(CollectiveKind kind,
                                       std::span<const cluster::DeviceId> group,
                                       const cluster::Topology& topology) {
  std::vector<cluster::DeviceId> ranks(group.begin(), group.end());
  if (GetCollectiveKind(kind).has_root) return ranks;
  std::sort(ranks.begin(), ranks.end());
  if (topology.shape().graph == nullptr) return ranks;
  return cluster::RingOrderOf(ranks, topology);
}

CollectiveCall MakeCall(const CollectiveRequest& request, const cluster::Topology& topology) {
  const int32_t a_node = choice_cc::RanksANode(request.group, topology);
  const auto k = static_cast<size_t>(a_node);
  CollectiveCall call = {
      .kind = request.kind,
      .size = request.size,
      .ranks = static_cast<int32_t>(request.group.size()),
      .ranks_a_node = a_node,
      .node_reduces = k > 1 && choice_cc::NodesReduce(topology, request.group, k),
      .fabric_reduces =
          k < request.group.size() && choice_cc::FabricReduces(topology, request.group, k),
      .linked = AllLinked(topology, request.group, a_node),
      .grid = GridOf(topology, request.group),
      .laid = {.on_graph = topology.shape().graph != nullptr},
      .by_library = !topology.collective_profile().ideal(),
      .hop = SlowestHop(request.group, topology)};
  choice_cc::LayTrees(request, topology, call);
  return call;
}

absl::StatusOr<ChosenCollective> ChooseCollective(const CollectiveRequest& request,
                                                  const cluster::Topology& topology,
                                                  const CollectiveChoice& choice) {
  ORRERY_RETURN_IF_ERROR(CheckGroup(request.group, topology));
  ChosenCollective best{.group = RanksOf(request.kind, request.group, topology)};
  CollectiveRequest ordered = request;
  ordered.group = best.group;
  if (request.kind == CollectiveKind::kBarrier) ordered.size = Bytes(0);
  best.call = MakeCall(ordered, topology);
  const CollectiveCall& call = best.call;
  KeptCosts own;
  KeptCosts& costs = request.costs == nullptr ? own : *request.costs;
  if (const CollectiveAlgorithm* algorithm = choice.of(request.kind); algorithm != nullptr) {
    if (!algorithm->Supports(call)) return choice_cc::NotFor(*algorithm, call);
    choice_cc::Price(*algorithm, topology, request.only_busiest, costs, best);
    return best;
  }
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    if (!algorithm->IsChosen(call)) continue;
    choice_cc::Price(*algorithm, topology, request.only_busiest, costs, best);
  }
  if (best.algorithm != nullptr) return best;
  return absl::InvalidArgumentError(
      absl::StrCat("no algorithm for ", GetCollectiveKind(call.kind).name, " of ", call.ranks,
                   " ranks; wanted at most ", kMostRanksOfAllToAll));
}

Duration FastestTime(const CollectiveRequest& request, const cluster::Topology& topology,
                     const CollectiveChoice& choice) {
  CollectiveRequest quick = request;
  quick.only_busiest = true;
  const absl::StatusOr<ChosenCollective> chosen = ChooseCollective(quick, topology, choice);
  ORRERY_CHECK(chosen.ok()) << chosen.status().message();
  return chosen->time;
}

cluster::PathInfo SlowestHop(std::span<const cluster::DeviceId> group,
                             const cluster::Topology& topology) {
  ORRERY_CHECK(group.size() >= 2) << "a group of " << group.size();
  cluster::PathInfo slowest = topology.Path(group.back(), group.front());
  for (size_t i = 1; i < group.size(); ++i) {
    const cluster::PathInfo hop = topology.Path(group[i - 1], group[i]);
    slowest.rate = std::min(slowest.rate, hop.rate);
    slowest.latency = std::max(slowest.latency, hop.latency);
  }
  return slowest;
}

}  // namespace orrery::cost_models
