#ifndef ORRERY_SIMULATOR_TESTING_RANDOM_PROGRAM_H_
#define ORRERY_SIMULATOR_TESTING_RANDOM_PROGRAM_H_

#include <cstdint>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"

// For tests only: programs to try properties on, and an engine too plain to be wrong.

namespace orrery::simulator {

/// What `RandomProgram` makes. Durations are small, so that ties are common; one in eight is 0.
struct RandomProgramOptions {
  uint32_t seed = 0;
  int32_t ranks = 3;
  int32_t tasks = 40;
  bool ordered = true;      // else dependencies may name later tasks; never in a cycle
  bool flows = false;       // else all tasks have a duration
  bool one_stream = false;  // a rank; else all kinds
  bool slow_down = false;   // all ranks but every fourth slow down while they communicate
};

/// A program that verifies: rendezvous of up to three streams, dependencies, memory events, several
/// streams a rank. The same options give the same program.
Program RandomProgram(const RandomProgramOptions& options);

/// Starts and finishes by relaxation until nothing changes, in O(n^3) and without any order, graph
/// or queue. Requires no flows.
Trace RunByRelaxation(const Program& program);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TESTING_RANDOM_PROGRAM_H_
