#ifndef ORRERY_SEARCH_BOUNDS_LEAST_MEMORY_H_
#define ORRERY_SEARCH_BOUNDS_LEAST_MEMORY_H_

#include <map>
#include <mutex>

#include "search/settings/setting.h"
#include "support/units.h"

// What no way to carry out a plan can do without, by a sum over the model: no step is made for it.

namespace orrery::search {

/// Bytes of all parameters of a model, and of what the optimizer keeps of them.
struct WeightBytes {
  double parameters = 0;
  double states = 0;
};
/// Those of a setting's step.
WeightBytes SumWeights(const Setting& setting);

/// The same of several settings, each summed up once. From any thread.
class WeightSums {
 public:
  /// A setting stays where it is.
  WeightBytes Of(const Setting& setting);

 private:
  std::mutex mutex_;
  std::map<const Setting*, WeightBytes> known_;  // looked up
};

/// Bytes that the fullest rank holds at least: a replica's weights and their state, however they
/// are spread over its ranks, by the plan's stage of ZeRO, and less what lies on the host.
Bytes LeastMemory(const Setting& setting, const ParallelPlan& plan);
/// The same of a step whose sums are known.
Bytes LeastMemory(const WeightBytes& sums, const ParallelPlan& plan);

/// Bytes of the device that has most for a step, among those that the plan has ranks on; 0: no
/// limit.
Bytes MemoryLimit(const Setting& setting, const ParallelPlan& plan);

/// Whether the one exceeds the other: nothing makes such a plan fit.
bool CannotFit(const Setting& setting, const ParallelPlan& plan);
/// The same where the one is known.
bool CannotFit(Bytes least, const Setting& setting, const ParallelPlan& plan);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_BOUNDS_LEAST_MEMORY_H_
