#ifndef ORRERY_SIMULATOR_TRACES_CHROME_TRACE_H_
#define ORRERY_SIMULATOR_TRACES_CHROME_TRACE_H_

#include <ostream>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/traces/trace_options.h"

namespace orrery::simulator {

/// Writes `trace`, a run of `program`, which must verify, in the Trace Event Format that
/// chrome://tracing and ui.perfetto.dev load, with the names of Kineto, for Holistic Trace Analysis
/// (docs/traces.md): a process a rank, a thread a stream, a slice for each task on each of its
/// streams, or for runs of them (TraceOptions::level); steps and bubbles as slices; memory by kind,
/// microbatches in flight and what links carry as counters; arrows of messages, collectives, from
/// phase to phase, and along the critical path. Times are in microseconds to the picosecond. Slices
/// of one thread come in time order, and the same run gives the same bytes.
///
/// The ranks that `options` name must be members of classes. What is written is not held: beside
/// the run it takes 12 bytes for each task and stream, 4 for each change of memory, and what the
/// largest rank has; at TraceLevel::kFlow 16 for each task on each link.
void WriteChromeTrace(const Program& program, const Trace& trace, std::ostream& out,
                      const TraceOptions& options = {});

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_CHROME_TRACE_H_
