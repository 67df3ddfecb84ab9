#ifndef ORRERY_SIMULATOR_REPORT_ACTIVITY_H_
#define ORRERY_SIMULATOR_REPORT_ACTIVITY_H_

#include <cstdint>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/communication.h"
#include "support/id_table.h"
#include "support/units.h"

namespace orrery::simulator {

/// Sums over the tasks of one stream, of those that compute and those that communicate.
struct StreamSums {
  Duration computing;
  Duration communicating;
  uint32_t computing_tasks = 0;
  uint32_t communicating_tasks = 0;
  Time finish;              // of the last task
  bool has_parts = false;   // some of its tasks have communication inside (StretchPart)
  Duration exposed_inside;  // of that, when their kernels do not run
};

/// How long a rank was at work, each moment counted once however many streams run in it.
struct Activity {
  Duration computing;  // when a compute stream runs a compute task
  Duration active;     // when it does, or communication runs on any stream
};

/// The activity of each rank class during `trace`, given the sums of its streams, and how much of
/// each of its `shares` is exposed. Compute tasks on other streams (copies to the host) count as
/// neither. Linear in the tasks of the ranks on which streams overlap, and free on the others;
/// needs no sort, since streams run in order.
IdTable<RankClassId, Activity> ActivityOfRanks(const Program& program, const Trace& trace,
                                               const IdTable<StreamId, StreamSums>& sums,
                                               CommunicationShares& shares);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_ACTIVITY_H_
