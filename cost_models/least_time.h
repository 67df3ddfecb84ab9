#ifndef ORRERY_COST_MODELS_LEAST_TIME_H_
#define ORRERY_COST_MODELS_LEAST_TIME_H_

#include "cluster/device.h"
#include "cost_models/cost_model.h"
#include "cost_models/kernels/least_kernel.h"

// What ops take at least, however they are parted: so a search can tell from below how long a step
// takes without knowing how it is sharded.

namespace orrery::cost_models {

/// What a cost model is, too, that knows how fast it can be at most. Models of measurements, which
/// may beat all that was foreseen, are not.
class LeastTimes {
 public:
  virtual ~LeastTimes() = default;

  /// The promise: `Compute` of the op on `device` is no less than that; and where the op is parted
  /// into shares, by samples, or along factors of its sharding rule, Compute of all of them
  /// together is no less than the seconds of its kernels, and the starts as often as there are
  /// shares. It does not hold of attention whose queries or keys are parted: masks are cheaper on
  /// shares. Requires a kernel, as Compute does.
  virtual LeastTime LeastOf(const OpView& op, const cluster::Device& device) const = 0;
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_LEAST_TIME_H_
