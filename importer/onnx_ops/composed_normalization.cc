#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx_op.h"
#include "ir/op_info.h"
#include "support/status.h"

// Normalizations that are a few plain ops.

namespace orrery::importer {
namespace {

using ir::OpKind;
using ir::ValueId;

absl::StatusOr<ValueId> Reduced(NodeContext& c, OpKind kind, ValueId x,
                                const std::vector<int64_t>& axes) {
  return c.Op(kind, {x}, {{"axes", axes}, {"keepdims", int64_t{1}}});
}

// x over its p-norm along an axis.
absl::Status LowerLpNormalization(NodeContext& c) {
  const int64_t p = c.Int("p", 2);
  if (p != 1 && p != 2) {
    return absl::InvalidArgumentError(absl::StrCat("p is ", p, "; wanted 1 or 2"));
  }
  const ValueId x = c.input(0);
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", -1), c.type(x).dims.size()));
  ORRERY_ASSIGN_OR_RETURN(const ValueId powers,
                          p == 1 ? c.Op(OpKind::kAbs, {x}) : c.Op(OpKind::kMul, {x, x}));
  ORRERY_ASSIGN_OR_RETURN(ValueId norm,
                          Reduced(c, OpKind::kReduceSum, powers, {static_cast<int64_t>(axis)}));
  if (p == 2) {
    ORRERY_ASSIGN_OR_RETURN(norm, c.Op(OpKind::kSqrt, {norm}));
  }
  return c.Return(c.Op(OpKind::kDiv, {x, norm}));
}

// (x - mean) over the standard deviation, which a small number keeps from zero.
absl::Status LowerMeanVarianceNormalization(NodeContext& c) {
  std::vector<int64_t> axes;
  for (const int64_t axis : c.Ints("axes", {0, 2, 3})) {
    ORRERY_ASSIGN_OR_RETURN(const size_t normal,
                            ir::NormalizeAxis(axis, c.input_type(0).dims.size()));
    axes.push_back(static_cast<int64_t>(normal));
  }
  const ir::TensorType scalar = {.dtype = c.input_type(0).dtype, .dims = {}, .sharding = {}};
  ORRERY_ASSIGN_OR_RETURN(const ValueId mean, Reduced(c, OpKind::kReduceMean, c.input(0), axes));
  ORRERY_ASSIGN_OR_RETURN(const ValueId centered, c.Op(OpKind::kSub, {c.input(0), mean}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId squares, c.Op(OpKind::kMul, {centered, centered}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId variance, Reduced(c, OpKind::kReduceMean, squares, axes));
  ORRERY_ASSIGN_OR_RETURN(const ValueId deviation, c.Op(OpKind::kSqrt, {variance}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId epsilon, c.Constant(scalar, {{"fill", 1e-9}}));
  ORRERY_ASSIGN_OR_RETURN(const ValueId divisor, c.Op(OpKind::kAdd, {deviation, epsilon}));
  return c.Return(c.Op(OpKind::kDiv, {centered, divisor}));
}

}  // namespace

extern const OnnxOp kLpNormalizationOnnxOp = {.type = "LpNormalization",
                                              .lower = LowerLpNormalization};
extern const OnnxOp kMeanVarianceNormalizationOnnxOp = {
    .type = "MeanVarianceNormalization", .since_opset = 9, .lower = LowerMeanVarianceNormalization};

}  // namespace orrery::importer
