#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/training/training_step.h"

// Tables that a graph brings along as if they were weights: cosines and sines of rotary positions,
// and masks. Nobody trains them, and every stage of a pipeline may have a copy.

namespace orrery::transforms {
namespace freeze_tables_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Whether a mask is the same for all heads and samples. One that is not may be learned: the biases
// of relative positions.
bool IsPlainMask(const ir::TensorType& type) {
  const auto rows = type.dims.end() - std::min<int64_t>(2, std::ssize(type.dims));
  return std::all_of(type.dims.begin(), rows, [](int64_t dim) { return dim == 1; });
}

class TableFinder {
 public:
  explicit TableFinder(const Function& function)
      : function_(function), used_(function.value_limit(), 0), trained_(function.value_limit(), 0) {
    for (const ir::Output& output : function.outputs()) trained_[output.value] = 1;
    const auto& order = function.order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) Visit(*op);
  }

  bool IsTable(ValueId value) const { return used_[value] != 0 && trained_[value] == 0; }

 private:
  void Visit(OpId op) {
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool passes = i == 0 && function_.info(op).strided_view;
      const bool table = passes ? AllTables(op) : TakesTable(op, i);
      (table ? used_ : trained_)[operands[i]] = 1;
    }
  }

  // Whether all that a view shows is used as a table.
  bool AllTables(OpId op) const {
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      if (!IsTable(function_.result(op, i))) return false;
    }
    return true;
  }

  bool TakesTable(OpId op, size_t i) const {
    switch (function_.kind(op)) {
      case OpKind::kRotary:
        return i > 0;
      case OpKind::kAttention:
        return i == 3 && IsPlainMask(function_.type(function_.operands(op)[i]));
      case OpKind::kMaskedSoftmax:
        return i == 1 && IsPlainMask(function_.type(function_.operands(op)[i]));
      default:
        return false;
    }
  }

  const Function& function_;
  IdTable<ValueId, char> used_;     // as a table
  IdTable<ValueId, char> trained_;  // otherwise
};

}  // namespace
}  // namespace freeze_tables_cc

bool FreezeTables(ir::Function& function) {
  const freeze_tables_cc::TableFinder tables(function);
  bool changed = false;
  for (const ir::Input& input : function.inputs()) {
    if (!ir::IsWeight(input.role) || !tables.IsTable(input.value)) continue;
    function.SetInputRole(input.value, ir::InputRole::kBuffer);
    changed = true;
  }
  return changed;
}

extern const PassInfo kFreezeTablesPass = {
    .name = "freeze-tables",
    .summary = "makes buffers of parameters that are tables: of rotary positions, and masks",
    .options = "",
    .run = [](ir::Function& function, const PassOptions&) -> absl::StatusOr<bool> {
      return FreezeTables(function);
    },
    .idempotent = true,
};

}  // namespace orrery::transforms
