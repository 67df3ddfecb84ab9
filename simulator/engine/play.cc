#include "simulator/engine/play.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "simulator/engine/event_queue.h"
#include "simulator/engine/longest_path.h"
#include "simulator/engine/slow_down.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/time_alone.h"

namespace orrery::simulator {

bool NeedsEvents(const Program& program) { return program.has_flows() || HasSlowDown(program); }

absl::StatusOr<Trace> Play(const Program& program, LinkUse* use) {
  if (NeedsEvents(program)) {
    FluidNetwork network(program, use);
    return RunEvents(program, network);
  }
  Trace trace = RunLongestPath(program);
  if (trace.makespan < kEndOfTime) return trace;
  return absl::OutOfRangeError(
      absl::StrCat("simulation: the run goes on beyond ", ToString(kEndOfTime),
                   ", wanted one that ends before; try checking the durations"));
}

}  // namespace orrery::simulator
