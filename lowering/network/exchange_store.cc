#include "lowering/network/exchange_store.h"

#include <algorithm>

namespace orrery::lowering {

namespace exchange_store_cc {
namespace {

// Whether both are none, or the same from rank to rank.
bool SameTrees(const cluster::SpanningTrees* a, const cluster::SpanningTrees* b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->trees == b->trees;
}

// The number of the call of that group among those that differ; a new one is added.
size_t NumberOf(const GroupList& list, size_t group, const cluster::Topology& topology,
                std::vector<cost_models::CollectiveCall>& calls) {
  cost_models::CollectiveCall call;
  if (!list.sends) {
    call = cost_models::MakeCall({.kind = list.kind, .group = list.groups[group]}, topology);
  }
  const auto same = std::ranges::find_if(calls, [&](const cost_models::CollectiveCall& other) {
    return call.ranks_a_node == other.ranks_a_node && call.node_reduces == other.node_reduces &&
           call.fabric_reduces == other.fabric_reduces && call.hop == other.hop &&
           SameTrees(call.laid.packed, other.laid.packed) &&
           SameTrees(call.laid.shortest, other.laid.shortest);
  });
  const auto number = static_cast<size_t>(same - calls.begin());
  if (same == calls.end()) calls.push_back(call);
  return number;
}

}  // namespace
}  // namespace exchange_store_cc

const Exchange& ExchangeStore::Find(const std::vector<Devices>& groups,
                                    const cost_models::ChosenCollective& chosen) {
  std::vector<PlaceId> places;
  for (const Devices& group : groups) places.push_back(places_.Of(group));
  return Find(groups, places, chosen);
}

const Exchange& ExchangeStore::Find(const std::vector<Devices>& groups,
                                    const std::vector<PlaceId>& places,
                                    const cost_models::ChosenCollective& chosen) {
  std::vector<cluster::DeviceId> devices;
  const size_t ranks = groups.front().size();
  devices.reserve(groups.size() * ranks);
  for (const Devices& group : groups) devices.insert(devices.end(), group.begin(), group.end());
  const cost_models::RoundsKey rounds = KeyOf(chosen.algorithm, chosen.rounds);
  std::unique_ptr<const Exchange>& found = exchanges_[Key(std::move(devices), ranks, rounds)];
  if (found != nullptr) return *found;
  const auto price_of = [&](size_t group) -> GroupPrice& {
    std::unique_ptr<GroupPrice>& price = prices_[{places[group], rounds}];
    if (price == nullptr) {
      price = std::make_unique<GroupPrice>(groups[group], chosen.rounds, topology_);
    }
    return *price;
  };
  found =
      std::make_unique<const Exchange>(MakeExchange(groups, chosen.rounds, topology_, price_of));
  return *found;
}

const Exchange& ExchangeStore::Find(const GroupList& list, const std::vector<int32_t>& layout,
                                    const cost_models::ChosenCollective& chosen) {
  const Exchange*& found =
      exchanges_of_lists_[{&list, layout.front(), KeyOf(chosen.algorithm, chosen.rounds)}];
  if (found != nullptr) return *found;
  std::vector<Devices> groups;
  std::vector<PlaceId> places;
  for (const int32_t g : layout) {
    groups.push_back(list.groups[static_cast<size_t>(g)]);
    places.push_back(list.places[static_cast<size_t>(g)]);
  }
  found = &Find(groups, places, chosen);
  return *found;
}

const GroupList& ExchangeStore::Groups(const GroupsKey& key,
                                       const std::function<std::vector<Devices>()>& make) {
  std::unique_ptr<const GroupList>& found = lists_[key];
  if (found != nullptr) return *found;
  GroupList list{.kind = key.kind, .sends = key.to >= 0, .groups = make()};
  list.places.reserve(list.groups.size());
  for (const Devices& group : list.groups) list.places.push_back(places_.Of(group));
  found = std::make_unique<const GroupList>(std::move(list));
  return *found;
}

const Layouts& ExchangeStore::LayoutsOf(const GroupList& list) {
  std::unique_ptr<const Layouts>& found = layouts_[&list];
  if (found != nullptr) return *found;
  Layouts layouts;
  std::vector<cost_models::CollectiveCall> calls;
  absl::flat_hash_map<PlaceId, size_t> numbers;
  for (size_t g = 0; g < list.groups.size(); ++g) {
    const auto [number, is_new] = numbers.try_emplace(list.places[g]);
    if (is_new) number->second = exchange_store_cc::NumberOf(list, g, topology_, calls);
    layouts.resize(calls.size());
    layouts[number->second].push_back(static_cast<int32_t>(g));
  }
  found = std::make_unique<const Layouts>(std::move(layouts));
  return *found;
}

const cost_models::ChosenCollective& ExchangeStore::PlanOf(
    const cost_models::CostModel& cost_model, const cost_models::CollectiveRequest& request,
    const cost_models::CollectiveChoice& choice) {
  const PlaceId place = places_.Of(request.group);
  std::unique_ptr<const cost_models::ChosenCollective>& found = plans_[{.place = place,
                                                                        .cost_model = &cost_model,
                                                                        .kind = request.kind,
                                                                        .size = request.size,
                                                                        .choice = choice}];
  if (found == nullptr) {
    cost_models::CollectiveRequest with_costs = request;
    with_costs.costs = &costs_[place];
    found = std::make_unique<const cost_models::ChosenCollective>(
        cost_model.Plan(with_costs, topology_, choice));
  }
  return *found;
}

const ExchangeStore::Seen& ExchangeStore::SeenBy(std::span<const PlacedExchange> exchanges) {
  std::unique_ptr<const Seen>& found = seen_[{exchanges.begin(), exchanges.end()}];
  if (found != nullptr) return *found;
  std::vector<Traffic> traffic;
  for (const PlacedExchange& placed : exchanges) {
    const auto [number, is_new] = loaded_.try_emplace(placed.exchange);
    if (is_new) number->second = loads_.Add(placed.exchange->together.volumes);
    traffic.push_back({.lanes = placed.lanes, .number = number->second});
  }
  Seen seen{.classes = loads_.Classify(traffic)};
  seen.the_same = std::ranges::all_of(exchanges, [&](const PlacedExchange& placed) {
    return loads_.SeeTheSame(placed.exchange->links, seen.classes);
  });
  found = std::make_unique<const Seen>(std::move(seen));
  return *found;
}

const LinkClasses& ExchangeStore::ClassesOf(std::span<const PlacedExchange> exchanges) {
  return SeenBy(exchanges).classes;
}

bool ExchangeStore::GroupsSeeTheSame(std::span<const PlacedExchange> exchanges) {
  return SeenBy(exchanges).the_same;
}

}  // namespace orrery::lowering
