#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_FOLD_WEIGHTS_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_FOLD_WEIGHTS_H_

#include "ir/function.h"

// What is computed from weights alone, as who deploys a function has it: computed once, before. So
// a text that is priced op by op has no ops for it, as `fold-batch-norm` leaves none.

namespace orrery::transforms::substitutions {

/// The function with parameters in place of what it computes from weights and buffers alone, called
/// as the result is, or folded_1, folded_2, …; weights that nothing else reads are gone. What it
/// returns, and constants, it computes as before. Not for functions with gradients, which belong to
/// the weights as they are.
ir::Function FoldWeights(const ir::Function& function);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_FOLD_WEIGHTS_H_
