#ifndef ORRERY_SIMULATOR_ENGINE_EVENT_QUEUE_H_
#define ORRERY_SIMULATOR_ENGINE_EVENT_QUEUE_H_

#include "absl/status/statusor.h"
#include "simulator/network/network_model.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"

namespace orrery::simulator {

/// Plays `program` event by event: tasks start as streams and dependencies set them free, and
/// `network`, which must be fresh, times the flows. The outcome depends on nothing but the two;
/// where nothing `NeedsEvents` (play.h), it is that of `RunLongestPath`, picosecond for picosecond.
///
/// A task that occupies several streams waits in all of them until it is at the head of each. When
/// time comes to a moment, flows that arrive then finish before the tasks that do, those in the
/// order in which they started; what starts at that moment and takes no time comes after them.
///
/// What computes on a rank with a slow-down takes longer while communication runs there: its
/// finish moves as that begins and ends (simulator/engine/slow_down.h).
///
/// Whatever the program, the run ends. A deadlock is an error that names the tasks that wait for
/// each other and on what; so are ids out of range and resources and flows without bandwidth. A run
/// that goes on for more than 53 days is OutOfRange.
absl::StatusOr<Trace> RunEvents(const Program& program, NetworkModel& network);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_ENGINE_EVENT_QUEUE_H_
