#include "simulator/network/astra_networks.h"

#include <algorithm>
#include <cmath>

#include "simulator/program/time_alone.h"
#include "support/check.h"

namespace orrery::simulator {
namespace astra_networks_cc {
namespace {

constexpr int64_t kPicosecondsPerNanosecond = 1000;
constexpr double kMostNanoseconds = 4e15;  // below kEndOfTime

double Nanoseconds(Duration duration) {
  return static_cast<double>(duration.picoseconds()) / kPicosecondsPerNanosecond;
}

Duration WholeNanoseconds(double nanoseconds) {
  if (!(nanoseconds < kMostNanoseconds)) return kEndOfTime;
  return Duration(static_cast<int64_t>(nanoseconds) * kPicosecondsPerNanosecond);
}

// In the order of operations of ASTRA-sim, so that what is dropped below a nanosecond is the same.
double Serialization(Bytes size, double load, Bandwidth capacity) {
  const double bytes_per_nanosecond = static_cast<double>(capacity.bytes_per_second()) / 1e9;
  return static_cast<double>(size.count()) * load / bytes_per_nanosecond;
}

Duration Unaware(const Flow& flow, const Program& program) {
  double longest = Serialization(flow.size, 1, flow.rate);
  for (const Load& load : flow.loads) {
    const Bandwidth capacity = program.resource(load.resource).capacity;
    longest = std::max(longest, Serialization(flow.size, load.load, capacity));
  }
  return WholeNanoseconds(Nanoseconds(flow.latency) + longest);
}

}  // namespace
}  // namespace astra_networks_cc

void AstraUnaware::Start(TaskId message, const Flow& flow) {
  ORRERY_CHECK(flow.legs.empty()) << "ASTRA-sim has no chains";
  arrivals_.Push(Later(now_, astra_networks_cc::Unaware(flow, program_)), message);
}

std::optional<Time> AstraUnaware::NextCompletion(Time now) {
  ORRERY_CHECK(now == now_) << "asked at " << now << ", is at " << now_;
  if (arrivals_.empty()) return std::nullopt;
  return arrivals_.top().time;
}

std::span<const TaskId> AstraUnaware::Advance(Time to) {
  ORRERY_CHECK(to >= now_) << "from " << now_ << " back to " << to;
  now_ = to;
  arrived_.clear();
  for (; !arrivals_.empty() && arrivals_.top().time <= to; arrivals_.Pop()) {
    arrived_.push_back(arrivals_.top().task);
  }
  return arrived_;
}

AstraAware::AstraAware(const Program& program)
    : program_(program), free_at_(static_cast<size_t>(program.resource_count())) {}

void AstraAware::Start(TaskId message, const Flow& flow) {
  ORRERY_CHECK(flow.legs.empty()) << "ASTRA-sim has no chains";
  if (free_rows_.empty()) {
    free_rows_.push_back(messages_.size());
    messages_.emplace_back();
  }
  const size_t row = free_rows_.back();
  free_rows_.pop_back();
  messages_[row] = {.task = message, .flow = flow, .sequence = started_++};
  Cross(row, now_);
}

// Queues for the next link of the route. Whoever comes first is served first, so the queue is the
// moment at which the link is free.
void AstraAware::Cross(size_t row, Time now) {
  const Flow& flow = messages_[row].flow;
  Time reaches;
  if (flow.loads.empty()) {
    reaches = Later(now, astra_networks_cc::Unaware(flow, program_));
  } else {
    const Load& load = flow.loads[messages_[row].crossed++];
    const Resource& link = program_.resource(load.resource);
    const double serialization =
        astra_networks_cc::Serialization(flow.size, load.load, link.capacity);
    Time& free_at = free_at_[static_cast<size_t>(load.resource.index())];
    const Time begin = std::max(now, free_at);
    free_at = Later(begin, astra_networks_cc::WholeNanoseconds(serialization));
    reaches = Later(begin, astra_networks_cc::WholeNanoseconds(
                               astra_networks_cc::Nanoseconds(link.latency) + serialization));
  }
  reaches_.Push(reaches, TaskId(static_cast<int32_t>(row)));
}

std::optional<Time> AstraAware::NextCompletion(Time now) {
  ORRERY_CHECK(now == now_) << "asked at " << now << ", is at " << now_;
  if (reaches_.empty()) return std::nullopt;
  return reaches_.top().time;
}

std::span<const TaskId> AstraAware::Advance(Time to) {
  ORRERY_CHECK(to >= now_) << "from " << now_ << " back to " << to;
  now_ = to;
  ended_.clear();
  while (!reaches_.empty() && reaches_.top().time <= to) {
    const Time time = reaches_.top().time;
    const size_t row = static_cast<size_t>(reaches_.top().task.index());
    reaches_.Pop();
    if (messages_[row].crossed < messages_[row].flow.loads.size() && time < kEndOfTime) {
      Cross(row, time);
      continue;
    }
    ended_.push_back(messages_[row]);
    free_rows_.push_back(row);
  }
  std::sort(ended_.begin(), ended_.end(),
            [](const Message& a, const Message& b) { return a.sequence < b.sequence; });
  arrived_.clear();
  for (const Message& message : ended_) arrived_.push_back(message.task);
  return arrived_;
}

}  // namespace orrery::simulator
