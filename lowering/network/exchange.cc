#include "lowering/network/exchange.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace orrery::lowering {
namespace exchange_cc {
namespace {

using cost_models::RoundCost;
using cost_models::RoundsCost;

bool CostsTheSame(const RoundsCost& a, const RoundsCost& b) {
  return a.steps == b.steps &&
         std::equal(a.rounds.begin(), a.rounds.end(), b.rounds.begin(), b.rounds.end(),
                    [](const RoundCost& x, const RoundCost& y) {
                      return x.repeat == y.repeat && x.candidates == y.candidates;
                    });
}

// Whether no link carries anything of two groups.
bool AreApart(const std::vector<RoundsCost>& costs) {
  size_t volumes = 0;
  for (const RoundsCost& cost : costs) volumes += cost.volumes.size();
  absl::flat_hash_set<cluster::LinkNumber> links;
  links.reserve(volumes);
  for (const RoundsCost& cost : costs) {
    for (const cost_models::LinkVolume& volume : cost.volumes) links.insert(volume.link);
  }
  return links.size() == volumes;
}

absl::flat_hash_map<cluster::LinkNumber, int32_t> GroupsByLink(const Exchange& exchange) {
  absl::flat_hash_map<cluster::LinkNumber, int32_t> groups;
  for (const RoundsCost& cost : exchange.alone) {
    for (const cost_models::LinkVolume& volume : cost.volumes) ++groups[volume.link];
  }
  return groups;
}

}  // namespace
}  // namespace exchange_cc

Exchange MakeExchange(const std::vector<Devices>& groups, const cost_models::Rounds& rounds,
                      const cluster::Topology& topology) {
  Exchange exchange;
  const std::vector<cost_models::DeviceGroup> spans(groups.begin(), groups.end());
  for (const cost_models::DeviceGroup& group : spans) {
    exchange.alone.push_back(CostOf(topology, std::span(&group, 1), rounds));
    exchange.alike &= exchange_cc::CostsTheSame(exchange.alone.back(), exchange.alone.front());
  }
  if (!exchange.alike || !exchange_cc::AreApart(exchange.alone)) {
    exchange.together = CostOf(topology, spans, rounds);
    const auto on_link = exchange_cc::GroupsByLink(exchange);
    for (const cost_models::LinkVolume& volume : exchange.together.volumes) {
      if (on_link.at(volume.link) == 1) continue;
      const double seconds =
          static_cast<double>(volume.parts) / static_cast<double>(volume.rate.bytes_per_second());
      exchange.busiest_s_a_part = std::max(exchange.busiest_s_a_part, seconds);
    }
    return exchange;
  }
  exchange.together = exchange.alone.front();
  for (size_t g = 1; g < groups.size(); ++g) {
    const std::vector<cost_models::LinkVolume>& volumes = exchange.alone[g].volumes;
    exchange.together.volumes.insert(exchange.together.volumes.end(), volumes.begin(),
                                     volumes.end());
  }
  return exchange;
}

bool GroupsCrowdBridges(const Exchange& exchange, const cluster::Topology& topology) {
  if (topology.shape().boards_per_node <= 1) return false;
  const auto groups = exchange_cc::GroupsByLink(exchange);
  return std::any_of(groups.begin(), groups.end(), [&](const auto& link_groups) {
    return link_groups.second > 1 && topology.LinkAt(link_groups.first).kind == "bridge";
  });
}

double LoadInStep(const Exchange& exchange, Bytes size,
                  const cluster::CollectiveProtocol& protocol) {
  const cost_models::RoundsCost& one = exchange.alone.front();
  if (size == Bytes(0) || exchange.busiest_s_a_part <= 0 || one.volumes.empty()) return 1;
  const cost_models::CollectiveFlow flow = cost_models::FlowOf(one, size, protocol);
  if (flow.loads.empty()) return 1;
  const double a_part = flow.loads.front().load / static_cast<double>(one.volumes.front().parts);
  const double bytes = static_cast<double>(flow.size.count());
  const double carried = bytes * a_part * exchange.busiest_s_a_part;
  const double apart = std::max(carried, TransferTime(flow.size, flow.rate).seconds());
  const double in_step =
      (cost_models::TimeOf(exchange.together, size, protocol) - flow.latency).seconds();
  constexpr double kRounding = 1e-9;
  return in_step > apart * (1 + kRounding) ? in_step / carried : 1;
}

cost_models::Rounds MessageRounds() {
  cost_models::Rounds rounds{
      .kind = cost_models::CollectiveKind::kSendReceive, .ranks = 2, .parts = 2, .parts_a_size = 1};
  rounds.rounds.push_back({.transfers = {{.from = 0, .to = 1, .first_part = 0}}});
  return rounds;
}

}  // namespace orrery::lowering
