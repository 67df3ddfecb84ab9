#ifndef ORRERY_IR_COPY_H_
#define ORRERY_IR_COPY_H_

#include <span>

#include "ir/function.h"

// A function copied op by op into another one, by those that change something on the way.
// ir/rebuild.h does it for those that change types.

namespace orrery::ir {

/// A function, and another one that it is being copied to.
struct FunctionCopy {
  const Function& from;
  Function& to;
  /// What stands in `to` for each value of `from`; invalid where nothing does yet.
  IdTable<ValueId, ValueId> values = IdTable<ValueId, ValueId>(from.value_limit());
};

/// Appends a copy of an input, with the name and type that it has.
void CopyInput(const Input& input, InputRole role, FunctionCopy& copy);
/// Appends a copy of an op whose operands have been copied, with the types and names that its
/// results have.
void CopyOp(OpId op, FunctionCopy& copy);
/// The same with these operands, of `copy.to`, and these attributes.
void CopyOp(OpId op, std::span<const ValueId> operands, const AttributeSet& attributes,
            FunctionCopy& copy);
/// Appends copies of outputs of `copy.from`.
void CopyOutputs(std::span<const Output> outputs, FunctionCopy& copy);

}  // namespace orrery::ir

#endif  // ORRERY_IR_COPY_H_
