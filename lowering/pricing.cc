#include "lowering/pricing.h"

#include <algorithm>

namespace orrery::lowering {
namespace {

constexpr Duration kUnknown(-1);

bool AllEqual(const std::vector<Duration>& prices) {
  return std::all_of(prices.begin(), prices.end(),
                     [&](Duration price) { return price == prices.front(); });
}

}  // namespace

void Pricing::Expect(int32_t stage, const BlockTask& task) {
  auto& prices = collectives_[KeyOf(stage, task)];
  if (prices.empty()) prices.assign(GroupsOf(task.group).size(), kUnknown);
}

void Pricing::Expect(int32_t stage, const BlockSend& send) {
  auto& prices = sends_[KeyOf(stage, send)];
  if (prices.empty()) prices.assign(geometry_.ranks_of_stage(stage).size(), kUnknown);
}

bool Pricing::AllGroupsAlike() {
  for (auto& [key, prices] : collectives_) {
    for (size_t g = 0; g < prices.size(); ++g) prices[g] = PriceCollective(key, g);
    if (!AllEqual(prices)) return false;
  }
  for (auto& [key, prices] : sends_) {
    for (size_t place = 0; place < prices.size(); ++place) prices[place] = PriceSend(key, place);
    if (!AllEqual(prices)) return false;
  }
  return true;
}

const std::vector<std::vector<int32_t>>& Pricing::GroupsOf(const ir::AxisList& axes) {
  auto found = groups_.find(axes);
  if (found == groups_.end()) found = groups_.emplace(axes, geometry_.Groups(axes)).first;
  return found->second;
}

Duration Pricing::Collective(int32_t stage, const BlockTask& task, size_t group) {
  Duration& price = collectives_[KeyOf(stage, task)][group];
  if (price == kUnknown) price = PriceCollective(KeyOf(stage, task), group);
  return price;
}

Duration Pricing::Send(int32_t stage, const BlockSend& send, size_t place) {
  Duration& price = sends_[KeyOf(stage, send)][place];
  if (price == kUnknown) price = PriceSend(KeyOf(stage, send), place);
  return price;
}

Duration Pricing::PriceCollective(const CollectiveKey& key, size_t group) {
  const auto& [stage, axes, kind, bytes] = key;
  const std::vector<int32_t>& places = GroupsOf(axes)[group];
  if (places.size() < 2) return Duration();
  return cost_model_.Collective(kind, bytes, geometry_.Devices(stage, places), topology_);
}

Duration Pricing::PriceSend(const SendKey& key, size_t place) const {
  const auto& [stage, to, bytes] = key;
  const int32_t from_rank = geometry_.ranks_of_stage(stage)[place];
  const int32_t to_rank = geometry_.ranks_of_stage(to)[place];
  return cost_model_.Transfer(
      bytes, topology_.Path(geometry_.device(from_rank), geometry_.device(to_rank)));
}

}  // namespace orrery::lowering
