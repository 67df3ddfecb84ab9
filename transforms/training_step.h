#ifndef ORRERY_TRANSFORMS_TRAINING_STEP_H_
#define ORRERY_TRANSFORMS_TRAINING_STEP_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"

// From a forward graph to one whole training step, still on one device.

namespace orrery::transforms {

/// Appends a squared-error loss on the first result of floating-point type, with a new data input
/// of the same type as its target ("target"). The other results are no longer returned, and what
/// only they needed is gone. False when the function has a loss or gradients already. An error when
/// no result can carry a loss.
absl::StatusOr<bool> AttachLoss(ir::Function& function);

/// Reverse-mode differentiation: appends the ops that compute the gradient of the loss with respect
/// to every floating-point parameter, by the gradient rule of each op, and returns the gradients,
/// last layer first. Computes only what a parameter needs. False when there are gradients already;
/// an error when there is no loss, or an op on the way has no gradient.
absl::StatusOr<bool> BuildBackward(ir::Function& function);

/// Appends one optimizer op for all parameters that have a gradient: "sgd", "momentum", "adam", or
/// "none", which changes nothing. State is fp32; parameters of 16 or 8 bits get an fp32 master
/// copy, as mixed-precision training has it. The gradients are no longer returned; the updated
/// parameters and states are. False when there is no gradient to use.
absl::StatusOr<bool> AppendOptimizer(ir::Function& function, absl::string_view optimizer);

/// All three in a row: the training step of `function`, whatever it holds already.
absl::Status MakeTrainingStep(ir::Function& function, absl::string_view optimizer);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_STEP_H_
