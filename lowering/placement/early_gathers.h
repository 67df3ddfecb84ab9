#ifndef ORRERY_LOWERING_PLACEMENT_EARLY_GATHERS_H_
#define ORRERY_LOWERING_PLACEMENT_EARLY_GATHERS_H_

#include "lowering/placement/stage.h"

namespace orrery::lowering {

/// Takes from an update what gathers updated parameters over data-parallel ranks (ZeRO's stages 1
/// and 2), and the kernels that read what is gathered, as a template that waits for nothing: of
/// software that gathers them while the forward of the next step runs (Megatron's
/// overlap_param_gather). In a step that follows another, those of the step before are under way at
/// its start. Memory stays with the update, where it is taken and given back, so that the peak is
/// that of a step that gathers at its end. `update` must tell every dependency.
PricedTemplate TakeGathers(PricedTemplate& update);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_EARLY_GATHERS_H_
