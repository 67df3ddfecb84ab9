#ifndef ORRERY_TRANSFORMS_TRAINING_HIDDEN_MATRICES_H_
#define ORRERY_TRANSFORMS_TRAINING_HIDDEN_MATRICES_H_

#include "ir/function.h"

// Which weights are maps between hidden layers: what optimizers of matrices are for.

namespace orrery::transforms {

/// Marks the parameters of at least two dimensions that forward only multiplies with: no tables of
/// embeddings, no filters of convolutions, and not the product that makes what the loss is of.
IdTable<ir::ValueId, char> FindHiddenMatrices(const ir::Function& function);

/// The products behind which there are only ops without weights up to a loss: those that make
/// logits. Of a forward pass without one up to its first result of floating point, which the loss
/// would be of.
IdTable<ir::OpId, char> FindHeads(const ir::Function& function);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_HIDDEN_MATRICES_H_
