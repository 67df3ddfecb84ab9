#ifndef ORRERY_LOWERING_BLOCKS_LAUNCH_FLOOR_H_
#define ORRERY_LOWERING_BLOCKS_LAUNCH_FLOOR_H_

#include <span>

#include "lowering/blocks/task_template.h"
#include "support/units.h"

namespace orrery::lowering {

/// A host launches the kernels of a phase one after another and runs ahead of the device, so that
/// the phase takes no less than all launches: where kernels take less, they take so much more,
/// those most that are shorter than their launches. `launches` of each of `tasks`; `others`, of
/// kernels whose duration is not known here; `launch`, how long one takes the host.
void KeepToLaunches(std::span<const double> launches, double others, Duration launch,
                    std::span<TemplateTask> tasks);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_LAUNCH_FLOOR_H_
