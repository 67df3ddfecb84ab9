#include "lowering/network/cluster_machine.h"

#include "absl/strings/str_cat.h"
#include "cost_models/collectives/collective_kind.h"
#include "support/status.h"

namespace orrery::lowering {

using cluster::DeviceId;
using simulator::FlowId;

ClusterMachine::ClusterMachine(const cluster::Cluster& cluster, simulator::Program& program,
                               cost_models::CollectiveChoice choice)
    : cluster_(cluster), program_(program), choice_(choice), links_(cluster.topology, program) {}

absl::StatusOr<simulator::RankClass> ClusterMachine::RankOf(int32_t rank) {
  if (rank < 0 || rank >= cluster_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ": ", cluster_.name, " has ",
                                                   cluster_.size(), " devices; wanted ranks 0 to ",
                                                   cluster_.size() - 1));
  }
  const cluster::Device& device = cluster_.device_of(DeviceId(rank));
  return simulator::RankClass{.name = absl::StrCat("rank ", rank),
                              .members = {rank},
                              .capacity = device.memory,
                              .communication_slowdown = device.communication_slowdown};
}

absl::StatusOr<simulator::Task> ClusterMachine::TimeOf(const simulator::Call& call) {
  std::vector<DeviceId> group;
  for (const int32_t rank : call.ranks) group.emplace_back(rank);
  if (call.kind == "send") {
    std::vector<cluster::LinkNumber> route;
    cluster_.topology.AppendRoute(group[0], group[1], route);
    return simulator::Task{.flow = links_.AddMessage(call.size, route)};
  }
  ORRERY_ASSIGN_OR_RETURN(const cost_models::CollectiveKind kind,
                          cost_models::FindCollectiveKind(call.kind));
  ORRERY_ASSIGN_OR_RETURN(
      const cost_models::ChosenCollective chosen,
      cost_models::ChooseCollective({.kind = kind, .size = call.size, .group = group},
                                    cluster_.topology, choice_));
  const cost_models::CollectiveFlow flow =
      cost_models::FlowOf(chosen.cost, chosen.call.size, chosen.protocol);
  std::vector<simulator::Load> loads;
  for (const cost_models::LinkLoad& load : flow.loads) {
    loads.push_back({.resource = links_.Find(load.link), .load = load.load});
  }
  const FlowId id = program_.AddFlow(
      {.size = flow.size, .rate = flow.rate, .latency = flow.latency, .loads = loads});
  return simulator::Task{.flow = id};
}

std::vector<absl::string_view> ClusterMachine::Collectives() {
  std::vector<absl::string_view> names;
  for (const cost_models::CollectiveKindInfo& kind : cost_models::AllCollectiveKinds()) {
    names.push_back(kind.name);
  }
  return names;
}

}  // namespace orrery::lowering
