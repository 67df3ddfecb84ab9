#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_WORKER_STATE_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_WORKER_STATE_H_

#include <cstddef>
#include <cstdint>

#include "simulator/parameter_server/meters.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// A worker on its way through a step.
struct WorkerState {
  int32_t step = 0;
  size_t segment = 0;  // that runs, or is next
  size_t checked = 0;  // needs of that segment that are there
  bool computes = false;
  bool held = false;    // was held up by the bound
  bool asks = true;     // has not been told yet what it waits for: its gradients are under way
  size_t arrived = 0;   // gradients of the step that are at servers
  size_t readable = 0;  // parts of the next step that it might read
  Time last = {};       // when its last kernels ended
  Time waits_since = {};
};

/// What a worker has of a part.
struct Copy {
  int32_t step = 0;     // for which it is
  int32_t added = 0;    // gradients of its host that the one who pushes it has
  int64_t version = 0;  // updates in it
  Stages stages = {};
};

/// A worker that waits for a part.
struct Reader {
  int32_t worker = 0;
  int32_t step = 0;
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_WORKER_STATE_H_
