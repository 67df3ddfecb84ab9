#include <cstdint>
#include <optional>
#include <vector>

#include "importer/onnx/onnx_op.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::importer {
namespace gather_nd_cc {
namespace {

bool HasRows(const NodeContext& c, ir::ValueId value, int64_t rows) {
  const ir::Dims& dims = c.type(value).dims;
  return !dims.empty() && dims[0] == rows && rows > 0;
}

bool CountsRows(const ir::Tensor& tensor) {
  if (tensor.is_float()) return false;
  const int64_t run = tensor.size() / tensor.dims()[0];
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.ints()[static_cast<size_t>(i)] != i / run) return false;
  }
  return true;
}

// Whether `value` is 0, 1, 2, … `rows` along its first dimension and the same along all others: a
// constant, or a Range over the batch, which is a CumSum of ones.
bool CountsRows(const NodeContext& c, ir::ValueId value, int64_t rows, int depth = 0) {
  constexpr int kMaxDepth = 16;
  if (!HasRows(c, value, rows) || depth > kMaxDepth) return false;
  if (const ir::Tensor* known = c.Known(value); known != nullptr) return CountsRows(*known);
  const ir::Function& function = c.function();
  const ir::OpId op = function.producer(value);
  if (!op.valid() || function.operands(op).empty()) return false;
  const ir::ValueId from = function.operands(op)[0];
  if (function.kind(op) == ir::OpKind::kCumSum) {
    const ir::AttributeSet& attributes = function.attributes(op);
    const ir::OpId expand = function.producer(from);
    if (attributes.Int("axis", 0) != 0 || attributes.Int("exclusive", 0) == 0 || !expand.valid() ||
        function.attributes(expand).Int("batch_dim", -1) != 0) {
      return false;
    }
    const ir::Tensor* one = c.Known(function.operands(expand)[0]);
    return one != nullptr && one->size() == 1 && one->Number(0) == 1;
  }
  const bool aligned = function.kind(op) != ir::OpKind::kExpand ||
                       c.type(from).dims.size() == c.type(value).dims.size();
  const bool copies =
      function.info(op).op_class == ir::OpClass::kView || function.kind(op) == ir::OpKind::kCast;
  return copies && aligned && CountsRows(c, from, rows, depth + 1);
}

// The indices without the first of each tuple, when that is the number of the sample: x[arange(n),
// i] takes place i of each sample, and leaves the batch where it is.
absl::StatusOr<std::optional<ir::ValueId>> WithoutSampleNumber(NodeContext& c) {
  const ir::Function& function = c.function();
  const ir::OpId op = function.producer(c.input(1));
  const ir::Dims dims = c.input_type(1).dims;
  if (!op.valid() || function.kind(op) != ir::OpKind::kConcat || dims.size() < 2) {
    return std::nullopt;
  }
  const int64_t axis = function.attributes(op).Int("axis", 0);
  const std::vector<ir::ValueId> parts(function.operands(op).begin(), function.operands(op).end());
  if (axis + 1 != static_cast<int64_t>(dims.size()) || parts.size() < 2 ||
      c.type(parts[0]).dims.back() != 1 || !HasRows(c, c.input(0), dims[0]) ||
      !CountsRows(c, parts[0], dims[0])) {
    return std::nullopt;
  }
  if (parts.size() == 2) return parts[1];
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId rest,
                          c.Op(ir::OpKind::kConcat, std::span(parts).subspan(1), {{"axis", axis}}));
  return rest;
}

absl::Status LowerGatherND(NodeContext& c) {
  if (const int64_t batch = c.Int("batch_dims", 0); batch != 0) {
    return c.Return(c.Op(ir::OpKind::kGatherND, {c.input(0), c.input(1)}, {{"batch_dims", batch}}));
  }
  ORRERY_ASSIGN_OR_RETURN(const std::optional<ir::ValueId> positions, WithoutSampleNumber(c));
  if (!positions.has_value()) {
    return c.Return(c.Op(ir::OpKind::kGatherND, {c.input(0), c.input(1)}));
  }
  return c.Return(
      c.Op(ir::OpKind::kGatherND, {c.input(0), *positions}, {{"batch_dims", int64_t{1}}}));
}

}  // namespace
}  // namespace gather_nd_cc

extern const OnnxOp kGatherNDOnnxOp = {
    .type = "GatherND", .inputs = 2, .lower = gather_nd_cc::LowerGatherND};

}  // namespace orrery::importer
