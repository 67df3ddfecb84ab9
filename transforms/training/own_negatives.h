#ifndef ORRERY_TRANSFORMS_TRAINING_OWN_NEGATIVES_H_
#define ORRERY_TRANSFORMS_TRAINING_OWN_NEGATIVES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/function.h"

// A contrastive loss holds each sample against all others of the batch, its negatives: the logits
// of CLIP are images × texts. Where each rank is to hold its samples against its own only, the
// batch is so many groups whose samples know nothing of each other.

namespace orrery::transforms {

/// Whether some value has the batch in two dimensions: each sample against each.
bool SamplesMeet(const ir::Function& function);

/// The function, a step or a part of one, with samples that meet only those of their group: group g
/// of `groups` is the g-th part of the batch. A value that has the batch in two dimensions, [batch,
/// batch], becomes [batch, batch / groups]: row i has the samples of its group. What is counted
/// along the batch begins anew in each group. Requires groups >= 1. Errors name the op that cannot
/// be done by groups: an invalid argument. Infeasible (kDivisibility) where the batch does not
/// divide.
absl::StatusOr<ir::Function> OwnNegatives(const ir::Function& function, int64_t groups);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_OWN_NEGATIVES_H_
