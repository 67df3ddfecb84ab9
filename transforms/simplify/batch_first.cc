#include <algorithm>
#include <map>
#include <optional>
#include <set>
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
#include "transforms/simplify/batch_cost.h"
#include "transforms/simplify/batch_layout.h"
#include "transforms/simplify/batch_rules.h"
#include "transforms/simplify/match.h"

// Frameworks put the batch second, flatten it with time, and move it back: nn.MultiheadAttention,
// nn.Transformer, recurrent nets. Here what is made of such values is made of those that have the
// batch first, as they were before, and the moves go; what comes from ops that have the batch
// behind time themselves, as recurrent ones do, is no longer flattened with it. It is taken where
// fewer values have the batch inside of a dimension, which ranks would have to gather; else where
// less is moved.

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
  // Where `time_first`, values stay in the order that Transposes give them.
  Copier(const Function& from, bool time_first)
      : from_(from),
        time_first_(time_first),
        batch_(ir::BatchOf(from)),
        batch_dims_(ir::BatchDims(from)),
        last_dims_(ir::LastBatchDims(from)),
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

  // The layout of `value`, also of one that is none: its batch is made a dimension by itself.
  std::optional<BatchLayout> Seen(ValueId value) {
    if (const BatchLayout* layout = LayoutOf(value); layout != nullptr) return *layout;
    const ir::Dims& dims = DimsOf(value);
    if (batch_dims_[value] < 0 || last_dims_[value] != batch_dims_[value]) return std::nullopt;
    const int64_t outside = outside_[value];
    if (outside < 1) return std::nullopt;
    BatchLayout layout{.base = copy_.values[value], .groups = {}};
    std::vector<int64_t> shape;
    for (size_t d = 0; d < dims.size(); ++d) {
      std::vector<size_t>& group = layout.groups.emplace_back();
      const auto add = [&](int64_t size) {
        group.push_back(shape.size());
        shape.push_back(size);
      };
      if (d != static_cast<size_t>(batch_dims_[value])) {
        add(dims[d]);
        continue;
      }
      if (dims[d] % (outside * batch_) != 0) return std::nullopt;
      if (outside > 1) add(outside);
      layout.batch = shape.size();
      add(outside > 1 ? -1 : dims[d]);
    }
    if (shape.size() == dims.size()) return layout;
    layout.base = to_.Op(OpKind::kReshape, {layout.base}, "", {{"shape", shape}});
    if (!layout.base.valid()) return std::nullopt;
    return layout;
  }

  // `value` as it was.
  ValueId Plain(ValueId value) {
    ValueId& plain = copy_.values[value];
    const BatchLayout* layout = LayoutOf(value);
    if (plain.valid() || layout == nullptr) return plain;
    const OpId op = from_.producer(value);
    if (from_.kind(op) != OpKind::kExpand) return plain = See(*layout, DimsOf(value), "");
    const ValueId row = Plain(from_.operands(op)[0]);
    return plain = to_.Op(OpKind::kExpand, {row}, "", from_.attributes(op));
  }

  Regrouping GroupingOf(const BatchLayout& layout) const {
    return {.base = to_.type(layout.base).dims,
            .groups = layout.groups,
            .batch = layout.batch,
            .samples = batch_};
  }

  // Whether ranks can have their samples of a value of `layout` as it is, and nothing is moved for
  // it.
  bool MayStand(const BatchLayout& layout) const {
    if (BatchIsOutermost(layout.groups, layout.batch)) return true;
    return KeepsOrder(layout.groups) && !BatchIsInside(GroupingOf(layout));
  }

  ValueId See(const BatchLayout& layout, const ir::Dims& dims, absl::string_view name) {
    return ViewOf(to_, layout, dims, name);
  }

  // Whether the batch of `value` stands inside of a dimension, or may.
  bool IsInside(ValueId value) const { return batch_dims_[value] >= 0 && outside_[value] != 1; }

  // Transpose, Reshape and the like.
  bool CopyView(OpId op) {
    const bool transposes = from_.kind(op) == OpKind::kTranspose;
    if (!transposes && !IsView(from_.kind(op))) return false;
    const ValueId operand = from_.operands(op)[0], result = from_.result(op);
    const bool starts = transposes ? !time_first_ : IsInside(result);
    if (LayoutOf(operand) == nullptr && !starts) return false;
    std::optional<BatchLayout> layout = Seen(operand);
    if (!layout.has_value()) return false;
    if (transposes) {
      layout->groups = Permuted(layout->groups, PermutationOf(from_, op));
    } else if (!Reshape(DimsOf(result), *layout)) {
      return false;
    }
    if (MayStand(*layout)) {
      copy_.values[result] = See(*layout, DimsOf(result), from_.value_name(result));
    } else {
      layouts_[result.index()] = *std::move(layout);
    }
    return true;
  }

  // An Expand that makes the batch behind other dimensions, as of learned queries: it makes it
  // first.
  bool CopyMaker(OpId op) {
    if (from_.kind(op) != OpKind::kExpand || time_first_) return false;
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
    std::optional<Regrouping> regrouping = Regroup(GroupingOf(layout), to);
    if (!regrouping.has_value()) return false;
    layout.groups = std::move(regrouping->groups);
    layout.batch = regrouping->batch;
    if (regrouping->base == base) return true;
    std::vector<int64_t> shape(regrouping->base.begin(), regrouping->base.end());
    shape[layout.batch] = -1;
    layout.base = to_.Op(OpKind::kReshape, {layout.base}, "", {{"shape", shape}});
    return layout.base.valid();
  }

  // A base whose dimensions stand in the order of the value's: the move that has to be. A batch
  // that is first stays so, unless `all` are to stand in that order.
  void Order(const ir::Dims& dims, bool all, BatchLayout& layout) {
    std::vector<int64_t> perm;
    std::vector<size_t> position(to_.type(layout.base).dims.size(), 0);
    const auto put = [&](size_t dim) {
      position[dim] = perm.size();
      perm.push_back(static_cast<int64_t>(dim));
    };
    const bool stays = layout.batch == 0 && !all;
    if (stays) put(0);
    for (const size_t dim : OrderOf(layout.groups)) {
      if (!stays || dim != 0) put(dim);
    }
    if (std::ranges::is_sorted(perm)) return;
    layout.base = to_.Op(OpKind::kTranspose, {layout.base}, "", {{"perm", perm}});
    layout.batch = position[layout.batch];
    for (std::vector<size_t>& group : layout.groups) {
      for (size_t& dim : group) dim = position[dim];
    }
    if (layout.base.valid()) Reshape(dims, layout);  // what stands together now is one
  }

  // An op that has a rule, made of the bases of its operands; where they are in another order, of
  // those that are in theirs.
  bool CopyByRules(OpId op) {
    if (IsOneOfRows(op) && CopyOfRows(op)) return true;
    if (CopyByRule(op)) return true;
    bool any = false;
    for (const ValueId operand : from_.operands(op)) {
      const auto found = layouts_.find(operand.index());
      if (found == layouts_.end()) continue;
      const ValueId base = found->second.base;
      Order(DimsOf(operand), /*all=*/false, found->second);
      any = any || found->second.base != base;
    }
    if (any && to_.status().ok() && CopyByRule(op)) return true;
    return CopyAligned(op);
  }

  // Where operands have the batch inside of a dimension, but not all in the same way: made of bases
  // that all stand in the order of the values, time before batch; or of rows in another order.
  bool CopyAligned(OpId op) {
    const std::span<const ValueId> operands = from_.operands(op);
    const bool inside =
        std::ranges::any_of(operands, [&](ValueId operand) { return IsInside(operand); });
    if (!inside || !to_.status().ok()) return false;
    for (const ValueId operand : operands) {
      const std::optional<BatchLayout> layout = Seen(operand);
      if (layout.has_value()) layouts_.emplace(operand.index(), *layout);
    }
    const std::map<int32_t, BatchLayout> before = layouts_;
    for (const ValueId operand : operands) {
      const auto found = layouts_.find(operand.index());
      if (found != layouts_.end()) Order(DimsOf(operand), /*all=*/true, found->second);
    }
    if (!to_.status().ok() || CopyByRule(op)) return true;
    layouts_ = before;
    return CopyOfRows(op);
  }

  // An op made of rows in another order. What is made of one such value alone stays together with
  // it, as activations do with convolutions.
  bool CopyOfRows(OpId op) {
    const std::vector<BatchResult> results = ApplyToSamples(CallOf(op));
    for (size_t j = 0; j < results.size(); ++j) {
      const ValueId result = from_.result(op, static_cast<int32_t>(j));
      const bool seen = results[j].layout.has_value() && !IsOnlySummed(result);
      if (seen) layouts_[result.index()] = *results[j].layout;
      if (seen) of_rows_.insert(result.index());
      if (!seen) copy_.values[result] = results[j].value;
    }
    return !results.empty();
  }

  bool IsOneOfRows(OpId op) const {
    const std::span<const ValueId> operands = from_.operands(op);
    return operands.size() == 1 && from_.result_count(op) == 1 &&
           of_rows_.contains(operands[0].index());
  }

  // Losses of rows: only their sum counts, in whatever order they are.
  bool IsOnlySummed(ValueId value) const {
    const bool loss = std::ranges::any_of(from_.outputs(), [&](const ir::Output& output) {
      return output.value == value && output.role == ir::OutputRole::kLoss;
    });
    return loss && std::ranges::none_of(from_.order(), [&](OpId op) {
             return std::ranges::find(from_.operands(op), value) != from_.operands(op).end();
           });
  }

  BatchRuleCall CallOf(OpId op) {
    BatchRuleCall call{.function = from_, .op = op, .builder = to_, .operands = {}};
    for (const ValueId operand : from_.operands(op)) {
      const BatchLayout* layout = LayoutOf(operand);
      BatchOperand& one = call.operands.emplace_back();
      one.dims = DimsOf(operand);
      one.has_batch = batch_dims_[operand] >= 0;
      one.layout = layout;
      one.plain = layout == nullptr ? copy_.values[operand] : ValueId();
    }
    return call;
  }

  bool CopyByRule(OpId op) {
    const BatchRuleCall call = CallOf(op);
    const bool any = std::ranges::any_of(
        call.operands, [](const BatchOperand& operand) { return operand.layout != nullptr; });
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
  const bool time_first_;
  int64_t batch_;
  IdTable<ValueId, int8_t> batch_dims_, last_dims_;
  IdTable<ValueId, int64_t> outside_;
  ir::Builder to_;
  ir::FunctionCopy copy_;
  std::map<int32_t, BatchLayout> layouts_;  // by value of from_
  std::set<int32_t> of_rows_;               // values of from_ that CopyOfRows made
};

