#include "transforms/simplify/batch_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace batch_rules_cc {
namespace {

using ir::AttributeSet;
using ir::Dims;
using ir::OpKind;
using ir::ValueId;
using Layouts = std::vector<BatchLayout>;

Dims BaseDims(const BatchRuleCall& call, const BatchLayout& layout) {
  return call.builder.type(layout.base).dims;
}

// Appends the op; its results are seen as `seen` is, in bases of their own.
Layouts Append(const BatchRuleCall& call, std::span<const ValueId> operands,
               const AttributeSet& attributes, const BatchLayout& seen) {
  const ir::OpId op = call.builder.Ops(call.function.kind(call.op), operands, {}, attributes);
  Layouts results;
  if (!op.valid()) return results;
  const ir::Function& to = call.builder.function();
  for (int32_t j = 0; j < to.result_count(op); ++j) {
    BatchLayout& result = results.emplace_back(seen);
    result.base = to.result(op, j);
    // Statistics may lack the last dimensions.
    result.groups.resize(call.function.type(call.function.result(call.op, j)).dims.size());
  }
  return results;
}

// The dimension of the base that dimension k of the value is; nothing for the batch, and where it
// is none of its own.
std::optional<size_t> OwnDim(const BatchLayout& layout, size_t k) {
  const DimGroups& groups = layout.groups;
  if (k >= groups.size() || groups[k].size() != 1 || groups[k][0] == layout.batch) {
    return std::nullopt;
  }
  return groups[k][0];
}

// Whether two layouts run over bases of the same kind in the same way.
bool Alike(const BatchLayout& one, const BatchLayout& other) {
  return one.groups == other.groups && one.batch == other.batch;
}

// Whether the last dimension of the value is the last one of its base.
bool KeepsLast(const BatchRuleCall& call, const BatchLayout& layout) {
  const size_t last = BaseDims(call, layout).size() - 1;
  return OwnDim(layout, layout.groups.size() - 1) == last;
}

size_t AxisOrLast(const AttributeSet& attributes, size_t rank) {
  const int64_t axis = attributes.Int("axis", -1);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

std::vector<ValueId> PlainOperands(const BatchRuleCall& call) {
  std::vector<ValueId> operands;
  for (const BatchOperand& operand : call.operands) operands.push_back(operand.plain);
  return operands;
}

// Whether operands from `first` on are no layouts and have no batch.
bool OthersArePlain(const BatchRuleCall& call, size_t first) {
  return std::all_of(
      call.operands.begin() + static_cast<std::ptrdiff_t>(first), call.operands.end(),
      [](const BatchOperand& operand) { return operand.layout == nullptr && !operand.has_batch; });
}

// --- element by element

// A value without a batch, that is broadcast against a value of `layout`, so that it broadcasts
// against its base.
std::optional<ValueId> Aligned(const BatchRuleCall& call, const BatchOperand& operand,
                               const BatchLayout& layout) {
  const Dims base = BaseDims(call, layout);
  const size_t rank = layout.groups.size();
  if (operand.dims.size() > rank) return std::nullopt;
  Dims wide(base.size(), 1);  // in the order of the base
  std::vector<int64_t> parted, perm(base.size());
  for (size_t k = 0; k < rank; ++k) {
    const size_t missing = rank - operand.dims.size();
    const int64_t size = k < missing ? 1 : operand.dims[k - missing];
    for (const size_t dim : layout.groups[k]) {
      if (size != 1 && dim == layout.batch) return std::nullopt;
      perm[dim] = static_cast<int64_t>(parted.size());
      wide[dim] = size == 1 ? 1 : base[dim];
      parted.push_back(wide[dim]);
    }
    if (layout.groups[k].empty() && size != 1) return std::nullopt;
  }
  if (ir::ElementCount(wide) != ir::ElementCount(operand.dims)) return std::nullopt;
  const auto begin = std::ranges::find_if(wide, [](int64_t n) { return n != 1; });
  Dims own = operand.dims;
  while (!own.empty() && own[0] == 1) own.erase(own.begin());
  const bool sorted = [&] {  // of the dimensions that are more than 1
    int64_t last = -1;
    for (size_t d = 0; d < perm.size(); ++d) {
      if (wide[d] != 1 && std::exchange(last, perm[d]) > perm[d]) return false;
    }
    return true;
  }();
  ValueId value = operand.plain;
  if (sorted && own == Dims(begin, wide.end())) {
    if (own == operand.dims || operand.dims.size() <= base.size()) return value;
  }
  if (!sorted) {
    value = call.builder.Op(OpKind::kReshape, {value}, "", {{"shape", parted}});
    return call.builder.Op(OpKind::kTranspose, {value}, "", {{"perm", perm}});
  }
  const std::vector<int64_t> shape(wide.begin(), wide.end());
  return call.builder.Op(OpKind::kReshape, {value}, "", {{"shape", shape}});
}

// The layout whose value has as many dimensions as the result.
const BatchLayout* Leading(const BatchRuleCall& call) {
  const size_t rank = call.function.type(call.function.result(call.op)).dims.size();
  for (const BatchOperand& operand : call.operands) {
    if (operand.layout != nullptr && operand.dims.size() == rank) return operand.layout;
  }
  return nullptr;
}

Layouts Elementwise(const BatchRuleCall& call) {
  const BatchLayout* leading = Leading(call);
  if (leading == nullptr) return {};
  for (const BatchOperand& operand : call.operands) {
    if (operand.layout == nullptr ? operand.has_batch : !Alike(*operand.layout, *leading))
      return {};
  }
  std::vector<ValueId> operands;
  for (const BatchOperand& operand : call.operands) {
    if (operand.layout != nullptr) {
      operands.push_back(operand.layout->base);
      continue;
    }
    const std::optional<ValueId> aligned = Aligned(call, operand, *leading);
    if (!aligned.has_value()) return {};
    operands.push_back(*aligned);
  }
  return Append(call, operands, call.function.attributes(call.op), *leading);
}

// --- along some dimensions

// Along the dimension `axis` of operand 0.
Layouts Along(const BatchRuleCall& call, size_t axis) {
  const BatchLayout* x = call.operands[0].layout;
  if (x == nullptr || !OthersArePlain(call, 1)) return {};
  AttributeSet attributes = call.function.attributes(call.op);
  const auto dim = OwnDim(*x, axis);
  if (!dim.has_value()) return {};
  attributes.Set("axis", static_cast<int64_t>(*dim));
  std::vector<ValueId> operands = PlainOperands(call);
  operands[0] = x->base;
  return Append(call, operands, attributes, *x);
}

Layouts AlongAxis(const BatchRuleCall& call) {
  return Along(call, AxisOrLast(call.function.attributes(call.op), call.operands[0].dims.size()));
}

// Without `axis` an op that takes parts goes along the first dimension.
Layouts AlongAxisOrFirst(const BatchRuleCall& call) {
  return Along(call, static_cast<size_t>(call.function.attributes(call.op).Int("axis", 0)));
}

// Normalizes the last dimension, which stays the last.
Layouts Norm(const BatchRuleCall& call) {
  const BatchLayout* x = call.operands[0].layout;
  if (x == nullptr || !KeepsLast(call, *x)) return {};
  const size_t rank = x->groups.size();
  if (AxisOrLast(call.function.attributes(call.op), rank) + 1 != rank) return {};
  return AlongAxis(call);
}

// Rows of x, operand 0, times matrices.
Layouts Rows(const BatchRuleCall& call) {
  const BatchLayout* x = call.operands[0].layout;
  if (x == nullptr || !KeepsLast(call, *x) || !OthersArePlain(call, 1)) return {};
  const AttributeSet& attributes = call.function.attributes(call.op);
  if (attributes.Int("transpose_x", 0) != 0 || call.operands[1].dims.size() != 2) return {};
  std::vector<ValueId> operands = PlainOperands(call);
  operands[0] = x->base;
  return Append(call, operands, attributes, *x);
}

// Matrices by matrices: all but the last two dimensions are those of the batch.
Layouts Product(const BatchRuleCall& call) {
  const BatchLayout *x = call.operands[0].layout, *w = call.operands[1].layout;
  if (w == nullptr) return Rows(call);
  if (x == nullptr || !Alike(*x, *w) || x->groups.size() < 3) return {};
  const size_t rank = x->groups.size(), own = BaseDims(call, *x).size();
  if (OwnDim(*x, rank - 2) != own - 2 || !KeepsLast(call, *x)) return {};
  return Append(call, std::vector{x->base, w->base}, call.function.attributes(call.op), *x);
}

// The dimensions of the base that the attribute `axes` names; nothing where the batch is among
// them.
std::optional<std::vector<int64_t>> AxesOfBase(const BatchRuleCall& call, const BatchLayout& layout,
                                               bool own) {
  std::vector<int64_t> axes;
  for (const int64_t axis : call.function.attributes(call.op).Ints("axes")) {
    const std::vector<size_t>& group = layout.groups[static_cast<size_t>(axis)];
    if (own && group.size() != 1) return std::nullopt;
    for (const size_t dim : group) {
      if (dim == layout.batch) return std::nullopt;
      axes.push_back(static_cast<int64_t>(dim));
    }
  }
  return axes;
}

// The layout without the dimensions `axes` of the value, which are `gone` of the base.
BatchLayout Without(const BatchLayout& layout, const std::vector<int64_t>& axes,
                    const std::vector<int64_t>& gone) {
  const auto moved = [&](size_t dim) {
    return dim - static_cast<size_t>(std::ranges::count_if(
                     gone, [&](int64_t d) { return d < static_cast<int64_t>(dim); }));
  };
  BatchLayout left{.base = layout.base, .groups = {}, .batch = moved(layout.batch)};
  for (size_t k = 0; k < layout.groups.size(); ++k) {
    if (std::ranges::find(axes, static_cast<int64_t>(k)) != axes.end()) continue;
    std::vector<size_t>& group = left.groups.emplace_back();
    for (const size_t dim : layout.groups[k]) group.push_back(moved(dim));
  }
  return left;
}

Layouts Reduction(const BatchRuleCall& call) {
  const BatchLayout* x = call.operands[0].layout;
  if (x == nullptr || call.operands.size() > 1) return {};
  AttributeSet attributes = call.function.attributes(call.op);
  std::optional<std::vector<int64_t>> axes = AxesOfBase(call, *x, /*own=*/false);
  if (!axes.has_value() || axes->empty()) return {};
  std::ranges::sort(*axes);
  const bool keeps = attributes.Int("keepdims", 0) != 0;
  const BatchLayout left = keeps ? *x : Without(*x, attributes.Ints("axes"), *axes);
  attributes.Set("axes", *axes);
  return Append(call, std::vector{x->base}, attributes, left);
}

// What takes parts along `axes`.
Layouts Parts(const BatchRuleCall& call) {
  const BatchLayout* x = call.operands[0].layout;
  if (x == nullptr || call.operands.size() > 1) return {};
  AttributeSet attributes = call.function.attributes(call.op);
  const std::optional<std::vector<int64_t>> axes = AxesOfBase(call, *x, /*own=*/true);
  if (!axes.has_value()) return {};
  attributes.Set("axes", *axes);
  return Append(call, std::vector{x->base}, attributes, *x);
}

// Layouts of one base's shape, one behind another along `axis`.
Layouts Join(const BatchRuleCall& call) {
  const BatchLayout* first = call.operands[0].layout;
  if (first == nullptr) return {};
  std::vector<ValueId> operands;
  for (const BatchOperand& operand : call.operands) {
    if (operand.layout == nullptr || !Alike(*operand.layout, *first)) return {};
    operands.push_back(operand.layout->base);
  }
  AttributeSet attributes = call.function.attributes(call.op);
  const auto dim = OwnDim(*first, static_cast<size_t>(attributes.Int("axis", 0)));
  if (!dim.has_value()) return {};
  attributes.Set("axis", static_cast<int64_t>(*dim));
  return Append(call, operands, attributes, *first);
}

// One of what stands along a dimension, x[0] of time: the value that is taken lacks it.
Layouts One(const BatchRuleCall& call) {
  const BatchLayout* x = call.operands[0].layout;
  if (!OthersArePlain(call, 1) || !call.operands[1].dims.empty()) return {};
  AttributeSet attributes = call.function.attributes(call.op);
  const int64_t axis = attributes.Int("axis", 0);
  const auto dim = OwnDim(*x, static_cast<size_t>(axis));
  if (!dim.has_value()) return {};
  const auto own = static_cast<int64_t>(*dim);
  attributes.Set("axis", own);
  return Append(call, std::vector{x->base, call.operands[1].plain}, attributes,
                Without(*x, {axis}, {own}));
}

// Rows of a table that indices name.
Layouts Lookup(const BatchRuleCall& call) {
  if (call.operands[0].layout != nullptr) return One(call);
  const BatchLayout* ids = call.operands[1].layout;
  const BatchOperand& table = call.operands[0];
  const AttributeSet& attributes = call.function.attributes(call.op);
  if (ids == nullptr || table.has_batch || attributes.Int("axis", 0) != 0) return {};
  BatchLayout rows = *ids;
  const size_t rank = BaseDims(call, *ids).size();
  for (size_t d = 1; d < table.dims.size(); ++d) rows.groups.push_back({rank + d - 1});
  return Append(call, std::vector{table.plain, ids->base}, attributes, rows);
}

Layouts Apply(const BatchRuleCall& call) {
  const ir::OpInfo& info = call.function.info(call.op);
  if (info.gradient == nullptr && info.op_class != ir::OpClass::kCompute) return {};
  switch (call.function.kind(call.op)) {
    case OpKind::kMatMul:
      return Product(call);
    case OpKind::kLinear:
    case OpKind::kLinearGroup:
      return Rows(call);
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      return AlongAxis(call);
    case OpKind::kSplit:
      return AlongAxisOrFirst(call);
    case OpKind::kLayerNorm:
    case OpKind::kRmsNorm:
      return Norm(call);
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
      return Reduction(call);
    case OpKind::kSlice:
      return Parts(call);
    case OpKind::kConcat:
      return Join(call);
    case OpKind::kGather:
      return Lookup(call);
    case OpKind::kDropout:
      return Elementwise(call);
    default:
      return info.sharding == ir::ElementwiseRule && !info.is_loss && !info.seeds_backward
                 ? Elementwise(call)
                 : Layouts();
  }
}

}  // namespace
}  // namespace batch_rules_cc

std::vector<BatchLayout> ApplyBatchRule(const BatchRuleCall& call) {
  return batch_rules_cc::Apply(call);
}

}  // namespace orrery::transforms
