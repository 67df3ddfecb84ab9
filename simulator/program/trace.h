#ifndef ORRERY_SIMULATOR_PROGRAM_TRACE_H_
#define ORRERY_SIMULATOR_PROGRAM_TRACE_H_

#include <cstdint>
#include <vector>

#include "simulator/program/program.h"
#include "support/units.h"

namespace orrery::simulator {

/// By how much a flow within a chain took longer than it would have taken alone.
struct LegDelay {
  TaskId task;
  int32_t leg = 0;  // of its chain
  Duration time;

  friend bool operator==(const LegDelay&, const LegDelay&) = default;
};

/// What ran when, since the step began: the outcome of a simulation, whichever engine played it.
struct Trace {
  std::vector<Time> start;            // by index of the task
  std::vector<Time> finish;           // by index of the task
  Time makespan;                      // when the last task finished; 0 when there is none
  std::vector<LegDelay> delays = {};  // in the order of tasks and legs; none is 0

  /// When a task started.
  Time start_of(TaskId task) const { return start[static_cast<size_t>(task.index())]; }
  /// When a task had finished.
  Time finish_of(TaskId task) const { return finish[static_cast<size_t>(task.index())]; }

  friend bool operator==(const Trace&, const Trace&) = default;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_TRACE_H_
