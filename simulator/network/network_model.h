#ifndef ORRERY_SIMULATOR_NETWORK_NETWORK_MODEL_H_
#define ORRERY_SIMULATOR_NETWORK_NETWORK_MODEL_H_

#include <optional>
#include <span>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/units.h"

namespace orrery::simulator {

/// How messages share the network. The event queue hands it messages, asks when something will
/// happen to them, and lets its time pass; in between, the model may do what it likes with their
/// rates. It asks only when time is about to pass, so that all starts of a moment are one change.
/// A model plays one run: its time starts at 0 and it holds no message.
class NetworkModel {
 public:
  virtual ~NetworkModel() = default;

  /// Puts a message on the network at the model's time. `message`, the task that sends it, is its
  /// name from here on; no two active messages have the same one. The loads of `flow` must stay
  /// where they are until it has arrived.
  virtual void Start(TaskId message, const Flow& flow) = 0;

  /// The first moment, not before `now`, at which a message arrives or leaves a link to others, if
  /// no other is started; nothing when none is active. `now` is the model's time.
  virtual std::optional<Time> NextCompletion(Time now) = 0;

  /// Lets time pass to `to`, which is not beyond `NextCompletion`. Returns the messages that have
  /// arrived by then, perhaps none, and drops them; those of one moment in the order in which they
  /// were started. The span is good until the next call.
  virtual std::span<const TaskId> Advance(Time to) = 0;

  /// What within chains took longer than it would have taken alone, as far as they have come, in
  /// any order. Good until the next call.
  virtual std::span<const LegDelay> delays() const { return {}; }
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_NETWORK_MODEL_H_
