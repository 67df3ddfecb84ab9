#ifndef ORRERY_TRANSFORMS_SLICES_ADD_SLICES_H_
#define ORRERY_TRANSFORMS_SLICES_ADD_SLICES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ir/function.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// Infeasible (kUnsupported) where `slices` slices of `ops` ops each are more than 4,194,304 ops:
/// so many are made, lowered and kept at once.
absl::Status CheckSliceCount(int64_t slices, int64_t ops);

/// Makes `step.slices`, one a range: the functions of each slice from those of the step, which are
/// of any slice of `whole`, as SliceSequence makes it. They are the same op by op, but for types
/// and for where the slice begins. The ranges follow one another from 0 to the end of the sequence
/// (CheckSlices). Infeasible as CheckSliceCount has it.
absl::Status AddSlices(const ir::Function& whole, const std::vector<SliceRange>& slices,
                       PipelinedStep& step);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SLICES_ADD_SLICES_H_
