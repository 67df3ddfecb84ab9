#ifndef ORRERY_SEARCH_PARAMETER_SERVER_WORKER_STEP_H_
#define ORRERY_SEARCH_PARAMETER_SERVER_WORKER_STEP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "search/runs/run.h"
#include "search/settings/setting.h"
#include "simulator/parameter_server/training.h"
#include "support/units.h"

namespace orrery::search {

/// The step of a worker of parameter servers: its kernels, parted where one needs a parameter for
/// the first time or completes a gradient, and its parameters in the order in which forward needs
/// them.
struct WorkerStep {
  std::vector<simulator::parameter_server::Segment> segments;
  std::vector<simulator::parameter_server::Key> keys;
  Duration time;  // of all kernels
  Bytes memory;   // that it holds at most: no state of the optimizer, which is at the servers
  bool fits = true;
};

/// That of a run of one rank, whose kernels are each a task (Setting::lowering.every_link): what it
/// takes, with gaps between its kernels and what the host does once a step, but for the update.
/// FailedPrecondition where nothing is updated.
absl::StatusOr<WorkerStep> WorkerStepOf(const Setting& setting, const Run& run);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_PARAMETER_SERVER_WORKER_STEP_H_
