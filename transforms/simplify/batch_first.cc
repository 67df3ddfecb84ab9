#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/batch.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/pass/pass.h"
#include "transforms/simplify/batch_layout.h"
#include "transforms/simplify/batch_rules.h"
#include "transforms/simplify/match.h"

// Frameworks put the batch second, flatten it with time, and move it back: nn.MultiheadAttention,
// nn.Transformer, recurrent nets. Here what is made of such values is made of those that have the
// batch first, as they were before, and the moves go. It is taken only where less is moved then.

namespace orrery::transforms {
namespace batch_first_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// A copy of a function, in which what has the batch elsewhere is a layout of what has it first,
// until somebody wants it as it was.
class Copier {
 public:
  explicit Copier(const Function& from)
      : from_(from),
        batch_(ir::BatchOf(from)),
        batch_dims_(ir::BatchDims(from)),
        outside_(ir::OutsideOfBatch(from, batch_dims_)),
        to_(from.name(), from.mesh()),
        copy_{.from = from, .to = to_.function()} {}

  // Nothing where an op refuses what it should be made of.
  std::optional<Function> Run() && {
    for (const ir::Input& input : from_.inputs()) ir::CopyInput(input, input.role, copy_);
    for (const OpId op : from_.order()) {
      if (!CopyView(op) && !CopyMaker(op) && !CopyByRules(op)) CopyPlainly(op);
      if (!to_.status().ok()) return std::nullopt;
    }
    for (const ir::Output& output : from_.outputs()) {
      const ValueId value = Plain(output.value);
      to_.function().SetName(value, from_.value_name(output.value));
    }
    ir::CopyOutputs(from_.outputs(), copy_);
    absl::StatusOr<Function> copied = std::move(to_).Finalize();
    if (!copied.ok()) return std::nullopt;
    ir::RemoveDeadOps(*copied);
    return *std::move(copied);
  }

 private:
  bool IsOutput(ValueId value) const {
    return std::ranges::any_of(from_.outputs(),
                               [&](const ir::Output& output) { return output.value == value; });
  }

  const ir::Dims& DimsOf(ValueId value) const { return from_.type(value).dims; }

  const BatchLayout* LayoutOf(ValueId value) const {
    const auto found = layouts_.find(value.index());
    return found == layouts_.end() ? nullptr : &found->second;
  }

  // The layout of `value`, also of one that has the batch first already.
  std::optional<BatchLayout> Seen(ValueId value) {
    if (const BatchLayout* layout = LayoutOf(value); layout != nullptr) return *layout;
    const ir::Dims& dims = DimsOf(value);
    if (batch_dims_[value] != 0 || outside_[value] != 1) return std::nullopt;
    BatchLayout layout{.base = copy_.values[value], .groups = {}};
    std::vector<int64_t> shape = {-1};
    if (dims[0] != batch_) shape.push_back(dims[0] / batch_);
    for (size_t d = 1; d < dims.size(); ++d) shape.push_back(dims[d]);
    for (size_t d = 0; d < shape.size(); ++d) layout.groups.push_back({d});
    if (shape.size() == dims.size()) return layout;
    layout.base = to_.Op(OpKind::kReshape, {layout.base}, "", {{"shape", shape}});
    layout.groups.erase(layout.groups.begin());
    layout.groups[0] = {0, 1};
    if (!layout.base.valid()) return std::nullopt;
    return layout;
  }

  // `value` as it was.
  ValueId Plain(ValueId value) {
    ValueId& plain = copy_.values[value];
    const BatchLayout* layout = LayoutOf(value);
    if (!plain.valid() && layout != nullptr) plain = See(*layout, DimsOf(value), "");
    return plain;
  }

