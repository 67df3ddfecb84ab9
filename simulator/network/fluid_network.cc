#include "simulator/network/fluid_network.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simulator/program/time_alone.h"
#include "support/check.h"

namespace orrery::simulator {
namespace fluid_network_cc {
namespace {

constexpr int64_t kPicosecondsPerSecond = 1'000'000'000'000;
constexpr int kPicosecondBits = 40;  // of that number
constexpr int kWorkBits = 120;       // what is left to send never needs more

// The power of 2 that splits bytes so finely that the size, in byte picoseconds a second, still
// fits kWorkBits, and so does a rate.
double ScaleOf(Bytes size, double rate) {
  const int size_bits =
      static_cast<int>(std::bit_width(static_cast<uint64_t>(size.count()))) + kPicosecondBits;
  const int rate_bits = std::ilogb(rate) + 1;
  return std::ldexp(1.0, kWorkBits - std::max(size_bits, rate_bits));
}

Time Later(Time time, Duration duration) {
  return std::min(kEndOfTime, time + std::min(duration, kEndOfTime));
}

}  // namespace
}  // namespace fluid_network_cc

FluidNetwork::FluidNetwork(const Program& program, LinkUse* use)
    : program_(program), use_(use), rates_(program) {}

void FluidNetwork::Start(TaskId message, const Flow& flow) {
  const uint32_t sequence = started_++;
  if (flow.size == Bytes(0) || flow.loads.empty()) {
    arrivals_.Push({fluid_network_cc::Later(now_, TimeAlone(flow)), sequence, message});
    return;
  }
  const FairRates::Slot slot = rates_.Add(flow.rate, flow.loads);
  const size_t row = static_cast<size_t>(slot);
  if (row >= sending_.size()) sending_.resize(row + 1);
  const double scale = fluid_network_cc::ScaleOf(flow.size, rates_.rate_alone(slot));
  const Wide size = static_cast<Wide>(flow.size.count()) *
                    static_cast<Wide>(fluid_network_cc::kPicosecondsPerSecond);
  sending_[row] = {.flow = flow,
                   .start = now_,
                   .since = now_,
                   .left = size * static_cast<Wide>(scale),
                   .scale = scale,
                   .message = message,
                   .sequence = sequence};
  if (use_ != nullptr) use_->AddBytes(flow);
}

std::optional<Time> FluidNetwork::NextCompletion(Time now) {
  ORRERY_CHECK(now == now_) << "asked at " << now << ", is at " << now_;
  if (rates_.stale()) Solve();
  if (last_bytes_.empty() && arrivals_.empty()) return std::nullopt;
  if (arrivals_.empty()) return last_bytes_.top().time;
  if (last_bytes_.empty()) return arrivals_.top().time;
  return std::min(last_bytes_.top().time, arrivals_.top().time);
}

std::span<const TaskId> FluidNetwork::Advance(Time to) {
  ORRERY_CHECK(to >= now_) << "from " << now_ << " back to " << to;
  if (rates_.stale()) Solve();
  now_ = to;
  while (!last_bytes_.empty() && last_bytes_.top().time <= to) {
    ORRERY_DCHECK(last_bytes_.top().time == to) << "beyond the next completion";
    const FairRates::Slot slot = last_bytes_.top().slot;
    const Sending& sent = sending_[static_cast<size_t>(slot)];
    arrivals_.Push({fluid_network_cc::Later(to, sent.flow.latency), sent.sequence, sent.message});
    rates_.Remove(slot);
    last_bytes_.Pop();
  }
  arrived_.clear();
  while (!arrivals_.empty() && arrivals_.top().time <= to) {
    arrived_.push_back(arrivals_.top().task);
    arrivals_.Pop();
  }
  // With nothing under way nobody asks again, and the links would seem to carry on.
  const bool idle = last_bytes_.empty() && arrivals_.empty();
  if (use_ != nullptr && idle && rates_.stale()) Solve();
  return arrived_;
}

void FluidNetwork::Solve() {
  moved_.clear();
  for (const FairRates::Slot slot : rates_.Solve()) {
    const double rate = rates_.rate(slot);
    // To the bit: the same rate leaves the last byte where it is.
    if (rate != sending_[static_cast<size_t>(slot)].rate) SetRate(slot, rate);
  }
  last_bytes_.Set(moved_);
  if (use_ != nullptr) RecordUse();
}

void FluidNetwork::SetRate(FairRates::Slot slot, double rate) {
  Sending& sending = sending_[static_cast<size_t>(slot)];
  const Wide sent = sending.speed * static_cast<Wide>((now_ - sending.since).picoseconds());
  sending.left = sending.left > sent ? sending.left - sent : 0;
  sending.since = now_;
  sending.rate = rate;
  sending.speed = std::max(static_cast<Wide>(rate * sending.scale), Wide{1});
  const bool alone = sending.start == now_ && rate == rates_.rate_alone(slot);
  const Duration left = alone ? SendTimeAlone(sending.flow, program_) : TimeLeft(sending);
  moved_.push_back({.time = fluid_network_cc::Later(now_, left), .slot = slot});
}

// left / speed, rounded up but for the slack.
Duration FluidNetwork::TimeLeft(const Sending& sending) {
  if (sending.left == divided_left_ && sending.speed == divided_speed_) return divided_;
  const Wide whole = sending.left / sending.speed;
  const Wide rest = sending.left - whole * sending.speed;
  const bool counts_as_whole = rest <= sending.speed / 1024;
  const Wide picoseconds = whole + (counts_as_whole ? 0 : 1);
  if (picoseconds >= static_cast<Wide>(kEndOfTime.picoseconds())) return kEndOfTime;
  const Duration left(static_cast<int64_t>(picoseconds));
  if (counts_as_whole) {
    // What was rounded down must not overtake the flow alone.
    const Time least =
        fluid_network_cc::Later(sending.start, SendTimeAlone(sending.flow, program_));
    return std::max(left, least - now_);
  }
  divided_left_ = sending.left;
  divided_speed_ = sending.speed;
  divided_ = left;
  return left;
}

void FluidNetwork::RecordUse() {
  for (const ResourceId id : rates_.solved()) use_->Set(id, now_, rates_.used(id));
}

}  // namespace orrery::simulator
