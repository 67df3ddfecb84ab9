#ifndef ORRERY_SIMULATOR_REPORT_CRITICAL_PATH_H_
#define ORRERY_SIMULATOR_REPORT_CRITICAL_PATH_H_

#include <string>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/units.h"

// What the step waited for: from the task that finishes last back to the beginning, each time to
// what finished last of what a task waited for.

namespace orrery::simulator {

/// A task on the path.
struct PathTask {
  TaskId task;
  Duration waited;  // from the finish of the one before until it started; 0 where it just followed
};

/// By index of each task: what finished last of what it waited for, on its streams or elsewhere;
/// invalid where it waited for nothing. Of what finished at the same moment it is the one of a
/// stream before what is waited for besides, and then the earlier one.
std::vector<TaskId> LatestBefore(const Program& program, const Trace& trace);

/// The tasks of the critical path of `trace`, a run of `program`, in the order in which they ran.
/// Their times and what they waited add up to the makespan. Empty where there are no tasks.
std::vector<PathTask> CriticalPath(const Program& program, const Trace& trace);

/// What a task on the path is called in sums and pictures: "forward" and the like of kernels, of
/// communication its kind.
std::string PathKindOf(const TaskLabel& label);

/// What a path is made of.
struct PathPart {
  std::string kind;  // as PathKindOf has it; "waiting"
  Duration time;
};
/// The parts of the critical path, the longest first; they add up to the makespan.
std::vector<PathPart> PathPartsOf(const Program& program, const Trace& trace);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_CRITICAL_PATH_H_
