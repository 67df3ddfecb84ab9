#ifndef ORRERY_TRANSFORMS_SLICES_SLICES_H_
#define ORRERY_TRANSFORMS_SLICES_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "transforms/stages/pipeline.h"

// Which positions a model has, and which of them are a slice's
// (transforms/slices/slice_sequence.h).

namespace orrery::transforms {

/// Positions of each sample: dimension 1 of the first data input that has the batch and one more
/// dimension; 0 when there is none.
int64_t SequenceLength(const ir::Function& function);

/// The names of the data inputs that have the batch as dimension 0 and positions as dimension 1.
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
