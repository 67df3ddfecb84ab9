#include "transforms/sharding/adapters.h"

#include <utility>

#include "ir/op_kind.h"
#include "transforms/sharding/axis_layout.h"

namespace orrery::transforms {
namespace adapters_cc {
namespace {

using ir::Function;
using ir::InputRole;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

class Finder {
 public:
  explicit Finder(const Function& function)
      : function_(function),
        role_(function.value_limit(), InputRole::kData),
        found_{.weights = IdTable<ValueId, char>(function.value_limit(), 0),
               .made = IdTable<ValueId, char>(function.value_limit(), 0),
               .base = IdTable<OpId, int8_t>(function.op_limit(), -1)} {
    for (const ir::Input& input : function.inputs()) role_[input.value] = input.role;
  }

  Adapters Run() && {
    for (const OpId op : function_.order()) {
      if (function_.kind(op) != OpKind::kAdd) continue;
      const auto operands = function_.operands(op);
      if (Adapts(operands[0], operands[1])) {
        found_.base[op] = 0;
      } else if (Adapts(operands[1], operands[0])) {
        found_.base[op] = 1;
      }
    }
    return std::move(found_);
  }

 private:
  // A product of data by weights: operand 0, and those behind it.
  bool IsProduct(OpId op) const {
    const OpKind kind = op.valid() ? function_.kind(op) : OpKind::kAdd;
    return kind == OpKind::kMatMul || kind == OpKind::kLinear || kind == OpKind::kLinearGroup;
  }

  bool IsTrained(ValueId value) const { return role_[value] == InputRole::kParameter; }

  // Whether `sum` is (x A) B beside the product `base` of x and frozen weights.
  bool Adapts(ValueId base, ValueId sum) {
    const OpId of_w = function_.producer(base), of_b = function_.producer(sum);
    if (!IsProduct(of_w) || !IsProduct(of_b)) return false;
    const auto w = function_.operands(of_w), b = function_.operands(of_b);
    if (role_[WeightUnder(function_, w[1])] != InputRole::kFrozen || !IsTrained(b[1])) return false;
    ValueId narrow = b[0];
    const OpId of_narrow = function_.producer(narrow);
    const bool scaled = of_narrow.valid() && function_.kind(of_narrow) == OpKind::kScale;
    if (scaled) narrow = function_.operands(of_narrow)[0];
    const OpId of_a = function_.producer(narrow);
    if (!IsProduct(of_a)) return false;
    const auto a = function_.operands(of_a);
    if (a[0] != w[0] || !IsTrained(a[1])) return false;
    found_.weights[a[1]] = found_.weights[b[1]] = 1;
    found_.made[narrow] = found_.made[b[0]] = found_.made[sum] = 1;
    return true;
  }

  const Function& function_;
  IdTable<ValueId, InputRole> role_;  // data of what is no input
  Adapters found_;
};

}  // namespace
}  // namespace adapters_cc

Adapters FindAdapters(const ir::Function& function) { return adapters_cc::Finder(function).Run(); }

}  // namespace orrery::transforms
