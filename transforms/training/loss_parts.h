#ifndef ORRERY_TRANSFORMS_TRAINING_LOSS_PARTS_H_
#define ORRERY_TRANSFORMS_TRAINING_LOSS_PARTS_H_

#include <cstdint>

#include "ir/builder.h"

namespace orrery::transforms {

/// A loss as the sum of the elements of `value` over `count`. Elements are added up over
/// microbatches and ranks; one number of a microbatch would not say how many samples it stands for.
struct LossParts {
  ir::ValueId value;
  int64_t count = 1;
};

/// The parts of `loss`, a value of one element, as far as they can be seen through means, sums,
/// likelihoods of rows, multiples, and sums and differences of two means. It appends what these
/// come to: element by element where both are over as many, else sample by sample. The loss itself
/// where there is nothing to be seen.
LossParts PartsOfLoss(ir::Builder& b, ir::ValueId loss);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_LOSS_PARTS_H_
