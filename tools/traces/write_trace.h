#ifndef ORRERY_TOOLS_TRACES_WRITE_TRACE_H_
#define ORRERY_TOOLS_TRACES_WRITE_TRACE_H_

#include "absl/status/status.h"
#include "search/runs/run.h"
#include "search/settings/setting.h"
#include "simulator/network/link_use.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "tools/traces/trace_flags.h"

namespace orrery::tools {

/// Writes what is asked for of a run: its Chrome trace, and what a rank holds. Files whose names
/// end in ".gz" are gzipped.
absl::Status WriteTrace(const TraceRequest& request, const search::Setting& setting,
                        const search::Run& run);
/// The same of any program, with what its links carried unless `use` is null.
absl::Status WriteTrace(const TraceRequest& request, const simulator::Program& program,
                        const simulator::Trace& trace, const simulator::LinkUse* use);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TRACES_WRITE_TRACE_H_
