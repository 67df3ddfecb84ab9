#ifndef ORRERY_TRANSFORMS_TRAINING_SPLIT_LOSS_H_
#define ORRERY_TRANSFORMS_TRAINING_SPLIT_LOSS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::transforms {

/// Whether some loss, or its gradient, has classes that divide into so many parts.
bool HasLossToSplit(const ir::Function& function, int64_t parts);

/// Puts CrossEntropyParts of so many parts, and what follows from them, instead of each
/// CrossEntropy and CrossEntropyGrad of a function of one device whose classes divide into them.
/// Then logits can stay split over the vocabulary (see ir/ops/cross_entropy_parts.cc). Losses and
/// gradients of the same logits and labels share their parts; names, types and outputs stay. True
/// when that changed the function, which computes the same.
absl::StatusOr<bool> SplitLosses(ir::Function& function, int64_t parts);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_SPLIT_LOSS_H_
