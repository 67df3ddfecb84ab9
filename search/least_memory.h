#ifndef ORRERY_SEARCH_LEAST_MEMORY_H_
#define ORRERY_SEARCH_LEAST_MEMORY_H_

#include "search/setting.h"
#include "support/units.h"

// What no way to carry out a plan can do without, by a sum over the model: no step is made for it.

namespace orrery::search {

/// Bytes that the fullest rank holds at least: a replica's weights and their state, however they
/// are spread over its ranks, by the plan's stage of ZeRO, and less what lies on the host.
Bytes LeastMemory(const Setting& setting, const ParallelPlan& plan);

/// Bytes of the device that has most for a step, among those that the plan has ranks on; 0: no
/// limit.
Bytes MemoryLimit(const Setting& setting, const ParallelPlan& plan);

/// Whether the one exceeds the other: nothing makes such a plan fit.
bool CannotFit(const Setting& setting, const ParallelPlan& plan);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_LEAST_MEMORY_H_
