#ifndef ORRERY_SIMULATOR_REPORT_CHROME_TRACE_H_
#define ORRERY_SIMULATOR_REPORT_CHROME_TRACE_H_

#include <ostream>

#include "simulator/network/link_use.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"

namespace orrery::simulator {

/// Writes `trace`, a run of `program`, which must verify, in the Trace Event Format that
/// chrome://tracing and ui.perfetto.dev load: a process a rank class (named after its first rank),
/// a thread a stream, a slice for each stream that a task occupies, an arrow from the sender to the
/// receivers of a send (its first stream and the others), and what each rank holds in memory as
/// stacked counters. Times are in microseconds to the picosecond. Slices of one thread come in time
/// order, and the same run gives the same bytes.
///
/// With `use`, what the network recorded of the same run, there is a process more, "network", with
/// a counter in GB/s for each resource that was used.
void WriteChromeTrace(const Program& program, const Trace& trace, std::ostream& out,
                      const LinkUse* use = nullptr);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_CHROME_TRACE_H_
