#ifndef ORRERY_TRANSFORMS_TRAINING_TRAINING_STEP_H_
#define ORRERY_TRANSFORMS_TRAINING_TRAINING_STEP_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/training/lora.h"

// From a forward graph to one whole training step, still on one device.

namespace orrery::transforms {

/// The loss that a function without one gets.
struct LossChoice {
  /// "cross-entropy": of logits, with whole-number labels; classes are the last dimension of the
  /// output, the channels where a convolution makes it, or what a Softmax or LogSoftmax that makes
  /// it runs over, whose operand is taken. "mse": squared error, with a target as large as the
  /// output. "sum": the output itself. "none": the function stays a forward pass. "auto":
  /// cross-entropy where a matrix product (plus bias) or a softmax makes the output, else mse.
  std::string kind = "auto";
  /// Names of the results that get it, with commas between. Empty: the first result of
  /// floating-point type; of "auto" and "sum" the first that is one number, which is the graph's
  /// own loss.
  std::string output = {};
};

/// Whether the function has a loss or gradients already.
bool IsTrained(const ir::Function& function);

/// "auto, cross-entropy, mse, sum or none": what LossChoice::kind may be.
std::string LossNames();

/// Appends the loss on each chosen result, with a new data input for its target ("labels",
/// "target"). A mean over the rows of a batch, as a graph's own loss often is, becomes a loss of
/// those rows, so that microbatches add up. The other results are no longer returned, and what only
/// they needed is gone. False when the function IsTrained, or the choice is "none". An error for an
/// unknown kind, an output that is not there, or one that cannot carry the loss.
absl::StatusOr<bool> AttachLoss(ir::Function& function, const LossChoice& choice = {});

/// Takes losses, gradients and updates out of a function, and the inputs that only they read, as
/// labels: it returns what each loss was of, and those of its other results that are of forward.
/// False when there was nothing of a training step.
bool KeepForward(ir::Function& function);

/// Makes buffers of parameters that only serve as tables: the cosines and sines of Rotary, and
/// masks that are alike for all heads. They are not trained. Of a function without a backward pass.
/// False when there are none.
bool FreezeTables(ir::Function& function);

/// Reverse-mode differentiation: appends the ops that compute the gradient of the loss with respect
/// to every floating-point parameter, by the gradient rule of each op, and returns the gradients,
/// last layer first. Computes only what a parameter needs. False when there are gradients already;
/// an error when there is no loss, or an op on the way has no gradient.
absl::StatusOr<bool> BuildBackward(ir::Function& function);

/// Appends one optimizer op for all parameters that have a gradient, by its name (OptimizerNames),
/// or "none", which changes nothing. One that is for matrices of hidden layers alone ("muon")
/// stands beside one of Adam for all else; an error where no such matrix is trained. One that keeps
/// other state of vectors ("adafactor") makes two ops. State is fp32;
/// parameters of 16 or 8 bits get an fp32 master copy, as mixed-precision training has it. The
/// gradients are no longer returned; the updated parameters and states are. False when there is no
/// gradient to use.
absl::StatusOr<bool> AppendOptimizer(ir::Function& function, absl::string_view optimizer);

/// "none, sgd, momentum, adam … or muon": the ops with a name to be chosen by (OpInfo::chosen_as).
std::string OptimizerNames();

/// How a model is trained, where its function does not say so already.
struct StepOptions {
  std::string optimizer = "adam";
  LossChoice loss = {};
  /// Adapters beside frozen weights; of rank 0 there are none.
  LoraOptions lora = {};
  /// What frozen matrices are stored as: see QuantizeFrozen.
  std::string frozen_dtype = {};
  /// Whether a forward graph is simplified and fused, and its tables frozen, before its backward is
  /// built. One that holds a backward already stays as it is.
  bool simplify = true;
};

/// All of these in a row: the training step of `function`, whatever it holds already. With the loss
/// "none" it stays a forward pass.
absl::Status MakeTrainingStep(ir::Function& function, const StepOptions& options);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_TRAINING_STEP_H_
