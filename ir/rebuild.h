#ifndef ORRERY_IR_REBUILD_H_
#define ORRERY_IR_REBUILD_H_

#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "ir/function.h"

namespace orrery::ir {

/// What RebuildWithInputs changes. What is left null stays as it is.
struct Rebuild {
  /// The new type of an input, from the old one.
  std::function<TensorType(const Input& input, const TensorType& type)> input = nullptr;
  /// The new type of a result of an op of `function` whose record infers none (Constant, Receive).
  std::function<TensorType(OpId op, const TensorType& type)> uninferred = nullptr;
  /// The new attributes of an op that has some; nothing: they stay.
  std::function<std::optional<AttributeSet>(OpKind kind, const AttributeSet& attributes)>
      attributes = nullptr;
};

/// A copy of `function`, op by op in its order, with the types that `change` gives to its inputs
/// and with the types of all results inferred again. Names, attributes, outputs and roles stay; ops
/// that the order leaves out are gone, and values are numbered anew. `function` must verify. The
/// error of an op that cannot take its new operands names the op: "mlp: MatMul 'y0': inner
/// dimensions differ; got 64 and 96". Sizes and names are not checked: run `Verify` where they may
/// have broken.
absl::StatusOr<Function> RebuildWithInputs(const Function& function, const Rebuild& change);

}  // namespace orrery::ir

#endif  // ORRERY_IR_REBUILD_H_
