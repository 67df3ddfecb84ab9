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

}  // namespace
}  // namespace fluid_network_cc

// Who looks at links is shown each flow.
FluidNetwork::FluidNetwork(const Program& program, LinkUse* use)
    : program_(program), use_(use), rates_(program), chains_(program, use == nullptr) {}

void FluidNetwork::Start(TaskId message, const Flow& flow) {
  const uint32_t sequence = started_++;
  if (!flow.legs.empty()) {
    chains_.Begin(message, sequence, flow, now_);
    SendOfChains();
  } else if (flow.size == Bytes(0) || flow.loads.empty()) {
    arrivals_.Push({Later(now_, TimeAlone(flow)), sequence, message});
  } else {
    Send({.flow = flow, .start = now_, .message = message, .sequence = sequence});
    SendOfChains();  // that were in its way
  }
}

// A flow that began before now had its links to itself until now.
void FluidNetwork::Send(const Sending& sending) {
  const Flow& flow = sending.flow;
  const FairRates::Slot slot = rates_.Add(flow.rate, flow.loads);
  const size_t row = static_cast<size_t>(slot);
  if (row >= sending_.size()) sending_.resize(row + 1);
  const double alone = rates_.rate_alone(slot);
  const double scale = fluid_network_cc::ScaleOf(flow.size, alone);
  const Wide size = static_cast<Wide>(flow.size.count()) *
                    static_cast<Wide>(fluid_network_cc::kPicosecondsPerSecond);
  sending_[row] = sending;
  sending_[row].since = sending.start;
  sending_[row].left = size * static_cast<Wide>(scale);
  sending_[row].scale = scale;
  if (sending.start < now_) {
    sending_[row].rate = alone;
    sending_[row].speed = SpeedOf(alone, scale);
    const Duration whole = SendTimeAlone(flow, program_);
    const SlotHeap::Entry last = {.time = Later(sending.start, whole), .slot = slot};
    last_bytes_.Set(std::span(&last, 1));
  }
  if (use_ != nullptr) use_->AddBytes(flow);
  if (chains_.any()) chains_.Occupy(flow.loads, now_);
}

// What they are to send, and what that makes others send.
void FluidNetwork::SendOfChains() {
  if (!chains_.any()) return;
  std::vector<FlowChains::Sending>& to_send = chains_.to_send();
  for (size_t i = 0; i < to_send.size(); ++i) {
    const FlowChains::Sending next = to_send[i];
    Send({.flow = program_.flow(next.flow), .start = now_ - next.ago, .chain = next.chain});
  }
  to_send.clear();
}

std::optional<Time> FluidNetwork::NextCompletion(Time now) {
  ORRERY_CHECK(now == now_) << "asked at " << now << ", is at " << now_;
  if (rates_.stale()) Solve();
  std::optional<Time> next;
  const auto take = [&](Time time) { next = std::min(next.value_or(time), time); };
  if (!last_bytes_.empty()) take(last_bytes_.top().time);
  if (!arrivals_.empty()) take(arrivals_.top().time);
  if (chains_.waits()) take(chains_.next());
  return next;
}

std::span<const TaskId> FluidNetwork::Advance(Time to) {
  ORRERY_CHECK(to >= now_) << "from " << now_ << " back to " << to;
  if (rates_.stale()) Solve();
  now_ = to;
  while (!last_bytes_.empty() && last_bytes_.top().time <= to) {
    ORRERY_DCHECK(last_bytes_.top().time == to) << "beyond the next completion";
    const FairRates::Slot slot = last_bytes_.top().slot;
    const Sending& sent = sending_[static_cast<size_t>(slot)];
    const Time arrival = Later(to, sent.flow.latency);
    rates_.Remove(slot);
    last_bytes_.Pop();
    if (chains_.any()) chains_.Leave(sent.flow.loads);
    if (sent.chain < 0) {
      arrivals_.Push({arrival, sent.sequence, sent.message});
    } else {
      chains_.Sent(sent.chain, arrival, to - sent.start - SendTimeAlone(sent.flow, program_));
    }
  }
  while (to < kEndOfTime && chains_.waits() && chains_.next() <= to) AdvanceChains();
  arrived_.clear();
  while (!arrivals_.empty() && arrivals_.top().time <= to) {
    arrived_.push_back(arrivals_.top().task);
    arrivals_.Pop();
  }
  // With nothing under way nobody asks again, and the links would seem to carry on.
  const bool idle = last_bytes_.empty() && arrivals_.empty() && !chains_.waits();
  if (use_ != nullptr && idle && rates_.stale()) Solve();
  return arrived_;
}

void FluidNetwork::AdvanceChains() {
  chains_.Advance(now_);
  for (const FlowChains::Ended& ended : chains_.ended()) {
    arrivals_.Push({now_, ended.sequence, ended.message});
  }
  chains_.ended().clear();
  SendOfChains();
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

FluidNetwork::Wide FluidNetwork::SpeedOf(double rate, double scale) {
  return std::max(static_cast<Wide>(rate * scale), Wide{1});
}

void FluidNetwork::SetRate(FairRates::Slot slot, double rate) {
  Sending& sending = sending_[static_cast<size_t>(slot)];
  const Wide sent = sending.speed * static_cast<Wide>((now_ - sending.since).picoseconds());
  sending.left = sending.left > sent ? sending.left - sent : 0;
  sending.since = now_;
  sending.rate = rate;
  sending.speed = SpeedOf(rate, sending.scale);
  const bool alone = sending.start == now_ && rate == rates_.rate_alone(slot);
  const Duration left = alone ? SendTimeAlone(sending.flow, program_) : TimeLeft(sending);
  moved_.push_back({.time = Later(now_, left), .slot = slot});
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
    const Time least = Later(sending.start, SendTimeAlone(sending.flow, program_));
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
