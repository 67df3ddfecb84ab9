#include "lowering/network/exchange.h"

#include <algorithm>
#include <deque>

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

// How many groups load each link that one loads.
LinkNumbers GroupsByLink(const GroupLinks& links) {
  if (links.all.empty()) return {};
  const auto [first, last] = std::ranges::minmax(links.all);
  LinkNumbers groups(first, last, links.all.size());
  for (const cluster::LinkNumber link : links.all) ++groups[link];
  return groups;
}

// The cost of all groups at once where they pay the same and no link carries anything of two.
RoundsCost JoinCosts(const Exchange& exchange, const std::vector<const GroupPrice*>& prices) {
  RoundsCost together = exchange.alone;
  together.volumes.resize(exchange.links.all.size());
  size_t next = 0;
  for (const GroupPrice* price : prices) {
    for (cost_models::LinkVolume volume : price->cost().volumes) {
      volume.link = exchange.links.all[next];
      together.volumes[next++] = volume;
    }
  }
  return together;
}

bool AreApart(const LinkNumbers& groups_by_link) {
  int32_t most = 0;
  groups_by_link.ForEach(
      [&](cluster::LinkNumber, int32_t groups) { most = std::max(most, groups); });
  return most <= 1;
}

double BusiestSecondsAPart(const Exchange& exchange, const LinkNumbers& groups) {
  double busiest = 0;
  for (const cost_models::LinkVolume& volume : exchange.together.volumes) {
    if (groups.at(volume.link) == 1) continue;
    const double seconds =
        static_cast<double>(volume.parts) / static_cast<double>(volume.rate.bytes_per_second());
    busiest = std::max(busiest, seconds);
  }
  return busiest;
}

}  // namespace
}  // namespace exchange_cc

Exchange MakeExchange(const std::vector<Devices>& groups, const cost_models::Rounds& rounds,
                      const cluster::Topology& topology) {
  std::deque<GroupPrice> prices;
  return MakeExchange(groups, rounds, topology, [&](size_t group) -> GroupPrice& {
    return prices.emplace_back(groups[group], rounds, topology);
  });
}

Exchange MakeExchange(const std::vector<Devices>& groups, const cost_models::Rounds& rounds,
                      const cluster::Topology& topology,
                      absl::FunctionRef<GroupPrice&(size_t)> price_of) {
  Exchange exchange;
  std::vector<const GroupPrice*> prices;
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupPrice& price = price_of(g);
    const bool seen = g > 0 && (&price == prices.back() || &price == prices.front());
    exchange.alike &=
        seen || g == 0 || exchange_cc::CostsTheSame(price.cost(), prices.front()->cost());
    prices.push_back(&price);
    price.AppendLinks(groups[g], rounds, exchange.links.all);
    exchange.links.ends.push_back(exchange.links.all.size());
  }
  exchange.alone = prices.front()->cost();
  for (size_t i = 0; i < exchange.alone.volumes.size(); ++i) {
    exchange.alone.volumes[i].link = exchange.links.all[i];
  }
  const LinkNumbers by_link = exchange_cc::GroupsByLink(exchange.links);
  if (exchange.alike && exchange_cc::AreApart(by_link)) {
    exchange.together = exchange_cc::JoinCosts(exchange, prices);
  } else {
    const std::vector<cost_models::DeviceGroup> spans(groups.begin(), groups.end());
    exchange.together = CostOf(topology, spans, rounds);
    exchange.busiest_s_a_part = exchange_cc::BusiestSecondsAPart(exchange, by_link);
  }
  exchange.busiest = BusiestLinkOf(exchange.together, Bytes(1)).link;
  return exchange;
}

bool GroupsCrowdBridges(const Exchange& exchange, const cluster::Topology& topology) {
  if (topology.shape().boards_per_node <= 1) return false;
  bool crowd = false;
  exchange_cc::GroupsByLink(exchange.links).ForEach([&](cluster::LinkNumber link, int32_t groups) {
    crowd |= groups > 1 && topology.LinkAt(link).kind == "bridge";
  });
  return crowd;
}

double LoadInStep(const Exchange& exchange, Bytes size,
                  const cluster::CollectiveProtocol& protocol) {
  const cost_models::RoundsCost& one = exchange.alone;
  if (size == Bytes(0) || exchange.busiest_s_a_part <= 0 || one.volumes.empty()) return 1;
  const cost_models::CollectiveFlow flow = cost_models::FlowOfFirstLink(one, size, protocol);
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
