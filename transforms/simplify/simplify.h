#ifndef ORRERY_TRANSFORMS_SIMPLIFY_SIMPLIFY_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_SIMPLIFY_H_

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::transforms {

/// Which kernels there are.
struct SimplifyOptions {
  /// Attention keeps the sums of its rows instead of the probabilities.
  bool flash = false;
};

/// Folds constants, merges what is computed twice, and fuses ops into the kernels that frameworks
/// run, until nothing changes: what `opt --passes simplify` does. Outputs, their names and what
/// they are stay. Returns whether anything changed. A function over a mesh stays as it is.
absl::StatusOr<bool> Simplify(ir::Function& function, const SimplifyOptions& options = {});

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_SIMPLIFY_H_
