#ifndef ORRERY_SIMULATOR_TRACES_ARROWS_H_
#define ORRERY_SIMULATOR_TRACES_ARROWS_H_

#include "simulator/traces/event_text.h"
#include "simulator/traces/rank_events.h"

namespace orrery::simulator {

/// Writes an arrow for each message, from who sends to who receives; and for each collective from
/// the rank that came last, for which the others waited, to these. Only where both are shown; of
/// ranks that are simulated as one, between those of the same place among them, and of collectives
/// between those of one group.
void WriteRendezvous(const TraceParts& parts, EventText& out);

/// Writes an arrow from each task of the critical path to the next: "critical_path".
void WriteCriticalPath(const TraceParts& parts, EventText& out);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_ARROWS_H_
