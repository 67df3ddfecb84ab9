#ifndef ORRERY_IMPORTER_ROLES_H_
#define ORRERY_IMPORTER_ROLES_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "importer/role_patterns.h"
#include "ir/function.h"

namespace orrery::importer {

struct RoleOptions {
  /// Constants of floating point that ops use as weights: they become inputs.
  std::span<const ir::ValueId> weights = {};
  /// Inputs that ops read as weights: a file that was exported without its parameters has them as
  /// inputs.
  std::span<const ir::ValueId> weight_inputs = {};
  /// Inputs that an op repeats for each sample of a batch of one: weights, too, where others are.
  std::span<const ir::ValueId> shared_inputs = {};
  RolePatterns patterns = {};
};

/// The function with the roles that its inputs and outputs have in a training step. Its data inputs
/// stay data, and its buffers buffers, but for weights among them: where the file holds no weights,
/// and ops read inputs without the batch as such, those of floating point, and all without the
/// batch behind them, are taken as if they were parameters. All other inputs, which must be
/// parameters, are
///
///  - parameters, when a gradient that flows from a floating-point output along the gradient rules
///    of the ops gets to them;
///  - buffers otherwise: tables that are only compared or gathered from, running statistics, and
///    those that `patterns` freezes;
///  - gone, when nothing uses them.
///
/// A function that already holds a backward pass or an optimizer keeps it. Its outputs of loss ops
/// are losses; an output of the shape of input `w` that is called dw, w_grad, w.grad, grad_w or
/// gradient_w is the gradient of `w`, and what an optimizer makes of an input is its next value.
/// Inputs with gradients are parameters even where the file has them as graph inputs; what an
/// optimizer updates beside them is state. Ops that nothing uses are gone.
///
/// Errors: a regular expression that is none, is longer than 256 characters, repeats too much or
/// matches no parameter (`freeze`) or input (`parameters`, `data`).
absl::StatusOr<ir::Function> AssignRoles(const ir::Function& function, const RoleOptions& options);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ROLES_H_
