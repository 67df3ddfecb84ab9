#ifndef ORRERY_SIMULATOR_ACTIVITY_H_
#define ORRERY_SIMULATOR_ACTIVITY_H_

#include "simulator/program.h"
#include "simulator/trace.h"
#include "support/id_table.h"
#include "support/units.h"

namespace orrery::simulator {

/// How long a rank was at work, each moment counted once however many streams run in it.
struct Activity {
  Duration computing;  // when a compute stream runs a compute task
  Duration active;     // when it does, or communication runs on any stream
};

/// The activity of each rank class during `trace`. Compute tasks on other streams (copies to the
/// host) count as neither. Linear in the tasks; needs no sort, since streams run in order.
IdTable<RankClassId, Activity> ActivityOfRanks(const Program& program, const Trace& trace);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_ACTIVITY_H_
