#include "ir/ops/kernels.h"

#include <algorithm>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "support/status.h"

namespace orrery::ir {

absl::Status InferUnary(const OpTypes& op, TypeList& results) {
  results.push_back({.dtype = op.operands[0]->dtype, .dims = op.operands[0]->dims, .sharding = {}});
  return absl::OkStatus();
}

absl::Status InferBroadcast(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &y = *op.operands[1];
  if (x.dtype != y.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("element types differ; got ", ToString(x.dtype), " and ", ToString(y.dtype)));
  }
  const std::optional<Dims> dims = BroadcastDims(x.dims, y.dims);
  if (!dims.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shapes ", Show(x.dims), " and ", Show(y.dims), " do not broadcast"));
  }
  results.push_back({.dtype = x.dtype, .dims = *dims, .sharding = {}});
  return absl::OkStatus();
}

absl::Status InferSameShapes(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, 1));
  if (op.operands[0]->dims != op.operands[1]->dims) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shapes differ; got ", Show(op.operands[0]->dims), " and ", Show(op.operands[1]->dims)));
  }
  return InferUnary(op, results);
}

double OneFlopAnElement(const OpTypes&, const TypeList& results) {
  return static_cast<double>(ElementCount(results[0].dims));
}

ValueId Unbroadcast(GradientContext& c, ValueId gradient, int i) {
  const Dims from = c.builder().type(gradient).dims, to = c.operand_type(i).dims;
  if (from == to) return gradient;
  const size_t added = from.size() - to.size();
  std::vector<int64_t> gone, kept;  // dimensions that vanish, and that stay with size 1
  for (size_t d = 0; d < from.size(); ++d) {
    if (d < added) {
      gone.push_back(static_cast<int64_t>(d));
    } else if (to[d - added] == 1 && from[d] != 1) {
      kept.push_back(static_cast<int64_t>(d));
    }
  }
  if (!kept.empty()) {
    const AttributeSet keep = {{"axes", kept}, {"keepdims", int64_t{1}}};
    gradient =
        c.builder().Op(OpKind::kReduceSum, {gradient}, gone.empty() ? c.GradientName(i) : "", keep);
  }
  if (gone.empty()) return gradient;
  return c.builder().Op(OpKind::kReduceSum, {gradient}, c.GradientName(i), {{"axes", gone}});
}

}  // namespace orrery::ir
