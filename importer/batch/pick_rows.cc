#include "importer/batch/pick_rows.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/batch.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/dead_code.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"

namespace orrery::importer {
namespace pick_rows_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// What a Gather picks: of x [batch,rows,..] by ids [batch].
struct Pick {
  ValueId x, ids;
};

std::optional<ir::Tensor> Known(const Function& function, ValueId value) {
  const OpId op = function.producer(value);
  if (!op.valid() || function.kind(op) != OpKind::kConstant) return std::nullopt;
  const auto tensor = ir::ConstantTensor(function.attributes(op), function.type(value));
  return tensor.has_value() && !tensor->is_float() ? tensor : std::nullopt;
}

// Whether all elements of an integer constant are `number`, looked at through Expand.
bool IsAll(const Function& function, ValueId value, int64_t number) {
  const OpId op = function.producer(value);
  if (op.valid() && function.kind(op) == OpKind::kExpand) value = function.operands(op)[0];
  const auto tensor = Known(function, value);
  return tensor.has_value() && tensor->size() > 0 &&
         std::ranges::all_of(tensor->ints(), [&](int64_t n) { return n == number; });
}

// Whether `value` is 0, rows, 2 rows, …: a constant, or what the importer makes of a Range over the
// batch.
bool CountsRows(const Function& function, ValueId value, int64_t rows) {
  if (const auto tensor = Known(function, value); tensor.has_value()) {
    for (int64_t i = 0; i < tensor->size(); ++i) {
      if (tensor->ints()[static_cast<size_t>(i)] != i * rows) return false;
    }
    return true;
  }
  const OpId op = function.producer(value);
  if (!op.valid()) return false;
  const auto operands = function.operands(op);
  if (function.kind(op) == OpKind::kMul) {
    const bool left = IsAll(function, operands[0], rows),
               right = IsAll(function, operands[1], rows);
    return (left || right) && CountsRows(function, operands[left ? 1 : 0], 1);
  }
  return rows == 1 && function.kind(op) == OpKind::kCumSum &&
         function.attributes(op).Int("exclusive", 0) != 0 && IsAll(function, operands[0], 1);
}

std::optional<Pick> MatchPick(const Function& function, OpId op, int64_t batch) {
  if (function.kind(op) != OpKind::kGather || function.attributes(op).Int("axis", 0) != 0) {
    return std::nullopt;
  }
  const OpId view = function.producer(function.operands(op)[0]);
  const OpId sum = function.producer(function.operands(op)[1]);
  if (!view.valid() || function.kind(view) != OpKind::kReshape) return std::nullopt;
  if (!sum.valid() || function.kind(sum) != OpKind::kAdd) return std::nullopt;
  const ValueId x = function.operands(view)[0];
  const ir::Dims &dims = function.type(x).dims, &flat = function.type(function.result(view)).dims;
  if (dims.size() < 2 || dims[0] != batch || flat.empty() || flat[0] != batch * dims[1]) {
    return std::nullopt;
  }
  if (!std::equal(dims.begin() + 2, dims.end(), flat.begin() + 1, flat.end())) return std::nullopt;
  for (const size_t i : {0u, 1u}) {
    const ValueId ids = function.operands(sum)[i];
    const bool one_each = function.type(ids).dims == ir::Dims{batch};
    if (one_each && CountsRows(function, function.operands(sum)[1 - i], dims[1])) {
      return Pick{.x = x, .ids = ids};
    }
  }
  return std::nullopt;
}

}  // namespace
}  // namespace pick_rows_cc

ir::Function PickRowsBySample(const ir::Function& function) {
  using pick_rows_cc::Pick;
  const int64_t batch = ir::BatchOf(function);
  const auto picks = [&](ir::OpId op) { return pick_rows_cc::MatchPick(function, op, batch); };
  if (batch < 1 ||
      std::ranges::none_of(function.order(), [&](ir::OpId op) { return picks(op).has_value(); })) {
    return function;
  }
  ir::Builder builder(function.name(), function.mesh());
  ir::FunctionCopy copy{.from = function, .to = builder.function()};
  for (const ir::Input& input : function.inputs()) ir::CopyInput(input, input.role, copy);
  for (const ir::OpId op : function.order()) {
    const std::optional<Pick> pick = picks(op);
    if (!pick.has_value()) {
      ir::CopyOp(op, copy);
      continue;
    }
    const ir::ValueId result = function.result(op);
    const ir::ValueId ids = builder.Op(ir::OpKind::kUnsqueeze, {copy.values[pick->ids]}, "",
                                       {{"axes", std::vector<int64_t>{1}}});
    copy.values[result] = builder.Op(ir::OpKind::kGatherND, {copy.values[pick->x], ids},
                                     function.value_name(result), {{"batch_dims", int64_t{1}}});
    if (!builder.status().ok()) return function;
  }
  ir::CopyOutputs(function.outputs(), copy);
  absl::StatusOr<ir::Function> changed = std::move(builder).Finalize();
  if (!changed.ok()) return function;
  ir::RemoveDeadOps(*changed);
  return *std::move(changed);
}

}  // namespace orrery::importer
