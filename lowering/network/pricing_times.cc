#include <algorithm>
#include <cmath>
#include <vector>

#include "lowering/network/pricing.h"
#include "simulator/program/time_alone.h"

// How long tasks of communication take, of which Pricing knows what they share with what.

namespace orrery::lowering {
namespace pricing_times_cc {
namespace {

// The flow of all groups at once, with the load of its first link. Its rate is that of one group,
// so that it gets the shares of links that flows of the single groups would get together.
cost_models::CollectiveFlow FlowOfExchange(const Exchange& exchange, Bytes size,
                                           const cluster::CollectiveProtocol& protocol) {
  cost_models::CollectiveFlow flow = FlowOfFirstLink(exchange.together, size, protocol);
  const Bytes of_one = FlowOfFirstLink(exchange.alone, size, protocol).size;
  if (of_one == Bytes(0) || of_one >= flow.size) return flow;
  const Duration streaming = TransferTime(flow.size, flow.rate);
  const double rate = std::ceil(static_cast<double>(of_one.count()) / streaming.seconds());
  const double scale = static_cast<double>(flow.size.count()) / static_cast<double>(of_one.count());
  for (cost_models::LinkLoad& load : flow.loads) load.load *= scale;
  flow.size = of_one;
  flow.rate = Bandwidth(static_cast<int64_t>(std::clamp(rate, 1.0, 9e18)));
  flow.latency += std::max(Duration(0), streaming - TransferTime(flow.size, flow.rate));
  return flow;
}

}  // namespace
}  // namespace pricing_times_cc

// What it takes besides the network.
Duration Pricing::StartOf(const Key& key) const {
  if (IsSend(key)) return Duration(0);
  const bool moves = key.kind == cost_models::CollectiveKind::kAllGather ||
                     key.kind == cost_models::CollectiveKind::kReduceScatter;
  const bool copies = options_.copy && moves && key.axes == options_.copied_axes;
  return options_.start + (copies ? options_.copy(key.size) : Duration(0));
}

TaskTime Pricing::TimeOf(const Key& key, const Movement& movement, size_t group,
                         const std::vector<char>& in_step, simulator::Program& program) const {
  const Bytes size = key.size;
  const Duration start = StartOf(key);
  const int32_t exchange = movement.exchanges[group];
  const cluster::CollectiveProtocol& protocol = movement.protocols[group];
  const Exchange& placed = *exchanges_[static_cast<size_t>(exchange)].exchange;
  const cost_models::RoundsCost& cost = placed.together;
  const TaskTime alone{.duration = cost_models::TimeOf(cost, size, protocol) + start};
  if (size == Bytes(0) || cost.volumes.empty()) return alone;
  const cost_models::CollectiveFlow flow = pricing_times_cc::FlowOfExchange(placed, size, protocol);
  if (flow.loads.empty()) return alone;
  const double a_part = flow.loads.front().load / static_cast<double>(cost.volumes.front().parts);
  std::vector<simulator::Load> loads;
  bool shared = false;
  for (const auto& [link_class, parts] : classes_->by_traffic[static_cast<size_t>(exchange)]) {
    const simulator::ResourceId resource = resources_[static_cast<size_t>(link_class)];
    if (!resource.valid()) continue;
    double load = a_part * static_cast<double>(parts);
    // Alone it is as fast as it is, and so are links that it has to itself.
    const double most =
        static_cast<double>(program.resource(resource).capacity.bytes_per_second()) /
        static_cast<double>(flow.rate.bytes_per_second());
    if (classes_->classes[static_cast<size_t>(link_class)].shared) {
      const bool waits = !in_step.empty() && in_step[static_cast<size_t>(link_class)] != 0;
      if (waits) load = std::max(load, std::min(load * movement.load_in_step, most));
      shared = true;
    } else {
      load = std::min(load, std::nextafter(most, 0));
    }
    loads.push_back({resource, load});
  }
  if (loads.empty()) return alone;
  simulator::Flow task_flow = {
      .size = flow.size, .rate = flow.rate, .latency = flow.latency + start, .loads = loads};
  // Who looks at links changes no time: without resources it were this one.
  if (!shared) {
    task_flow.latency =
        std::max(Duration(0), task_flow.latency + alone.duration - TimeAlone(task_flow, program));
  }
  return {.flow = program.AddFlow(task_flow)};
}

TaskTime Pricing::Collective(int32_t stage, const CollectiveRequest& task, size_t group) const {
  return Find(KeyOf(stage, task)).times[group];
}

TaskTime Pricing::Send(int32_t stage, const SendRequest& send, size_t position) const {
  return Find(KeyOf(stage, send)).times[position];
}

absl::string_view Pricing::LevelOf(int32_t stage, const CollectiveRequest& task) const {
  return Find(KeyOf(stage, task)).level;
}

absl::string_view Pricing::LevelOf(int32_t stage, const SendRequest& send) const {
  return Find(KeyOf(stage, send)).level;
}

}  // namespace orrery::lowering
