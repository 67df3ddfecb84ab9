#ifndef ORRERY_TOOLS_PARAMETER_SERVER_SERVER_REPORT_H_
#define ORRERY_TOOLS_PARAMETER_SERVER_SERVER_REPORT_H_

#include <ostream>
#include <string>

#include "tools/parameter_server/server_run.h"

namespace orrery::tools {

/// What came of a run, for people: a line a figure.
std::string ServerRunText(const ServerRun& run);
/// The same as JSON, for --json; docs/parameter_servers.md names its keys.
std::string ServerRunJson(const ServerRun& run);

/// Writes the steps that were traced in the Trace Event Format of chrome://tracing and
/// ui.perfetto.dev: a process a worker, with its kernels, pushes and pulls as threads, a thread a
/// connection; a process a server, with what it adds and updates, and for whom.
void WriteServerTrace(const ServerRun& run, std::ostream& out);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PARAMETER_SERVER_SERVER_REPORT_H_