  // A view of the base of `layout`, transposed where it must be.
  ValueId See(const BatchLayout& layout, const ir::Dims& dims, absl::string_view name) {
    const bool moves = !KeepsOrder(layout.groups);
    const bool shapes =
        std::ranges::any_of(layout.groups, [](const auto& group) { return group.size() != 1; });
    ValueId value = layout.base;
    if (moves) {
      const std::vector<size_t> order = OrderOf(layout.groups);
      const std::vector<int64_t> perm(order.begin(), order.end());
      value = to_.Op(OpKind::kTranspose, {value}, shapes ? "" : name, {{"perm", perm}});
    }
    if (!shapes) return value;
    std::vector<int64_t> shape(dims.begin(), dims.end());
    for (size_t k = 0; k < shape.size(); ++k) {
      if (std::ranges::find(layout.groups[k], 0u) != layout.groups[k].end()) shape[k] = -1;
    }
    return to_.Op(OpKind::kReshape, {value}, name, {{"shape", shape}});
  }

  // Transpose, Reshape and the like, of what has or had the batch first.
  bool CopyView(OpId op) {
    const bool transposes = from_.kind(op) == OpKind::kTranspose;
    if (!transposes && !IsView(from_.kind(op))) return false;
    const ValueId operand = from_.operands(op)[0], result = from_.result(op);
    if (LayoutOf(operand) == nullptr && !transposes) return false;
    std::optional<BatchLayout> layout = Seen(operand);
    if (!layout.has_value()) return false;
    if (transposes) {
      layout->groups = Permuted(layout->groups, PermutationOf(from_, op));
    } else if (!Reshape(DimsOf(result), *layout)) {
      return false;
    }
    if (BatchIsOutermost(layout->groups)) {
      copy_.values[result] = See(*layout, DimsOf(result), from_.value_name(result));
    } else {
      layouts_[result.index()] = *std::move(layout);
    }
    return true;
  }

  // An Expand that makes the batch behind other dimensions, as of learned queries: it makes it
  // first.
  bool CopyMaker(OpId op) {
    if (from_.kind(op) != OpKind::kExpand) return false;
    const ValueId operand = from_.operands(op)[0], result = from_.result(op);
    const int64_t made = from_.attributes(op).Int("batch_dim", -1);
    const ir::Dims &dims = DimsOf(operand), &to = DimsOf(result);
    const size_t rank = to.size();
    if (made < 1 || dims.size() != rank || to[static_cast<size_t>(made)] != batch_) return false;
    std::vector<int64_t> shape = {1}, wide = {batch_};
    BatchLayout layout;
    for (size_t d = 0; d < rank; ++d) {
      const bool is_made = d == static_cast<size_t>(made);
      layout.groups.push_back({is_made ? 0 : shape.size()});
      if (is_made) continue;
      shape.push_back(dims[d]);
      wide.push_back(to[d]);
    }
    const ValueId row = to_.Op(OpKind::kReshape, {Plain(operand)}, "", {{"shape", shape}});
    layout.base = to_.Op(OpKind::kExpand, {row}, from_.value_name(result),
                         {{"shape", wide}, {"batch_dim", int64_t{0}}});
    if (!layout.base.valid()) return false;
    layouts_[result.index()] = std::move(layout);
    return true;
  }

  bool Reshape(const ir::Dims& to, BatchLayout& layout) {
    const ir::Dims base = to_.type(layout.base).dims;
    std::optional<Regrouping> regrouping = Regroup(base, layout.groups, to);
    if (!regrouping.has_value()) return false;
    layout.groups = std::move(regrouping->groups);
    if (regrouping->base == base) return true;
    std::vector<int64_t> shape(regrouping->base.begin(), regrouping->base.end());
    shape[0] = -1;
    layout.base = to_.Op(OpKind::kReshape, {layout.base}, "", {{"shape", shape}});
    return layout.base.valid();
  }

  // A base whose dimensions stand in the order of the value's, behind the batch: the move that has
  // to be, but with the batch first.
  void Order(const ir::Dims& dims, BatchLayout& layout) {
    std::vector<int64_t> perm = {0};
    std::vector<size_t> position(to_.type(layout.base).dims.size(), 0);
    for (const size_t dim : OrderOf(layout.groups)) {
      if (dim == 0) continue;
      position[dim] = perm.size();
      perm.push_back(static_cast<int64_t>(dim));
    }
    if (std::ranges::is_sorted(perm)) return;
    layout.base = to_.Op(OpKind::kTranspose, {layout.base}, "", {{"perm", perm}});
    for (std::vector<size_t>& group : layout.groups) {
      for (size_t& dim : group) dim = position[dim];
    }
    if (layout.base.valid()) Reshape(dims, layout);  // what stands together now is one
  }

