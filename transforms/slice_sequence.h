#ifndef ORRERY_TRANSFORMS_SLICE_SEQUENCE_H_
#define ORRERY_TRANSFORMS_SLICE_SEQUENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/pipeline.h"

// Slices of the sequence of each sample, run one after the other, as TeraPipe has them (Li et al.,
// ICML 2021). In a causal model a position needs nothing of later ones: so a slice computes with
// its own rows, but for attention, which meets the keys and values of earlier slices, too. These
// stay on their rank; their gradients come from all later slices and are summed up there.
//
// The whole batch is in each slice, and losses go on dividing by all of it: gradients of parameters
// are sums over slices, as over microbatches.

namespace orrery::transforms {

/// Positions of each sample: dimension 1 of the first data input that has the batch and one more
/// dimension; 0 when there is none.
int64_t SequenceLength(const ir::Function& function);

/// The names of the data inputs that have the batch as dimension 0 and positions as dimension 1.
std::vector<std::string> SequenceInputs(const ir::Function& function);

/// `count` slices of equally many positions. Infeasible (kDivisibility) where the sequence does not
/// divide, or there is none.
absl::StatusOr<std::vector<SliceRange>> EqualSlices(const ir::Function& function, int64_t count);

/// Why an Attention, or its gradient, is not one in which a position meets itself and all earlier
/// ones, no more and no less; empty when it is.
absl::string_view WhyNotCausal(const ir::Function& function, ir::OpId attention);

/// The step of one slice. `function`, of one device, has a whole training step.
///
///  - Inputs have the rows of the slice, and all types follow. Of what is the same for all samples
///    and has a row a position (a table of positions, the angles of a rotation) it takes its rows.
///  - Each causal Attention reads keys and values by ExtendRows, and AttentionGrad leaves their
///    gradients to ExtendRowsGrad.
///
/// Infeasible (kUnsupported) for a model in which a position needs later ones, or anything but
/// causal attention puts positions together: the detail names the op.
absl::StatusOr<ir::Function> SliceSequence(const ir::Function& function, const SliceRange& slice);

/// Makes `step.slices`, one a range: the functions of each slice from those of the step, which are
/// of any slice of `whole`. They are the same op by op, but for types and for where the slice
/// begins.
absl::Status AddSlices(const ir::Function& whole, const std::vector<SliceRange>& slices,
                       PipelinedStep& step);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SLICE_SEQUENCE_H_
