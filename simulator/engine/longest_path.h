#ifndef ORRERY_SIMULATOR_ENGINE_LONGEST_PATH_H_
#define ORRERY_SIMULATOR_ENGINE_LONGEST_PATH_H_

#include "simulator/program/program.h"
#include "simulator/program/trace.h"

namespace orrery::simulator {

/// Plays `program` in one sweep: with fixed stream orders and nothing shared, a task starts at the
/// longest path to it, max(finish of what it waits for). No event queue is needed, and the outcome
/// is the same picosecond for picosecond. Requires that no task has a flow and no rank slows down
/// (`NeedsEvents` of play.h tells both), and that the program verifies; a program that is not
/// `ordered` is sorted first, at a tenth of the speed.
Trace RunLongestPath(const Program& program);

/// As above, into the memory of `trace`, for callers that play many programs.
void RunLongestPath(const Program& program, Trace& trace);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_ENGINE_LONGEST_PATH_H_