// Whether an op may put the batch elsewhere than first: what is told without looking for it.
bool MayMoveBatch(const Function& function, OpId op) {
  switch (function.kind(op)) {
    case OpKind::kTranspose: {
      const ValueId x = function.operands(op)[0];
      const std::vector<int64_t> perm = PermutationOf(function, op);
      return perm.size() > 1 && perm[0] != 0 &&
             (function.producer(x).valid() || ir::BatchOf(function) == function.type(x).dims[0]);
    }
    case OpKind::kLstm:
    case OpKind::kGru:
    case OpKind::kRnn:
      return true;
    case OpKind::kExpand:
      return function.attributes(op).Int("batch_dim", -1) > 0;
    default:
      return false;
  }
}

// Whether it is better to leave values with time first. Moves with the batch first may go into what
// attention and its like are fused to, which nobody counts here.
bool IsMuchBetter(const BatchCost& first, const BatchCost& second) {
  if (first.inside != second.inside) return second.inside < first.inside;
  return 2 * second.moved < first.moved;
}

absl::StatusOr<bool> BatchFirst(Function& function, const PassOptions&) {
  if (ir::BatchOf(function) < 2 || !function.mesh().empty()) return false;
  const bool any =
      std::ranges::any_of(function.order(), [&](OpId op) { return MayMoveBatch(function, op); });
  if (!any) return false;
  const BatchCost before = BatchCostOf(function);
  std::optional<Function> first = Copier(function, /*time_first=*/false).Run(),
                          second = Copier(function, /*time_first=*/true).Run();
  const BatchCost of_first = first.has_value() ? BatchCostOf(*first) : before,
                  of_second = second.has_value() ? BatchCostOf(*second) : before;
  const bool pays_first = PaysForBatch(before, of_first);
  if (PaysForBatch(before, of_second) && (!pays_first || IsMuchBetter(of_first, of_second))) {
    function = *std::move(second);
    return true;
  }
  if (pays_first) function = *std::move(first);
  return pays_first;
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
