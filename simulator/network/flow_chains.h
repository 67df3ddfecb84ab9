#ifndef ORRERY_SIMULATOR_NETWORK_FLOW_CHAINS_H_
#define ORRERY_SIMULATOR_NETWORK_FLOW_CHAINS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "simulator/network/slot_heap.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/units.h"

namespace orrery::simulator {

/// How far chains of flows have come. A chain that has all that it loads to itself is *shut*: its
/// flows take what they take alone, so that its end is the one event that it has. As soon as
/// another flow loads any of that, it is opened where it is by then, goes on flow by flow, and is
/// shut again at the beginning of a leg when nothing is in its way. So times are those of its flows
/// played one by one, to the picosecond.
///
/// The network sends the flows: it drains `to_send` after each call. So many fields: arrays of
/// chains, and of resources.
class FlowChains {
 public:
  /// A flow of a chain that is to be sent: it began so long ago, alone.
  struct Sending {
    int32_t chain = 0;
    FlowId flow;
    Duration ago;
  };
  /// A message whose chain has ended.
  struct Ended {
    TaskId message;
    uint32_t sequence = 0;
  };

  /// `program`, which must verify, outlives this. `shuts`: whether chains are ever shut.
  FlowChains(const Program& program, bool shuts);

  /// Whether the program has chains: without, nothing else need be called.
  bool any() const { return any_; }
  /// Begins a chain.
  void Begin(TaskId message, uint32_t sequence, const Flow& chain, Time now);
  /// Another flow, of a chain or none, loads these.
  void Occupy(std::span<const Load> loads, Time now);
  /// One that did has stopped to.
  void Leave(std::span<const Load> loads);
  /// The flow that the chain sends has sent its last byte `late` after what it takes alone; it
  /// arrives at a moment not before now.
  void Sent(int32_t chain, Time arrival, Duration late);

  /// Whether an event is to come; and when the first of them does.
  bool waits() const { return !events_.empty(); }
  Time next() const { return events_.top().time; }
  /// Lets what happens until `now` happen.
  void Advance(Time now);

  /// What is to be sent, since it was cleared.
  std::vector<Sending>& to_send() { return to_send_; }
  /// What has ended, likewise.
  std::vector<Ended>& ended() { return ended_; }
  /// As NetworkModel::delays.
  std::span<const LegDelay> delays() const { return delays_; }

 private:
  // Of a leg, alone, since the chain began.
  struct Times {
    Duration begin, send, sent, end;
  };
  enum class State : uint8_t { kShut, kWaiting, kSending, kEnding, kFree };
  struct Chain {
    TaskId message;
    uint32_t sequence = 0;
    std::span<const Leg> legs;
    std::span<const Load> loads;
    size_t times = 0;  // in `times_`
    State state = State::kFree;
    size_t leg = 0;
    Time since = {};  // when that leg began, or the chain was shut at its beginning
  };

  size_t TimesOf(const Flow& chain);
  const Times& TimesOf(const Chain& chain, size_t leg) const { return times_[chain.times][leg]; }
  Chain& At(int32_t c) { return chains_[static_cast<size_t>(c)]; }
  bool TryShut(int32_t c);
  void Release(const Chain& chain);
  void Open(int32_t c, Time now);
  void BeginLeg(int32_t c, Time now);
  void Send(int32_t c, Duration ago);
  void End(int32_t c);
  void SetEvent(int32_t c, Time time);

  const Program& program_;
  const bool shuts_;
  bool any_ = false;
  absl::flat_hash_map<const Leg*, size_t> known_;  // by the first leg, its row of `times_`
  std::vector<std::vector<Times>> times_;          // of each leg, and of what comes behind the last
  std::vector<Chain> chains_;
  std::vector<int32_t> free_;     // of `chains_`
  SlotHeap events_;               // by chain; of one that is sending, never
  std::vector<int32_t> users_;    // by resource: flows that load it
  std::vector<int32_t> shut_on_;  // by resource: the chain that is shut on it, or none
  std::vector<Sending> to_send_;
  std::vector<Ended> ended_;
  std::vector<LegDelay> delays_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_FLOW_CHAINS_H_
