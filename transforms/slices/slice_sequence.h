#ifndef ORRERY_TRANSFORMS_SLICES_SLICE_SEQUENCE_H_
#define ORRERY_TRANSFORMS_SLICES_SLICE_SEQUENCE_H_

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/stages/pipeline.h"

// Slices of the sequence of each sample, run one after the other, as TeraPipe has them (Li et al.,
// ICML 2021). In a causal model a position needs nothing of later ones: so a slice computes with
// its own rows, but for attention, which meets the keys and values of earlier slices, too. These
// stay on their rank; their gradients come from all later slices and are summed up there.
//
// The whole batch is in each slice, and losses go on dividing by all of it: gradients of parameters
// are sums over slices, as over microbatches.

namespace orrery::transforms {

/// The step of one slice. `function`, of one device, has a whole training step.
///
///  - Inputs have the rows of the slice, and all types follow. Of what is the same for all samples
///    and has a row a position (a table of positions, the angles of a rotation) it takes its rows.
///  - Each causal Attention reads keys and values by ExtendRows, and AttentionGrad leaves their
///    gradients to ExtendRowsGrad. Where no AttentionGrad takes the keys, ExtendRows says how many
///    `later` rows there are, for which its own have to stay.
///
/// InvalidArgument for a slice that is not inside the sequence, and so for all where there is none.
/// Infeasible (kUnsupported) for a model in which a position needs later ones, or anything but
/// causal attention puts positions together: the detail names the op.
absl::StatusOr<ir::Function> SliceSequence(const ir::Function& function, const SliceRange& slice);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SLICES_SLICE_SEQUENCE_H_
