#ifndef ORRERY_TOOLS_PLAY_PROGRAM_H_
#define ORRERY_TOOLS_PLAY_PROGRAM_H_

#include <string>

#include "absl/status/status.h"
#include "tools/traces/trace_flags.h"

namespace orrery::tools {

/// What to play, and where to write what came of it; empty: nowhere.
struct ProgramFlags {
  std::string program;
  std::string cluster;
  std::string json;
  TraceFlags trace;
};

/// Plays a file of programs of ranks (docs/programs.md) on a cluster, or a Program in the text form
/// of simulator/program/program_text.h, which needs none, and prints the report.
absl::Status PlayProgramFile(const ProgramFlags& flags);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLAY_PROGRAM_H_
