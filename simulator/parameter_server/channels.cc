#include "simulator/parameter_server/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "support/check.h"

namespace orrery::simulator::parameter_server {
namespace channels_cc {
namespace {

// Of a heap whose first message is at the front.
bool Later(const Message& a, const Message& b) {
  return std::pair(a.priority, a.sequence) > std::pair(b.priority, b.sequence);
}

constexpr double kPicosecond = 1e-12;

}  // namespace
}  // namespace channels_cc

Channels::Channels(const Program& network, const std::vector<const Route*>& routes,
                   const std::vector<double>& weights)
    : network_(network), rates_(network), carried_(static_cast<size_t>(network.resource_count())) {
  for (const Route* route : routes) channels_.push_back({.route = route});
  for (size_t c = 0; c < weights.size(); ++c) {
    Channel& channel = channels_[c];
    channel.weight = weights[c];
    if (channel.weight == 1) continue;
    for (const Load& load : channel.route->loads) {
      channel.weighted.push_back({load.resource, load.load * channel.weight});
    }
  }
}

void Channels::Send(int32_t c, Message message, Time now) {
  Channel& channel = channels_[static_cast<size_t>(c)];
  message.size = std::max(message.size, Bytes(1));  // an empty one is a message, too
  channel.queue.push_back(message);
  std::ranges::push_heap(channel.queue, channels_cc::Later);
  if (channel.head.has_value()) return;
  Begin(channel, now);
  if (channel.route->loads.empty()) {
    const SlotHeap::Entry entry{now, c};
    finishes_.Set({&entry, 1});
    return;
  }
  channel.slot = rates_.Add(Bandwidth(std::numeric_limits<int64_t>::max()),
                            channel.weighted.empty() ? channel.route->loads : channel.weighted);
  const auto slot = static_cast<size_t>(channel.slot);
  if (of_slot_.size() <= slot) of_slot_.resize(slot + 1, -1);
  of_slot_[slot] = c;
}

// The first of the queue becomes the head, at the rate that the channel has.
void Channels::Begin(Channel& channel, Time now) {
  std::ranges::pop_heap(channel.queue, channels_cc::Later);
  channel.head = channel.queue.back();
  channel.queue.pop_back();
  channel.head->start = now;
  channel.left = static_cast<double>(channel.head->size.count());
  channel.since = now;
}

Time Channels::FinishOf(const Channel& channel) const {
  if (channel.left <= 0 || channel.route->loads.empty()) return channel.since;
  // What is above a whole picosecond by less than doubles tell apart is no other picosecond.
  const double left = channel.left / channel.rate / channels_cc::kPicosecond;
  const auto longest = static_cast<double>(kLongestDuration.picoseconds());
  return channel.since + Duration(static_cast<int64_t>(std::min(std::ceil(left - 1e-3), longest)));
}

std::vector<double> Channels::Carried(Time now) const {
  std::vector<double> carried = carried_;
  for (const Channel& channel : channels_) {
    if (!channel.head.has_value()) continue;
    const double passed = (now - channel.since).seconds();
    const double left = std::max(channel.left - channel.rate * passed, 0.0);
    const double sent = static_cast<double>(channel.head->size.count()) - left;
    for (const Load& load : channel.route->loads) {
      carried[static_cast<size_t>(load.resource.index())] += load.load * sent;
    }
  }
  return carried;
}

void Channels::Forget(Time now) {
  const std::vector<double> carried = Carried(now);
  for (size_t link = 0; link < carried.size(); ++link) carried_[link] -= carried[link];
}

std::vector<double> Channels::Use(Time now, double seconds) const {
  std::vector<double> use = Carried(now);
  for (size_t link = 0; link < use.size(); ++link) {
    const ResourceId id(static_cast<int32_t>(link));
    const auto rate = static_cast<double>(network_.resource(id).capacity.bytes_per_second());
    use[link] = seconds > 0 ? use[link] / rate / seconds : 0;
  }
  return use;
}

void Channels::Solve(Time now) {
  moved_.clear();
  for (const FairRates::Slot slot : rates_.Solve()) {
    const int32_t c = of_slot_[static_cast<size_t>(slot)];
    Channel& channel = channels_[static_cast<size_t>(c)];
    const double rate = channel.weight * rates_.rate(slot);
    if (rate == channel.rate) continue;
    const double passed = (now - channel.since).seconds();
    channel.left = std::max(channel.left - channel.rate * passed, 0.0);
    channel.since = now;
    channel.rate = rate;
    moved_.push_back({FinishOf(channel), c});
  }
  finishes_.Set(moved_);
}

std::optional<Time> Channels::Next(Time now) {
  if (rates_.stale()) Solve(now);
  if (finishes_.empty()) return std::nullopt;
  return finishes_.top().time;
}

void Channels::Advance(Time now, std::vector<std::pair<int32_t, Message>>& sent) {
  const size_t first = sent.size();
  while (!finishes_.empty() && finishes_.top().time <= now) {
    const int32_t c = finishes_.top().slot;
    Channel& channel = channels_[static_cast<size_t>(c)];
    ORRERY_CHECK(channel.head.has_value()) << "channel " << c << " sends nothing";
    for (const Load& load : channel.route->loads) {
      carried_[static_cast<size_t>(load.resource.index())] +=
          load.load * static_cast<double>(channel.head->size.count());
    }
    sent.emplace_back(c, *std::exchange(channel.head, std::nullopt));
    if (!channel.queue.empty() && (channel.slot >= 0 || channel.route->loads.empty())) {
      Begin(channel, now);
      const SlotHeap::Entry entry{FinishOf(channel), c};
      finishes_.Set({&entry, 1});
      continue;
    }
    finishes_.Pop();
    if (channel.slot >= 0) {
      rates_.Remove(channel.slot);
      channel.slot = -1;
      channel.rate = 0;
    }
  }
  std::ranges::stable_sort(sent.begin() + static_cast<std::ptrdiff_t>(first), sent.end(), {},
                           [](const auto& each) { return each.first; });
}

}  // namespace orrery::simulator::parameter_server
