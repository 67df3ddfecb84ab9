#include "simulator/network/flow_chains.h"

#include <algorithm>
#include <utility>

#include "simulator/program/time_alone.h"
#include "support/check.h"

namespace orrery::simulator {
namespace flow_chains_cc {
namespace {

constexpr int32_t kNoChain = -1;

// Whether the flow is ever on a link.
bool Loads(const Flow& flow) { return flow.size > Bytes(0) && !flow.loads.empty(); }

size_t RowOf(const Load& load) { return static_cast<size_t>(load.resource.index()); }

}  // namespace
}  // namespace flow_chains_cc

FlowChains::FlowChains(const Program& program, bool shuts) : program_(program), shuts_(shuts) {
  for (int32_t i = 0; i < program.flow_count() && !any_; ++i) {
    any_ = !program.flow(FlowId(i)).legs.empty();
  }
  if (!any_) return;
  users_.assign(static_cast<size_t>(program.resource_count()), 0);
  shut_on_.assign(users_.size(), flow_chains_cc::kNoChain);
}

size_t FlowChains::TimesOf(const Flow& chain) {
  const auto [known, is_new] = known_.try_emplace(chain.legs.data(), times_.size());
  if (!is_new) return known->second;
  std::vector<Times>& times = times_.emplace_back();
  Duration at;
  for (const Leg& leg : chain.legs) {
    const Duration send = Later(at, leg.before);
    Times of = {.begin = at, .send = send, .sent = send, .end = send};
    if (leg.flow.valid()) {
      const Flow flow = program_.flow(leg.flow);
      of.end = Later(send, std::max(TimeAlone(flow, program_), leg.beside));
      if (flow_chains_cc::Loads(flow)) {
        of.sent = Later(send, SendTimeAlone(flow, program_));
      }
    }
    at = of.end;
    times.push_back(of);
  }
  times.push_back({.begin = at, .send = at, .sent = at, .end = at});
  return known->second;
}

void FlowChains::Begin(TaskId message, uint32_t sequence, const Flow& chain, Time now) {
  if (free_.empty()) {
    free_.push_back(static_cast<int32_t>(chains_.size()));
    chains_.emplace_back();
  }
  const int32_t c = free_.back();
  free_.pop_back();
  At(c) = {.message = message,
           .sequence = sequence,
           .legs = chain.legs,
           .loads = chain.loads,
           .times = TimesOf(chain),
           .state = State::kWaiting};
  BeginLeg(c, now);
}

void FlowChains::SetEvent(int32_t c, Time time) {
  const SlotHeap::Entry entry = {.time = time, .slot = c};
  events_.Set(std::span(&entry, 1));
}

// Where nobody loads what it will, and no other chain is shut there.
bool FlowChains::TryShut(int32_t c) {
  const Chain& chain = At(c);
  if (!shuts_) return false;
  for (const Load& load : chain.loads) {
    const size_t row = flow_chains_cc::RowOf(load);
    if (users_[row] > 0 || shut_on_[row] != flow_chains_cc::kNoChain) return false;
  }
  for (const Load& load : chain.loads) shut_on_[flow_chains_cc::RowOf(load)] = c;
  return true;
}

void FlowChains::Release(const Chain& chain) {
  for (const Load& load : chain.loads) {
    shut_on_[flow_chains_cc::RowOf(load)] = flow_chains_cc::kNoChain;
  }
}

void FlowChains::BeginLeg(int32_t c, Time now) {
  Chain& chain = At(c);
  chain.since = now;
  if (chain.leg < chain.legs.size() && TryShut(c)) {
    chain.state = State::kShut;
    const Duration rest = TimesOf(chain, chain.legs.size()).begin - TimesOf(chain, chain.leg).begin;
    return SetEvent(c, Later(now, rest));
  }
  chain.state = State::kWaiting;
  const Duration wait = chain.leg < chain.legs.size() ? chain.legs[chain.leg].before : Duration();
  SetEvent(c, Later(now, wait));
}

// Its flow began so long ago.
void FlowChains::Send(int32_t c, Duration ago) {
  Chain& chain = At(c);
  const Leg& leg = chain.legs[chain.leg];
  if (!flow_chains_cc::Loads(program_.flow(leg.flow))) {
    const Times& times = TimesOf(chain, chain.leg);
    ORRERY_DCHECK(ago == Duration()) << "it loads nothing";
    chain.state = State::kEnding;
    return SetEvent(c, Later(chain.since, times.end - times.begin));
  }
  chain.state = State::kSending;
  SetEvent(c, kEndOfTime);
  to_send_.push_back({.chain = c, .flow = leg.flow, .ago = ago});
}

// Where it is by now: what has begun a leg at this moment is in it.
void FlowChains::Open(int32_t c, Time now) {
  Chain& chain = At(c);
  Release(chain);
  const std::vector<Times>& times = times_[chain.times];
  const Duration at = times[chain.leg].begin + (now - chain.since);
  const auto behind =
      std::upper_bound(times.begin() + static_cast<ptrdiff_t>(chain.leg), times.end(), at,
                       [](Duration moment, const Times& leg) { return moment < leg.begin; });
  chain.leg = static_cast<size_t>(behind - times.begin()) - 1;
  const Times& leg = times[chain.leg];
  const Duration inside = at - leg.begin;
  chain.since = now - inside;
  const auto event = [&](Duration after) { SetEvent(c, Later(chain.since, after)); };
  if (chain.leg == chain.legs.size() || at < leg.send) {
    chain.state = State::kWaiting;
    event(leg.send - leg.begin);
  } else if (at < leg.sent) {
    Send(c, at - leg.send);
  } else {
    chain.state = State::kEnding;
    event(leg.end - leg.begin);
  }
}

void FlowChains::Occupy(std::span<const Load> loads, Time now) {
  for (const Load& load : loads) {
    const size_t row = flow_chains_cc::RowOf(load);
    ++users_[row];
    if (shut_on_[row] != flow_chains_cc::kNoChain) Open(shut_on_[row], now);
  }
}

void FlowChains::Leave(std::span<const Load> loads) {
  for (const Load& load : loads) --users_[flow_chains_cc::RowOf(load)];
}

void FlowChains::Sent(int32_t c, Time arrival, Duration late) {
  Chain& chain = At(c);
  if (late > Duration()) {
    delays_.push_back(
        {.task = chain.message, .leg = static_cast<int32_t>(chain.leg), .time = late});
  }
  chain.state = State::kEnding;
  const Leg& leg = chain.legs[chain.leg];
  const Time beside = Later(Later(chain.since, leg.before), leg.beside);
  SetEvent(c, std::max(arrival, beside));
}

void FlowChains::End(int32_t c) {
  Chain& chain = At(c);
  ended_.push_back({.message = chain.message, .sequence = chain.sequence});
  chain.state = State::kFree;
  free_.push_back(c);
}

void FlowChains::Advance(Time now) {
  while (!events_.empty() && events_.top().time <= now) {
    const int32_t c = events_.top().slot;
    Chain& chain = At(c);
    const bool goes_on = chain.leg < chain.legs.size();
    if (chain.state == State::kSending) return;  // never: time has ended
    if (chain.state == State::kShut) {
      Release(chain);
      events_.Pop();
      End(c);
    } else if (chain.state == State::kEnding) {
      ++chain.leg;
      BeginLeg(c, now);
    } else if (goes_on && chain.legs[chain.leg].flow.valid()) {
      Send(c, Duration());
    } else {
      events_.Pop();
      End(c);
    }
  }
}

}  // namespace orrery::simulator
