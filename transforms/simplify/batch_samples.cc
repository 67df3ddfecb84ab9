#include <algorithm>
#include <optional>
#include <utility>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/sharding_rule.h"
#include "transforms/simplify/batch_rules.h"

// Ops that compute each row of [time · batch] by itself, whatever they do with the rest, as a
// convolution of frames does: rows may as well stand as [batch · time].

namespace orrery::transforms {
namespace batch_samples_cc {
namespace {

using ir::Dims;
using ir::ValueId;

// What the rows of all operands are: a factor of the op, and the sizes that it runs over, those
// outside of the batch first.
struct Rows {
  int8_t factor = ir::kNoFactor;
  Dims sizes;
  size_t batch = 0;  // which of them
};

size_t DimOfBatch(const BatchLayout& layout) {
  size_t k = 0;
  while (std::ranges::find(layout.groups[k], layout.batch) == layout.groups[k].end()) ++k;
  return k;
}

std::optional<Rows> RowsOf(const BatchRuleCall& call, const ir::ShardingRule& rule) {
  std::optional<Rows> rows;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const BatchOperand& operand = call.operands[i];
    if (operand.layout == nullptr) {
      if (operand.has_batch) return std::nullopt;
      continue;
    }
    const size_t dim = DimOfBatch(*operand.layout);
    const Dims& base = call.builder.type(operand.layout->base).dims;
    Rows own{.factor = rule.operands[i][dim], .sizes = {}, .batch = 0};
    for (const size_t d : operand.layout->groups[dim]) {
      if (d == operand.layout->batch) own.batch = own.sizes.size();
      own.sizes.push_back(base[d]);
    }
    if (own.factor == ir::kNoFactor) return std::nullopt;
    if (!rows.has_value()) rows = own;
    const bool same = own.factor == rows->factor && own.sizes == rows->sizes;
    if (!same || own.batch != rows->batch) return std::nullopt;
  }
  return rows;
}

// Whether nothing else of an op runs over the rows.
bool RowsStandAlone(const BatchRuleCall& call, const ir::ShardingRule& rule, int8_t factor) {
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    const bool has = call.operands[i].layout != nullptr;
    if (std::ranges::count(rule.operands[i], factor) != (has ? 1 : 0)) return false;
  }
  return std::ranges::all_of(
      rule.results, [&](const auto& result) { return std::ranges::count(result, factor) < 2; });
}

BatchLayout BatchOutermost(BatchLayout layout) {
  std::vector<size_t>& group = layout.groups[DimOfBatch(layout)];
  const auto batch = std::ranges::find(group, layout.batch);
  std::rotate(group.begin(), batch, batch + 1);
  return layout;
}

// The layout of a result whose dimension `dim` runs over the rows, the batch first.
BatchLayout Seen(const BatchRuleCall& call, ValueId value, size_t dim, const Rows& rows) {
  const Dims dims = call.builder.type(value).dims;
  BatchLayout layout;
  std::vector<int64_t> shape;
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<size_t>& group = layout.groups.emplace_back();
    if (d != dim) {
      group.push_back(shape.size());
      shape.push_back(dims[d]);
      continue;
    }
    layout.batch = shape.size();
    shape.push_back(-1);
    for (size_t r = 0; r < rows.sizes.size(); ++r) {
      group.push_back(r == rows.batch ? layout.batch : shape.size());
      if (r != rows.batch) shape.push_back(rows.sizes[r]);
    }
  }
  layout.base = call.builder.Op(ir::OpKind::kReshape, {value}, "", {{"shape", shape}});
  return layout;
}

}  // namespace
}  // namespace batch_samples_cc

ir::ValueId ViewOf(ir::Builder& builder, const BatchLayout& layout, const ir::Dims& dims,
                   absl::string_view name) {
  const bool moves = !KeepsOrder(layout.groups);
  const bool shapes =
      std::ranges::any_of(layout.groups, [](const auto& group) { return group.size() != 1; });
  ir::ValueId value = layout.base;
  if (moves) {
    const std::vector<size_t> order = OrderOf(layout.groups);
    const std::vector<int64_t> perm(order.begin(), order.end());
    value = builder.Op(ir::OpKind::kTranspose, {value}, shapes ? "" : name, {{"perm", perm}});
  }
  if (!shapes) return value;
  std::vector<int64_t> shape(dims.begin(), dims.end());
  for (size_t k = 0; k < shape.size(); ++k) {
    if (std::ranges::find(layout.groups[k], layout.batch) != layout.groups[k].end()) shape[k] = -1;
  }
  return builder.Op(ir::OpKind::kReshape, {value}, name, {{"shape", shape}});
}

std::vector<BatchResult> ApplyToSamples(const BatchRuleCall& call) {
  using batch_samples_cc::Rows;
  const ir::ShardingRule rule = ir::RuleOf(call.function, call.op);
  if (rule.operands.size() != call.operands.size()) return {};
  const std::optional<Rows> rows = batch_samples_cc::RowsOf(call, rule);
  if (!rows.has_value() || !batch_samples_cc::RowsStandAlone(call, rule, rows->factor)) return {};
  std::vector<ir::ValueId> operands;
  for (const BatchOperand& operand : call.operands) {
    if (operand.layout == nullptr) {
      operands.push_back(operand.plain);
      continue;
    }
    const BatchLayout rotated = batch_samples_cc::BatchOutermost(*operand.layout);
    operands.push_back(ViewOf(call.builder, rotated, operand.dims, ""));
  }
  const ir::OpId op = call.builder.Ops(call.function.kind(call.op), operands, {},
                                       call.function.attributes(call.op));
  std::vector<BatchResult> results;
  if (!op.valid()) return results;
  for (size_t j = 0; j < rule.results.size(); ++j) {
    const ir::ValueId value = call.builder.function().result(op, static_cast<int32_t>(j));
    BatchResult& result = results.emplace_back(BatchResult{.value = value, .layout = {}});
    const auto dim = std::ranges::find(rule.results[j], rows->factor);
    if (dim == rule.results[j].end()) continue;
    const auto at = static_cast<size_t>(dim - rule.results[j].begin());
    result.layout = batch_samples_cc::Seen(call, value, at, *rows);
  }
  return results;
}

}  // namespace orrery::transforms
