#ifndef ORRERY_IMPORTER_ROLES_H_
#define ORRERY_IMPORTER_ROLES_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::importer {

struct RoleOptions {
  /// Constants of floating point that ops use as weights: they become inputs.
  std::span<const ir::ValueId> weights = {};
  /// Parameters whose names this regular expression (syntax of RE2) matches somewhere are not
  /// trained. Empty: none.
  std::string freeze = {};
};

/// The function with the roles that its inputs and outputs have in a training step. All
/// its data inputs stay data, and its buffers buffers; all other inputs, which must be parameters,
/// are
///
///  - parameters, when a gradient that flows from a floating-point output along the gradient rules
///    of the ops gets to them;
///  - buffers otherwise: tables that are only compared or gathered from, running statistics, and
///    those that `freeze` names;
///  - gone, when nothing uses them.
///
/// A function that already holds a backward pass or an optimizer keeps it. Its outputs of loss ops
/// are losses; an output of the shape of input `w` that is called dw, w_grad, w.grad, grad_w or
/// gradient_w is the gradient of `w`, and what an optimizer makes of an input is its next value.
/// Inputs with gradients are parameters even where the file has them as graph inputs; what an
/// optimizer updates beside them is state. Ops that nothing uses are gone.
///
/// Errors: a `freeze` that is no regular expression, is longer than 256 characters, repeats too
/// much or matches no parameter.
absl::StatusOr<ir::Function> AssignRoles(const ir::Function& function, const RoleOptions& options);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ROLES_H_
