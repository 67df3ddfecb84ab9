#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_PLAY_TRAINING_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_PLAY_TRAINING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "simulator/parameter_server/outcome.h"
#include "simulator/parameter_server/training.h"

namespace orrery::simulator::parameter_server {

/// Plays a run, from event to event, on one thread.
///
/// A worker has all parameters when it begins. It runs its segments one after the other; what a
/// segment completes is pushed as soon as it ends. A server takes up one gradient after the other,
/// in the order of the policy: it adds it to those of the same update, or updates the parameters,
/// at the rate of its memory. A worker's wish for the next version of a part comes with its
/// gradient, so a parameter goes back as soon as the policy allows.
///
/// With backup workers, and without overlap, a worker asks for parameters once all its gradients
/// have arrived; one that is late with backup workers goes on with the step that others are at
/// (Chen et al., "Revisiting Distributed Synchronous SGD", 2016, and TensorFlow's
/// SyncReplicasOptimizer).
///
/// `traced`: steps of each worker, from the first on, whose spans are wanted. InvalidArgument as
/// Check (training.h) says; OutOfRange for a run that goes on beyond kLongestDuration.
absl::StatusOr<Outcome> Play(const Training& training, int32_t traced = 0);

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_PLAY_TRAINING_H_
