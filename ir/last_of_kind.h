#ifndef ORRERY_IR_LAST_OF_KIND_H_
#define ORRERY_IR_LAST_OF_KIND_H_

#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/function.h"

namespace orrery::ir {

/// What was found out about the last op of each kind of one function. Layers repeat: the next op of
/// the kind mostly has the same attributes and operand types, and what follows from those need not
/// be worked out again.
template <typename T>
class LastOfKind {
 public:
  /// What was put for such an op; null when the last of its kind was another one.
  const T* Find(const Function& function, OpKind kind, AttributesId attributes,
                std::span<const ValueId> operands) const {
    if (rows_.empty()) return nullptr;
    const Row& row = rows_[static_cast<size_t>(kind)];
    if (row.attributes != attributes || row.operands.size() != operands.size()) return nullptr;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (row.operands[i] != function.type_id(operands[i])) return nullptr;
    }
    return &row.found;
  }
  const T* Find(const Function& function, OpId op) const {
    return Find(function, function.kind(op), function.attributes_id(op), function.operands(op));
  }

  const T& Put(const Function& function, OpKind kind, AttributesId attributes,
               std::span<const ValueId> operands, T found) {
    if (rows_.empty()) rows_.resize(static_cast<size_t>(OpKindCount()));
    Row& row = rows_[static_cast<size_t>(kind)];
    row.attributes = attributes;
    row.operands.clear();
    for (const ValueId operand : operands) row.operands.push_back(function.type_id(operand));
    row.found = std::move(found);
    return row.found;
  }
  const T& Put(const Function& function, OpId op, T found) {
    return Put(function, function.kind(op), function.attributes_id(op), function.operands(op),
               std::move(found));
  }

 private:
  struct Row {
    AttributesId attributes;  // invalid: no op of the kind yet
    absl::InlinedVector<TypeId, 4> operands;
    T found;
  };
  std::vector<Row> rows_;  // by op kind
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_LAST_OF_KIND_H_
