#ifndef ORRERY_TOOLS_TRACES_TRACE_FLAGS_H_
#define ORRERY_TOOLS_TRACES_TRACE_FLAGS_H_

#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/traces/trace_options.h"

namespace orrery::tools {

/// The flags that say what is written of a run, as they were given.
struct TraceFlags {
  std::string path = {};
  std::string level = "op";
  std::string ranks = {};
  std::string microbatches = {};
  std::string snapshot = {};

  /// Whether there is anything to write.
  bool any() const { return !path.empty() || !snapshot.empty(); }
};

/// Adds them to `options`, bound to `flags`; of `what` is the trace: "the run's".
void AddTraceFlags(boost::program_options::options_description& options, TraceFlags& flags,
                   const std::string& what);

/// What they ask for.
struct TraceRequest {
  std::string path = {};      // empty: no trace. With {rank}: a file for each
  std::string snapshot = {};  // empty: none
  bool all_ranks = false;
  std::vector<int32_t> ranks = {};         // empty, unless all: the first of each class
  std::vector<int32_t> microbatches = {};  // empty: all
  simulator::TraceLevel level = simulator::TraceLevel::kOp;

  bool any() const { return !path.empty() || !snapshot.empty(); }
};

/// Reads the flags of a run of `ranks` ranks. An error where one says nothing, names a rank that is
/// not there, or has nothing to say something about.
absl::StatusOr<TraceRequest> ReadTraceFlags(const TraceFlags& flags, int64_t ranks);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TRACES_TRACE_FLAGS_H_
