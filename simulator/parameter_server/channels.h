#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_CHANNELS_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_CHANNELS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/network/fair_rates.h"
#include "simulator/network/slot_heap.h"
#include "simulator/parameter_server/training.h"
#include "simulator/program/program.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// What goes from a worker to a server, or back, or between workers of one host.
struct Message {
  /// A gradient to a server, a parameter from it; a gradient to the worker that pushes it for its
  /// host, a parameter from the one that pulled it.
  enum class Way : uint8_t { kPush, kPull, kAddUp, kSpread };
  int32_t priority = 0;   // the least first
  uint32_t sequence = 0;  // then the first
  int32_t worker = 0;     // whose gradient it is; who gets the parameter
  int32_t part = 0;
  int32_t step = 0;
  Way way = Way::kPush;
  Bytes size = {};
  Time start = {};  // when its first byte was sent
};

/// Connections that share links max-min fairly (simulator/network/fair_rates.h). Each sends one
/// message at a time, whole, the next being the first in the order of its priority: so rates are
/// found again when a connection falls idle or wakes up, and not with each message. One of a larger
/// weight gets so many times as much where a link is full.
///
/// Bytes are counted in doubles; the last byte of a message goes at a whole picosecond, rounded up.
class Channels {
 public:
  /// One for each route; both must outlive this and stay as they are. `weights` by route; empty:
  /// all are 1.
  Channels(const Program& network, const std::vector<const Route*>& routes,
           const std::vector<double>& weights = {});

  /// Queues a message at `now`, the time of the last Advance or 0.
  void Send(int32_t channel, Message message, Time now);
  /// The first moment at which a message has been sent, as far as is known now; none: all are idle.
  std::optional<Time> Next(Time now);
  /// What was sent by `now`, which is not behind Next: each with its channel, in the order of the
  /// channels. Appends to `sent`.
  void Advance(Time now, std::vector<std::pair<int32_t, Message>>& sent);

  /// Bytes that each link has carried by `now` since the last Forget.
  std::vector<double> Carried(Time now) const;
  void Forget(Time now);
  /// Of each link, the share of what it could have carried in so many seconds since then.
  std::vector<double> Use(Time now, double seconds) const;

 private:
  struct Channel {
    const Route* route = nullptr;
    double weight = 1;
    std::vector<Load> weighted = {};  // loads of a byte times the weight, where that is not 1
    std::vector<Message> queue = {};  // a heap
    std::optional<Message> head = {};
    FairRates::Slot slot = -1;  // -1: not in rates_
    double left = 0;            // bytes of the head, at `since`
    double rate = 0;            // bytes a second
    Time since = {};
  };

  void Begin(Channel& channel, Time now);
  void Solve(Time now);
  Time FinishOf(const Channel& channel) const;

  const Program& network_;
  FairRates rates_;
  std::vector<Channel> channels_;
  std::vector<int32_t> of_slot_;  // channel by slot of rates_
  SlotHeap finishes_;             // by channel
  std::vector<double> carried_;   // by link, of messages that were sent whole
  std::vector<SlotHeap::Entry> moved_;
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_CHANNELS_H_
