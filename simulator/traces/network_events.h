#ifndef ORRERY_SIMULATOR_TRACES_NETWORK_EVENTS_H_
#define ORRERY_SIMULATOR_TRACES_NETWORK_EVENTS_H_

#include "simulator/traces/event_text.h"
#include "simulator/traces/rank_events.h"

namespace orrery::simulator {

/// Writes the process "network", after all ranks: what each link that was used carried over time
/// (TraceOptions::use), as counters in GB/s; and at TraceLevel::kFlow a thread a link with what of
/// shown ranks is on it when: as many threads as are on it at once.
void WriteNetwork(const TraceParts& parts, EventText& out);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_NETWORK_EVENTS_H_
