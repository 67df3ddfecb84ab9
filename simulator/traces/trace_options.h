#ifndef ORRERY_SIMULATOR_TRACES_TRACE_OPTIONS_H_
#define ORRERY_SIMULATOR_TRACES_TRACE_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "simulator/network/link_use.h"
#include "support/units.h"

namespace orrery::simulator {

/// How closely a trace looks: at runs of tasks of one phase, microbatch and stage; at each task; or
/// at what each task puts on each link, too.
enum class TraceLevel : uint8_t { kStage, kOp, kFlow };

/// What a trace says of a rank that the program does not know.
struct TraceRank {
  std::string name = {};         // "dp0 hp1 pp1"; empty: as the program calls its class
  std::string place = {};        // "node0/gpu3"
  int32_t device = 0;            // its number in the node
  std::string device_name = {};  // "H100-80GB"
  Bytes memory = {};             // of the device; 0 where it is not known
};

/// What of a run is written, and how it is called.
struct TraceOptions {
  TraceLevel level = TraceLevel::kOp;
  std::vector<int32_t> ranks = {};         // global; empty: the first of each class
  std::vector<int32_t> microbatches = {};  // empty: all
  /// What the network recorded of the run; null: links are left out.
  const LinkUse* use = nullptr;
  int32_t batches = 1;  // steps of training that the run is
  /// Null: nothing more is known of ranks.
  std::function<TraceRank(int32_t rank)> describe = {};
  /// The ranks, ascending, of the communicator called `name` ("dp", "hp.cp") that `rank` is in;
  /// empty where there is no such communicator. Null: that is not known.
  std::function<std::vector<int32_t>(int32_t rank, absl::string_view name)> group = {};
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_TRACE_OPTIONS_H_
