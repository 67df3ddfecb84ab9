#include "transforms/substitutions/fold_weights.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/copy.h"
#include "ir/roles.h"
#include "transforms/pass/equal_ops.h"

namespace orrery::transforms::substitutions {
namespace fold_weights_cc {
namespace {

using ir::OpId;
using ir::ValueId;

class Folder {
 public:
  explicit Folder(const ir::Function& function)
      : from_(function),
        to_(function.name(), function.mesh()),
        copy_{.from = function, .to = to_},
        fixed_(function.value_limit(), 0),
        folds_(function.op_limit(), 0),
        read_(function.value_limit(), 0) {}

  ir::Function Run() {
    FindFixed();
    for (const ir::Input& input : from_.inputs()) {
      const bool stays = !ir::IsWeightOrBuffer(input.role) || read_[input.value] != 0;
      if (stays) ir::CopyInput(input, input.role, copy_);
      names_.emplace(from_.value_name(input.value));
    }
    for (const OpId op : from_.order()) {
      for (int32_t i = 0; i < from_.result_count(op); ++i) {
        names_.emplace(from_.value_name(from_.result(op, i)));
      }
    }
    for (const OpId op : from_.order()) {
      for (int32_t i = 0; i < from_.result_count(op); ++i) AddWeight(op, from_.result(op, i));
    }
    for (const OpId op : from_.order()) {
      if (folds_[op] == 0) ir::CopyOp(op, copy_);
    }
    ir::CopyOutputs(from_.outputs(), copy_);
    return std::move(to_);
  }

 private:
  // Which ops fold, and which values are read by those that do not.
  void FindFixed() {
    IdTable<ValueId, char> returned(from_.value_limit(), 0);
    for (const ir::Output& output : from_.outputs()) {
      returned[output.value] = 1;
      read_[output.value] = 1;
    }
    for (const ir::Input& input : from_.inputs()) {
      fixed_[input.value] = ir::IsWeightOrBuffer(input.role) ? 1 : 0;
    }
    for (const OpId op : from_.order()) {
      const auto operands = from_.operands(op);
      bool fixed = IsWhatItReads(from_, op) &&
                   std::ranges::all_of(operands, [&](ValueId v) { return fixed_[v] != 0; });
      for (int32_t i = 0; i < from_.result_count(op); ++i) {
        fixed = fixed && returned[from_.result(op, i)] == 0;
      }
      for (int32_t i = 0; i < from_.result_count(op); ++i) {
        fixed_[from_.result(op, i)] = fixed ? 1 : 0;
      }
      folds_[op] = fixed && !operands.empty() ? 1 : 0;
    }
    for (const OpId op : from_.order()) {
      if (folds_[op] != 0) continue;
      for (const ValueId operand : from_.operands(op)) read_[operand] = 1;
    }
    DropUnread();
  }

  // Constants that folded ops alone read fold with them.
  void DropUnread() {
    for (const OpId op : from_.order()) {
      const bool is_constant = from_.operands(op).empty() && from_.result_count(op) == 1;
      if (is_constant && read_[from_.result(op)] == 0) folds_[op] = 1;
    }
  }

  // What a folded op makes for one that is not, as an input.
  void AddWeight(OpId op, ValueId value) {
    if (folds_[op] == 0 || read_[value] == 0) return;
    std::string name(from_.value_name(value));
    if (name.empty()) {
      do name = absl::StrCat("folded_", ++count_);
      while (!names_.insert(name).second);
    }
    copy_.values[value] = to_.AddInput(name, from_.type(value), ir::InputRole::kParameter);
  }

  const ir::Function& from_;
  ir::Function to_;
  ir::FunctionCopy copy_;
  IdTable<ValueId, char> fixed_;
  IdTable<OpId, char> folds_;
  IdTable<ValueId, char> read_;  // by an op that does not fold, or returned
  absl::flat_hash_set<std::string> names_;
  int count_ = 0;
};

}  // namespace
}  // namespace fold_weights_cc

ir::Function FoldWeights(const ir::Function& function) {
  return fold_weights_cc::Folder(function).Run();
}

}  // namespace orrery::transforms::substitutions
