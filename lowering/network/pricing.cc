#include "lowering/network/pricing.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"

namespace orrery::lowering {
namespace pricing_cc {
namespace {

using simulator::StreamKind;

// The link that is busiest when all of `costs` are under way at once, the first of equal ones; -1
// when none carries anything.
cluster::LinkNumber BusiestLinkOfAll(std::span<const cost_models::RoundsCost* const> costs) {
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

MovementId Pricing::Expect(const Key& key) {
  const auto [found, is_new] = numbers_.try_emplace(key);
  if (!is_new) return found->second;
  exchanges_are_of_.reset();
  return found->second = movements_.push_back({key, {}});
}

MovementId Pricing::Expect(int32_t stage, const CollectiveRequest& task) {
  return Expect(KeyOf(stage, task));
}

MovementId Pricing::Expect(int32_t stage, const SendRequest& send) {
  return Expect(KeyOf(stage, send));
}

int32_t Pricing::AddPairs(const std::vector<SendPair>& pairs) {
  const auto found = std::find(pairs_.begin(), pairs_.end(), pairs);
  const auto number = static_cast<int32_t>(found - pairs_.begin());
  if (found == pairs_.end()) pairs_.push_back(pairs);
  return number;
}

const std::vector<std::vector<int32_t>>& Pricing::GroupsOf(int32_t stage,
                                                           const ir::AxisList& axes) {
  const std::pair key(geometry_.unequal() ? geometry_.position_of(stage) : 0, axes);
  auto found = groups_.find(key);
  if (found == groups_.end()) found = groups_.emplace(key, geometry_.Groups(stage, axes)).first;
  return found->second;
}

size_t Pricing::GroupCount(const Key& key) {
  if (!IsSend(key)) return GroupsOf(key.stage, key.axes).size();
  if (key.pairs != SendRequest::kAll) return pairs_[static_cast<size_t>(key.pairs)].size();
  return geometry_.ranks_of_stage(key.stage).size();
}

SendPair Pricing::PairOf(const Key& key, size_t group) const {
  if (key.pairs != SendRequest::kAll) return pairs_[static_cast<size_t>(key.pairs)][group];
  return {static_cast<int32_t>(group), static_cast<int32_t>(group)};
}

std::vector<Devices> Pricing::MakeGroups(const Key& key) {
  std::vector<Devices> groups;
  if (IsSend(key)) {
    const auto& from = geometry_.ranks_of_stage(key.stage);
    const auto& to = geometry_.ranks_of_stage(key.to);
    for (size_t i = 0; i < GroupCount(key); ++i) {
      const auto [sender, receiver] = PairOf(key, i);
      groups.push_back({geometry_.device(from[static_cast<size_t>(sender)]),
                        geometry_.device(to[static_cast<size_t>(receiver)])});
    }
    return groups;
  }
  for (const std::vector<int32_t>& group : GroupsOf(key.stage, key.axes)) {
    Devices devices = geometry_.Devices(key.stage, group);
    std::sort(devices.begin(), devices.end());
    groups.push_back(
        cost_models::RanksOf(key.kind, devices, topology_));  // as ChooseCollective does
  }
  return groups;
}

const GroupList& Pricing::ListOf(const Key& key) {
  const GroupList*& found = lists_[{key.stage, key.to, key.pairs, key.axes, key.kind}];
  if (found != nullptr) return *found;
  // Elsewhere ranks are in the order of their devices, whatever the kind.
  const bool by_kind = IsSend(key) || topology_.shape().graph != nullptr;
  found = &StoreOf(/*of_all=*/true)
               .Groups({.mesh = geometry_.mesh_at(geometry_.position_of(key.stage)),
                        .devices = geometry_.devices(),
                        .position = geometry_.position_of(key.stage),
                        .to = IsSend(key) ? geometry_.position_of(key.to) : -1,
                        .pairs = key.pairs,
                        .axes = key.axes,
                        .kind = by_kind ? key.kind : cost_models::CollectiveKind::kAllReduce},
                       [&] { return MakeGroups(key); });
  return *found;
}

const Layouts& Pricing::LayoutsOf(const Key& key) {
  return StoreOf(/*of_all=*/true).LayoutsOf(ListOf(key));
}

// What a library chooses for the group; of all groups, for those that pay most.
Pricing::Plan Pricing::PlanOf(const Key& key, int32_t group) {
  Plan plan;
  if (IsSend(key)) {
    plan.groups = group == kAll ? LayoutsOf(key).front() : std::vector<int32_t>{group};
    plan.chosen = &message_;
    return plan;
  }
  const GroupList& list = ListOf(key);
  const Layouts one = {{group}};
  for (const std::vector<int32_t>& groups : group == kAll ? LayoutsOf(key) : one) {
    const Devices& first = list.groups[static_cast<size_t>(groups.front())];
    const cost_models::ChosenCollective& chosen =
        StoreOf(group == kAll)
            .PlanOf(cost_model_, {.kind = key.kind, .size = key.size, .group = first},
                    options_.algorithms);
    if (!plan.groups.empty() && chosen.time <= plan.chosen->time) continue;
    plan = {.groups = groups, .chosen = &chosen};
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
    const auto [from, to] = group == kAll ? SendPair() : PairOf(key, static_cast<size_t>(group));
    const auto owner = [&](int32_t stage, int32_t rank) {
      return group == kAll ? geometry_.position_of(stage)
                           : geometry_.ranks_of_stage(stage)[static_cast<size_t>(rank)];
    };
    lanes = {
        pricing_cc::LaneOf(
            owner(key.stage, from),
            stream(next ? simulator::StreamKind::kSendNext : simulator::StreamKind::kSendPrevious)),
        pricing_cc::LaneOf(owner(key.to, to), stream(next ? simulator::StreamKind::kReceivePrevious
                                                          : simulator::StreamKind::kReceiveNext))};
  } else if (group == kAll) {
    lanes = {pricing_cc::LaneOf(geometry_.position_of(key.stage), stream(key.stream))};
  } else {
    for (const int32_t position : GroupsOf(key.stage, key.axes)[static_cast<size_t>(group)]) {
      const int32_t rank = geometry_.ranks_of_stage(key.stage)[static_cast<size_t>(position)];
      lanes.push_back(pricing_cc::LaneOf(rank, stream(key.stream)));
    }
  }
  std::sort(lanes.begin(), lanes.end());
  return lanes;
}

// Single groups of thousands are not worth keeping for others.
ExchangeStore& Pricing::StoreOf(bool of_all) {
  // Stages with ranks of their own are not told apart by what others look groups up by.
  if (options_.exchanges == nullptr || !of_all || geometry_.unequal()) return own_;
  ORRERY_CHECK(&options_.exchanges->topology() == &topology_) << "exchanges of another topology";
  return *options_.exchanges;
}

int32_t Pricing::FindExchange(Entry& entry, int32_t group) {
  const Key& key = entry.first;
  const Plan plan = PlanOf(key, group);
  entry.second.protocols.push_back(plan.chosen->protocol);
  const cost_models::Rounds& rounds = plan.chosen->rounds;
  const ExchangeKey id{key.stage,
                       key.to,
                       key.pairs,
                       key.axes,
                       key.kind,
                       plan.chosen->algorithm,
                       rounds.parts,
                       rounds.parts_a_size,
                       cost_models::RepetitionCount(rounds),
                       group == kAll ? plan.groups.front() : group,
                       group == kAll,
                       key.stream};
  const auto [found, is_new] =
      exchange_numbers_.try_emplace(id, static_cast<int32_t>(exchanges_.size()));
  if (!is_new) return found->second;
  const GroupList& list = ListOf(key);
  const Exchange& exchange =
      group == kAll ? StoreOf(true).Find(list, plan.groups, *plan.chosen)
                    : own_.Find({list.groups[static_cast<size_t>(group)]}, *plan.chosen);
  const bool one_layout = group != kAll || plan.groups.size() == GroupCount(key);
  exchanges_.push_back({.exchange = &exchange,
                        .lanes = LanesOf(entry, group),
                        .alike = exchange.alike && one_layout});
  return found->second;
}

void Pricing::FindExchanges(bool fold) {
  if (exchanges_are_of_ == fold) return;
  exchanges_are_of_ = fold;
  exchanges_.clear();
  exchange_numbers_.clear();
  for (const auto& [key, number] : numbers_) {
    Entry& entry = movements_[number];
    Movement& movement = entry.second;
    movement.exchanges.clear();
    movement.protocols.clear();
    const size_t groups = GroupCount(key);
    if (!IsSend(key) && GroupsOf(key.stage, key.axes).front().size() < 2) continue;
    for (size_t g = 0; g < (fold ? 1 : groups); ++g) {
      movement.exchanges.push_back(FindExchange(entry, fold ? kAll : static_cast<int32_t>(g)));
    }
  }
  classes_ = &StoreOf(fold).ClassesOf(exchanges_);
}

bool Pricing::AllGroupsAlike() {
  if (!cost_model_.shares_links()) {
    return std::ranges::all_of(numbers_, [&](const auto& numbered) {
      const std::vector<Duration> times = TimesWithoutLinks(numbered.first);
      return std::all_of(times.begin(), times.end(),
                         [&](Duration time) { return time == times.front(); });
    });
  }
  FindExchanges(/*fold=*/true);
  const auto alike = [&](const PlacedExchange& placed) {
    return placed.alike && !GroupsCrowdBridges(*placed.exchange, topology_);
  };
  return std::ranges::all_of(exchanges_, alike) &&
         StoreOf(/*of_all=*/true).GroupsSeeTheSame(exchanges_);
}

// Ranks that are simulated each are in step all the same, where they are alike: as long as folded
// ones take, they take.
void Pricing::FindLoadsInStep() {
  FindExchanges(/*fold=*/true);
  for (auto& [key, movement] : movements_.rows()) {
    movement.load_in_step = 1;
    if (movement.exchanges.empty()) continue;
    const PlacedExchange& placed = exchanges_[static_cast<size_t>(movement.exchanges.front())];
    if (!placed.alike) continue;
    movement.load_in_step = LoadInStep(*placed.exchange, key.size, movement.protocols.front());
  }
}

std::vector<Duration> Pricing::TimesWithoutLinks(const Key& key) {
  std::vector<Duration> times;
  for (const Devices& group : ListOf(key).groups) {
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
  if (!fold && geometry_.in_step()) FindLoadsInStep();
  FindExchanges(fold);
  resources_.assign(classes_->classes.size(), simulator::ResourceId());
  for (size_t c = 0; c < resources_.size(); ++c) {
    if (!options_.every_link && !classes_->classes[c].shared) continue;
    resources_[c] = AddResource(static_cast<int32_t>(c), program);
  }
  for (const auto& [key, number] : numbers_) {
    Movement& movement = movements_[number].second;
    movement.times.clear();
    const bool waits = movement.load_in_step != 1;
    const std::vector<char> in_step =
        waits ? LoadedBySeveral(movement.exchanges, *classes_) : std::vector<char>();
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
    costs.push_back(&exchanges_[static_cast<size_t>(number)].exchange->together);
  }
  // Folded there is one of all groups, which has their sums.
  const Exchange& first = *exchanges_[static_cast<size_t>(movement.exchanges.front())].exchange;
  const cluster::LinkNumber busiest =
      costs.size() == 1 ? first.busiest : pricing_cc::BusiestLinkOfAll(costs);
  return busiest < 0 ? absl::string_view() : topology_.LinkAt(busiest).kind;
}

void Pricing::SetTimesWithoutLinks(bool fold) {
  for (auto& [key, movement] : movements_.rows()) {
    std::vector<Duration> times = TimesWithoutLinks(key);
    if (fold) times = {*std::max_element(times.begin(), times.end())};
    movement.times.clear();
    for (const Duration time : times) movement.times.push_back({.duration = time});
  }
}

simulator::ResourceId Pricing::AddResource(int32_t link_class, simulator::Program& program) const {
  const LinkClass& links = classes_->classes[static_cast<size_t>(link_class)];
  const cluster::Link link = topology_.LinkAt(links.first);
  std::string name = topology_.LinkName(links.first);
  if (links.links > 1) absl::StrAppend(&name, " and ", links.links - 1, " alike");
  return program.AddResource({.name = std::move(name),
                              .kind = std::string(link.kind),
                              .capacity = link.speed.rate,
                              .latency = link.speed.latency});
}

}  // namespace orrery::lowering
