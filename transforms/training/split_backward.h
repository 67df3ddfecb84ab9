#ifndef ORRERY_TRANSFORMS_TRAINING_SPLIT_BACKWARD_H_
#define ORRERY_TRANSFORMS_TRAINING_SPLIT_BACKWARD_H_

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::transforms {

/// Parts the ops that make the gradient of an input and that of a weight at once (MatMulGrad,
/// LinearGroupGrad) into one op for each: then backward can be cut into what other stages wait for
/// and what nobody does (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024). True when that
/// changed the function, which must not be sharded yet.
absl::StatusOr<bool> SplitBackward(ir::Function& function);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_SPLIT_BACKWARD_H_
