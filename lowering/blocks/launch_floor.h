#ifndef ORRERY_LOWERING_BLOCKS_LAUNCH_FLOOR_H_
#define ORRERY_LOWERING_BLOCKS_LAUNCH_FLOOR_H_

#include <span>

#include "lowering/blocks/task_template.h"
#include "support/units.h"

namespace orrery::lowering {

/// What a phase launches besides kernels: collectives.
struct OtherLaunches {
  double count = 0;
  Duration duration;  // of all, on the device
};

/// A host launches the kernels of a phase one after another and runs ahead of the device, so that
/// the phase takes no less than all launches: where kernels and collectives take less, kernels take
/// so much more, those most that are shorter than their launches. `launches` of each of `tasks`,
/// which `others` are none of; `launch`, how long one takes the host.
void KeepToLaunches(std::span<const double> launches, const OtherLaunches& others, Duration launch,
                    std::span<TemplateTask> tasks);

/// The host waits for each kernel before it launches another: kernels take their launches besides,
/// and the first kernel those of `others`.
void WaitForLaunches(std::span<const double> launches, const OtherLaunches& others, Duration launch,
                     std::span<TemplateTask> tasks);

/// What the host has to do for a phase: launches, as above, but of updates; and before a forward
/// the first kernel waits while it prepares a microbatch; the first kernel of an update, or
/// what the host does of it first, for what is done once for each.
void WaitForTheHost(const TemplateContext& context, std::span<const double> launches,
                    const OtherLaunches& others, std::span<TemplateTask> tasks);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_LAUNCH_FLOOR_H_
