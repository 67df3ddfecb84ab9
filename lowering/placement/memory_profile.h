#ifndef ORRERY_LOWERING_PLACEMENT_MEMORY_PROFILE_H_
#define ORRERY_LOWERING_PLACEMENT_MEMORY_PROFILE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "lowering/blocks/task_template.h"

namespace orrery::lowering {

/// Adds the memory of tasks that become one, `task`, whose `events` come in the order of time: from
/// its start what it needs at its own peak, and at its finish what it leaves. What grows over the
/// microbatches stays as it is.
void AddMemoryProfile(std::span<const TemplateMemory> events, int32_t task,
                      std::vector<TemplateMemory>& memory);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_MEMORY_PROFILE_H_
