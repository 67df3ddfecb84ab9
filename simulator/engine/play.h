#ifndef ORRERY_SIMULATOR_ENGINE_PLAY_H_
#define ORRERY_SIMULATOR_ENGINE_PLAY_H_

#include "absl/status/statusor.h"
#include "simulator/network/link_use.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"

namespace orrery::simulator {

/// Which engine a program needs: whether it must be played event by event, as its flows share links
/// or communication slows down what computes. If not, its times are fixed, and the longest path is
/// the same, 10 to 30 times faster. Requires streams of ranks that there are.
bool NeedsEvents(const Program& program);

/// Plays a program that verifies by the fastest engine that is right: the longest path, or events
/// on the fluid network. `use`, when given, is told how much of each link is used when. Errors are
/// those of RunEvents: OutOfRange for a run that goes on beyond kEndOfTime.
absl::StatusOr<Trace> Play(const Program& program, LinkUse* use = nullptr);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_ENGINE_PLAY_H_
