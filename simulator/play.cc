#include "simulator/play.h"

#include "simulator/event_queue.h"
#include "simulator/fluid_network.h"
#include "simulator/longest_path.h"

namespace orrery::simulator {

bool NeedsEvents(const Program& program) { return program.has_flows(); }

absl::StatusOr<Trace> Play(const Program& program, LinkUse* use) {
  if (!NeedsEvents(program)) return RunLongestPath(program);
  FluidNetwork network(program, use);
  return RunEvents(program, network);
}

}  // namespace orrery::simulator