  // An op that has a rule, made of the bases of its operands; where they are in another order, of
  // those that are in theirs.
  bool CopyByRules(OpId op) {
    if (CopyByRule(op)) return true;
    bool any = false;
    for (const ValueId operand : from_.operands(op)) {
      const auto found = layouts_.find(operand.index());
      if (found == layouts_.end()) continue;
      const ValueId base = found->second.base;
      Order(DimsOf(operand), found->second);
      any = any || found->second.base != base;
    }
    return any && to_.status().ok() && CopyByRule(op);
  }

  bool CopyByRule(OpId op) {
    const std::span<const ValueId> operands = from_.operands(op);
    BatchRuleCall call{.function = from_, .op = op, .builder = to_, .operands = {}};
    bool any = false;
    for (const ValueId operand : operands) {
      const BatchLayout* layout = LayoutOf(operand);
      any = any || layout != nullptr;
      BatchOperand& one = call.operands.emplace_back();
      one.dims = DimsOf(operand);
      one.has_batch = batch_dims_[operand] >= 0;
      one.layout = layout;
      one.plain = layout == nullptr ? copy_.values[operand] : ValueId();
    }
    if (!any) return false;
    const std::vector<BatchLayout> results = ApplyBatchRule(call);
    if (results.empty()) return false;
    for (size_t j = 0; j < results.size(); ++j) {
      const ValueId result = from_.result(op, static_cast<int32_t>(j));
      layouts_[result.index()] = results[j];
      // Of an output what is returned has the name.
      if (!IsOutput(result)) to_.function().SetName(results[j].base, from_.value_name(result));
    }
    return true;
  }

  void CopyPlainly(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : from_.operands(op)) operands.push_back(Plain(operand));
    if (to_.status().ok()) ir::CopyOp(op, operands, from_.attributes(op), copy_);
  }

  const Function& from_;
  int64_t batch_;
  IdTable<ValueId, int8_t> batch_dims_;
  IdTable<ValueId, int64_t> outside_;
  ir::Builder to_;
  ir::FunctionCopy copy_;
  std::map<int32_t, BatchLayout> layouts_;  // by value of from_
};

// Whether a Transpose takes the batch away from the front.
bool MovesBatch(const Function& function, OpId op, int64_t batch) {
  if (function.kind(op) != OpKind::kTranspose) return false;
  const ir::Dims& dims = function.type(function.operands(op)[0]).dims;
  return dims.size() > 1 && dims[0] == batch && PermutationOf(function, op)[0] != 0;
}

// Elements that Transposes move, but for those of parameters and constants, which are small.
int64_t MovedElements(const Function& function) {
  int64_t moved = 0;
  for (const OpId op : function.order()) {
    if (function.kind(op) == OpKind::kTranspose) {
      moved += ir::ElementCount(function.type(function.result(op)).dims);
    }
  }
  return moved;
}

absl::StatusOr<bool> BatchFirst(Function& function, const PassOptions&) {
  const int64_t batch = ir::BatchOf(function);
  if (batch < 2 || !function.mesh().empty()) return false;
  const bool any = std::ranges::any_of(function.order(),
                                       [&](OpId op) { return MovesBatch(function, op, batch); });
  if (!any) return false;
  std::optional<Function> copied = Copier(function).Run();
  if (!copied.has_value() || MovedElements(*copied) >= MovedElements(function)) return false;
  function = *std::move(copied);
  return true;
}

}  // namespace
}  // namespace batch_first_cc

extern const PassInfo kBatchFirstPass = {
    .name = "batch-first",
    .summary = "makes of values with the batch first what is made of those that have it elsewhere",
    .options = "",
    .run = batch_first_cc::BatchFirst,
};

}  // namespace orrery::transforms
