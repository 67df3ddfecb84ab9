#ifndef ORRERY_TRANSFORMS_TRAINING_MICROBATCH_H_
#define ORRERY_TRANSFORMS_TRAINING_MICROBATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::transforms {

/// Samples in a batch: dimension 0 of the first data input; an error when there is none.
absl::StatusOr<int64_t> BatchSize(const ir::Function& function);

/// For each input, whether it is data whose dimension 0 is the batch. Other data, a mask for all
/// samples say, is the same for every microbatch and every data-parallel rank. To be asked of the
/// whole batch: a microbatch may be as large as a mask is wide.
std::vector<bool> BatchedInputs(const ir::Function& function);

/// Infeasible (kDivisibility) when the batch does not divide into so many microbatches; an error
/// without a batch. One always is the batch itself.
absl::Status CheckMicrobatches(const ir::Function& function, int64_t count);

/// The step of one of `count` equal microbatches: every data input whose dimension 0 is the batch
/// gets its part of it, and all types follow. Losses go on dividing by the whole batch, so that the
/// gradients of all microbatches add up to the gradient of the batch. Errors of
/// CheckMicrobatches.
absl::StatusOr<ir::Function> Microbatch(const ir::Function& function, int64_t count);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_MICROBATCH_H_
