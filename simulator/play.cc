#include "simulator/play.h"

#include "simulator/event_queue.h"
#include "simulator/fluid_network.h"
#include "simulator/longest_path.h"
#include "simulator/slow_down.h"

namespace orrery::simulator {

bool NeedsEvents(const Program& program) { return program.has_flows() || HasSlowDown(program); }

absl::StatusOr<Trace> Play(const Program& program, LinkUse* use) {
  if (!NeedsEvents(program)) return RunLongestPath(program);
  FluidNetwork network(program, use);
  return RunEvents(program, network);
}

}  // namespace orrery::simulator
