#ifndef ORRERY_TRANSFORMS_SLICES_SLICES_H_
#define ORRERY_TRANSFORMS_SLICES_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/stages/pipeline.h"

// Which inputs have the positions of a model, and which of them are a slice's
// (transforms/slices/slice_sequence.h).

namespace orrery::transforms {

/// The names of the data inputs that have the batch as dimension 0 and as dimension 1 positions,
/// which are as many as ir::SequenceLength.
std::vector<std::string> SequenceInputs(const ir::Function& function);

/// `count` slices of equally many positions. InvalidArgument for a count below 1. Infeasible where
/// there is no sequence (kUnsupported); where it does not divide (kDivisibility), or, rather, for
/// what SliceSequence finds that no other count mends.
absl::StatusOr<std::vector<SliceRange>> EqualSlices(const ir::Function& function, int64_t count);

/// InvalidArgument unless the slices are of one position or more each, and follow one another from
/// 0 to `length`.
absl::Status CheckSlices(const std::vector<SliceRange>& slices, int64_t length);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SLICES_SLICES_H_
