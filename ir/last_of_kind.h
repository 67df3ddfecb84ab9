#ifndef ORRERY_IR_LAST_OF_KIND_H_
#define ORRERY_IR_LAST_OF_KIND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/function.h"
#include "ir/op_info.h"

namespace orrery::ir {

/// What was found out about the last few ops of each kind of one function. Layers repeat: the next
/// op of the kind mostly has the same attributes and operand types as one of those of the layer
/// before, and what follows from these need not be worked out again.
template <typename T>
class LastOfKind {
 public:
  /// How many ops of each kind are remembered.
  static constexpr size_t kRemembered = 4;  // ops of a kind: a layer has as many products

  /// What was put for such an op, good until the next Put; null when the last of its kind were
  /// others.
  const T* Find(const Function& function, OpKind kind, AttributesId attributes,
                std::span<const ValueId> operands) const {
    if (positions_.empty() || positions_[static_cast<size_t>(kind)] == kNowhere) return nullptr;
    for (const Row& row : kinds_[positions_[static_cast<size_t>(kind)]].rows) {
      if (row.attributes == attributes && HasTypes(row, function, operands)) return &row.found;
    }
    return nullptr;
  }
  const T* Find(const Function& function, OpId op) const {
    return Find(function, function.kind(op), function.attributes_id(op), function.operands(op));
  }

  /// Keeps what was found out about such an op, in place of what was put for its kind longest ago,
  /// and returns it; good until the next Put.
  const T& Put(const Function& function, OpKind kind, AttributesId attributes,
               std::span<const ValueId> operands, T found) {
    if (positions_.empty()) positions_.resize(static_cast<size_t>(OpKindCount()), kNowhere);
    uint16_t& position = positions_[static_cast<size_t>(kind)];
    if (position == kNowhere) {
      position = static_cast<uint16_t>(kinds_.size());
      kinds_.emplace_back();
    }
    Rows& rows = kinds_[position];
    Row& row = rows.rows[rows.oldest];
    rows.oldest = (rows.oldest + 1) % kRemembered;
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
  static constexpr uint16_t kNowhere = UINT16_MAX;

  struct Row {
    AttributesId attributes;  // invalid: no op yet
    absl::InlinedVector<TypeId, 4> operands;
    T found;
  };
  struct Rows {
    std::array<Row, kRemembered> rows = {};
    size_t oldest = 0;
  };

  static bool HasTypes(const Row& row, const Function& function,
                       std::span<const ValueId> operands) {
    if (row.operands.size() != operands.size()) return false;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (row.operands[i] != function.type_id(operands[i])) return false;
    }
    return true;
  }

  std::vector<uint16_t> positions_;  // by op kind, in kinds_
  std::vector<Rows> kinds_;          // that have been seen
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_LAST_OF_KIND_H_
