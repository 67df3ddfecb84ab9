#include "lowering/network/pricing.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "simulator/program/time_alone.h"

namespace orrery::lowering {
namespace pricing_cc {
namespace {

using cost_models::CollectiveCall;
using simulator::StreamKind;

// Whether both are none, or the same from rank to rank.
bool SameTrees(const cluster::SpanningTrees* a, const cluster::SpanningTrees* b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->trees == b->trees;
}

// The link that is busiest when all of `costs` are under way at once, the first of equal ones; -1
// when none carries anything. Folded there is one of all groups, which has their sums.
cluster::LinkNumber BusiestLinkOfAll(std::span<const cost_models::RoundsCost* const> costs) {
  if (costs.size() == 1) return BusiestLinkOf(*costs.front(), Bytes(1)).link;
  absl::flat_hash_map<cluster::LinkNumber, double> busy;
  cluster::LinkNumber busiest = -1;
  const auto seconds = [](const cost_models::RoundsCost& cost, const auto& volume) {
    return static_cast<double>(volume.parts) / static_cast<double>(cost.parts_a_size) /
           static_cast<double>(volume.rate.bytes_per_second());
  };
  for (const cost_models::RoundsCost* cost : costs) {
    for (const auto& volume : cost->volumes) busy[volume.link] += seconds(*cost, volume);
  }
  for (const cost_models::RoundsCost* cost : costs) {
    for (const auto& volume : cost->volumes) {
      constexpr double kMore = 1 + 1e-9;  // than rounding makes
      if (busiest < 0 || busy[volume.link] > busy[busiest] * kMore) busiest = volume.link;
    }
  }
  return busiest;
}

Lane LaneOf(int32_t owner, StreamKind stream) {
  return owner * simulator::kStreamKindCount + static_cast<Lane>(stream);
}

}  // namespace
}  // namespace pricing_cc

void Pricing::Expect(int32_t stage, const CollectiveRequest& task) {
  movements_[KeyOf(stage, task)];
  exchanges_are_of_.reset();
}

void Pricing::Expect(int32_t stage, const SendRequest& send) {
  movements_[KeyOf(stage, send)];
  exchanges_are_of_.reset();
}

const std::vector<std::vector<int32_t>>& Pricing::GroupsOf(const ir::AxisList& axes) {
  auto found = groups_.find(axes);
  if (found == groups_.end()) found = groups_.emplace(axes, geometry_.Groups(axes)).first;
  return found->second;
}

size_t Pricing::GroupCount(const Key& key) {
  return IsSend(key) ? geometry_.ranks_of_stage(key.stage).size() : GroupsOf(key.axes).size();
}

Devices Pricing::GroupOf(const Key& key, size_t group) {
  if (IsSend(key)) {
    return {geometry_.device(geometry_.ranks_of_stage(key.stage)[group]),
            geometry_.device(geometry_.ranks_of_stage(key.to)[group])};
  }
  Devices devices = geometry_.Devices(key.stage, GroupsOf(key.axes)[group]);
  std::sort(devices.begin(), devices.end());
  return cost_models::RanksOf(key.kind, devices, topology_);  // as ChooseCollective does
}

// Groups of a collective that look the same to a library, so that it would choose the same for
// them. All sends are alike.
const std::vector<std::vector<int32_t>>& Pricing::LayoutsOf(const Key& key) {
  const auto [found, is_new] = layouts_.try_emplace({key.stage, key.to, key.axes});
  if (!is_new) return found->second;
  std::vector<cost_models::CollectiveCall> calls;
  for (size_t g = 0; g < GroupCount(key); ++g) {
    cost_models::CollectiveCall call;
    if (!IsSend(key)) {
      call = cost_models::MakeCall({.kind = key.kind, .group = GroupOf(key, g)}, topology_);
    }
    const auto same =
        std::find_if(calls.begin(), calls.end(), [&](const cost_models::CollectiveCall& other) {
          return call.ranks_a_node == other.ranks_a_node &&
                 call.node_reduces == other.node_reduces &&
                 call.fabric_reduces == other.fabric_reduces && call.hop == other.hop &&
                 pricing_cc::SameTrees(call.laid.packed, other.laid.packed) &&
                 pricing_cc::SameTrees(call.laid.shortest, other.laid.shortest);
        });
    const auto number = static_cast<size_t>(same - calls.begin());
    if (same == calls.end()) {
      calls.push_back(call);
      found->second.emplace_back();
    }
    found->second[number].push_back(static_cast<int32_t>(g));
  }
  return found->second;
}

// What a library chooses for the group; of all groups, for those that pay most.
Pricing::Plan Pricing::PlanOf(const Key& key, int32_t group) {
  Plan plan;
  if (IsSend(key)) {
    plan.groups = group == kAll ? LayoutsOf(key).front() : std::vector<int32_t>{group};
    plan.chosen.rounds = MessageRounds();
    return plan;
  }
  const std::vector<std::vector<int32_t>> one = {{group}};
  for (const std::vector<int32_t>& groups : group == kAll ? LayoutsOf(key) : one) {
    const Devices first = GroupOf(key, static_cast<size_t>(groups.front()));
    cost_models::ChosenCollective chosen = cost_model_.Plan(
        {.kind = key.kind, .size = key.size, .group = first}, topology_, options_.algorithms);
    if (!plan.groups.empty() && chosen.time <= plan.chosen.time) continue;
    plan = {.groups = groups, .chosen = std::move(chosen)};
  }
  return plan;
}

absl::InlinedVector<Lane, 2> Pricing::LanesOf(const Entry& entry, int32_t group) {
  const Key& key = entry.first;
  const auto stream = [&](simulator::StreamKind kind) {
    return options_.blocking ? simulator::StreamKind::kCompute : kind;
  };
  absl::InlinedVector<Lane, 2> lanes;
  if (IsSend(key)) {
    const bool next = geometry_.position_of(key.to) > geometry_.position_of(key.stage);
    const auto owner = [&](int32_t stage) {
      return group == kAll ? geometry_.position_of(stage)
                           : geometry_.ranks_of_stage(stage)[static_cast<size_t>(group)];
    };
    lanes = {
        pricing_cc::LaneOf(owner(key.stage), stream(next ? simulator::StreamKind::kSendNext
                                                         : simulator::StreamKind::kSendPrevious)),
        pricing_cc::LaneOf(owner(key.to), stream(next ? simulator::StreamKind::kReceivePrevious
                                                      : simulator::StreamKind::kReceiveNext))};
  } else if (group == kAll) {
    lanes = {pricing_cc::LaneOf(geometry_.position_of(key.stage), stream(key.stream))};
  } else {
    for (const int32_t position : GroupsOf(key.axes)[static_cast<size_t>(group)]) {
      const int32_t rank = geometry_.ranks_of_stage(key.stage)[static_cast<size_t>(position)];
      lanes.push_back(pricing_cc::LaneOf(rank, stream(key.stream)));
    }
  }
  std::sort(lanes.begin(), lanes.end());
  return lanes;
}

int32_t Pricing::FindExchange(Entry& entry, int32_t group) {
  const Key& key = entry.first;
  const Plan plan = PlanOf(key, group);
  entry.second.protocols.push_back(plan.chosen.protocol);
  const cost_models::Rounds& rounds = plan.chosen.rounds;
  const ExchangeKey id{key.stage,
                       key.to,
                       key.axes,
                       key.kind,
                       plan.chosen.algorithm,
                       rounds.parts,
                       rounds.parts_a_size,
                       cost_models::RepetitionCount(rounds),
                       group == kAll ? plan.groups.front() : group,
                       group == kAll,
                       key.stream};
  const auto [found, is_new] =
      exchange_numbers_.try_emplace(id, static_cast<int32_t>(exchanges_.size()));
  if (!is_new) return found->second;
  std::vector<Devices> groups;
  for (const int32_t g : plan.groups) groups.push_back(GroupOf(key, static_cast<size_t>(g)));
  PlacedExchange placed{.exchange = MakeExchange(groups, rounds, topology_),
                        .lanes = LanesOf(entry, group)};
  const bool one_layout = group != kAll || plan.groups.size() == GroupCount(key);
  placed.exchange.alike = placed.exchange.alike && one_layout;
  exchanges_.push_back(std::move(placed));
  return found->second;
}

void Pricing::FindExchanges(bool fold) {
  if (exchanges_are_of_ == fold) return;
  exchanges_are_of_ = fold;
  exchanges_.clear();
  exchange_numbers_.clear();
  for (Entry& entry : movements_) {
    auto& [key, movement] = entry;
    movement.exchanges.clear();
    movement.protocols.clear();
    const size_t groups = GroupCount(key);
    if (!IsSend(key) && GroupsOf(key.axes).front().size() < 2) continue;
    for (size_t g = 0; g < (fold ? 1 : groups); ++g) {
      movement.exchanges.push_back(FindExchange(entry, fold ? kAll : static_cast<int32_t>(g)));
    }
  }
  Classify();
}

void Pricing::Classify() {
  std::vector<Traffic> traffic;
  for (const PlacedExchange& placed : exchanges_) {
    traffic.push_back({.lanes = placed.lanes, .volumes = placed.exchange.together.volumes});
  }
  classes_ = ClassifyLinks(traffic, topology_);
}

bool Pricing::GroupsSeeTheSame(int32_t exchange) const {
  const auto& alone = exchanges_[static_cast<size_t>(exchange)].exchange.alone;
  if (alone.size() == 1) return true;
  const std::vector<int32_t> first = ClassesOf(alone.front().volumes, classes_);
  return std::all_of(alone.begin(), alone.end(), [&](const cost_models::RoundsCost& cost) {
    return ClassesOf(cost.volumes, classes_) == first;
  });
}

bool Pricing::AllGroupsAlike() {
  if (!cost_model_.shares_links()) {
    return std::all_of(movements_.begin(), movements_.end(), [&](const Entry& entry) {
      const std::vector<Duration> times = TimesWithoutLinks(entry.first);
      return std::all_of(times.begin(), times.end(),
                         [&](Duration time) { return time == times.front(); });
    });
  }
  FindExchanges(/*fold=*/true);
  for (size_t e = 0; e < exchanges_.size(); ++e) {
    if (!exchanges_[e].exchange.alike || !GroupsSeeTheSame(static_cast<int32_t>(e))) return false;
    if (GroupsCrowdBridges(exchanges_[e].exchange, topology_)) return false;
  }
  return true;
}

// Ranks that are simulated each are in step all the same, where they are alike: as long as folded
// ones take, they take.
void Pricing::FindLoadsInStep() {
  FindExchanges(/*fold=*/true);
  for (auto& [key, movement] : movements_) {
    movement.load_in_step = 1;
    if (movement.exchanges.empty()) continue;
    const PlacedExchange& placed = exchanges_[static_cast<size_t>(movement.exchanges.front())];
    if (!placed.exchange.alike) continue;
    movement.load_in_step = LoadInStep(placed.exchange, key.size, movement.protocols.front());
  }
}

std::vector<Duration> Pricing::TimesWithoutLinks(const Key& key) {
  std::vector<Duration> times;
  for (size_t g = 0; g < GroupCount(key); ++g) {
    const Devices group = GroupOf(key, g);
    if (group.size() < 2) {
      times.emplace_back();
    } else if (IsSend(key)) {
      times.push_back(cost_model_.Transfer(key.size, topology_.Path(group[0], group[1])));
    } else {
      times.push_back(cost_model_.Collective(key.kind, key.size, group, topology_));
    }
  }
  return times;
}

void Pricing::Prepare(bool fold, simulator::Program& program) {
  if (!cost_model_.shares_links()) {
    SetTimesWithoutLinks(fold);
    return;
  }
  if (!fold) FindLoadsInStep();
  FindExchanges(fold);
  resources_.assign(classes_.classes.size(), simulator::ResourceId());
  for (size_t c = 0; c < resources_.size(); ++c) {
    if (!options_.every_link && !classes_.classes[c].shared) continue;
    resources_[c] = AddResource(static_cast<int32_t>(c), program);
  }
  for (auto& [key, movement] : movements_) {
    movement.times.clear();
    const bool waits = movement.load_in_step != 1;
    const std::vector<char> in_step =
        waits ? LoadedBySeveral(movement.exchanges, classes_) : std::vector<char>();
    for (size_t g = 0; g < movement.exchanges.size(); ++g) {
      movement.times.push_back(TimeOf(key, movement, g, in_step, program));
    }
    if (movement.exchanges.empty()) {  // groups of one rank
      movement.times.resize(fold ? 1 : GroupCount(key));
      continue;
    }
    movement.level = BusiestLevel(movement);
  }
}

absl::string_view Pricing::BusiestLevel(const Movement& movement) const {
  std::vector<const cost_models::RoundsCost*> costs;
  for (const int32_t number : movement.exchanges) {
    costs.push_back(&exchanges_[static_cast<size_t>(number)].exchange.together);
  }
  const cluster::LinkNumber busiest = pricing_cc::BusiestLinkOfAll(costs);
  return busiest < 0 ? absl::string_view() : topology_.LinkAt(busiest).kind;
}

void Pricing::SetTimesWithoutLinks(bool fold) {
  for (auto& [key, movement] : movements_) {
    std::vector<Duration> times = TimesWithoutLinks(key);
    if (fold) times = {*std::max_element(times.begin(), times.end())};
    movement.times.clear();
    for (const Duration time : times) movement.times.push_back({.duration = time});
  }
}

simulator::ResourceId Pricing::AddResource(int32_t link_class, simulator::Program& program) const {
  const LinkClass& links = classes_.classes[static_cast<size_t>(link_class)];
  const cluster::Link link = topology_.LinkAt(links.first);
  std::string name = topology_.LinkName(links.first);
  if (links.links > 1) absl::StrAppend(&name, " and ", links.links - 1, " alike");
  return program.AddResource({.name = std::move(name),
                              .kind = std::string(link.kind),
                              .capacity = link.speed.rate,
                              .latency = link.speed.latency});
}

}  // namespace orrery::lowering
