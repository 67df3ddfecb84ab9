#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"

// Ops that make, rename or move elements.

namespace orrery::ir {
namespace shape_cc {
namespace {

absl::Status IdentityGradient(GradientContext& c) {
  c.SetOperandGradient(0, c.result_gradient());
  return absl::OkStatus();
}

// Where each result dimension of a Transpose comes from; all reversed when `perm` is absent.
std::vector<int64_t> Permutation(const AttributeSet& attributes, size_t rank) {
  std::vector<int64_t> perm = attributes.Ints("perm");
  if (!perm.empty() || attributes.Find("perm") != nullptr) return perm;
  for (size_t d = rank; d > 0; --d) perm.push_back(static_cast<int64_t>(d) - 1);
  return perm;
}

absl::Status InferTranspose(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const std::vector<int64_t> perm = Permutation(op.attributes, x.dims.size());
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool permutes = sorted.size() == x.dims.size();
  for (size_t d = 0; permutes && d < sorted.size(); ++d)
    permutes = sorted[d] == static_cast<int64_t>(d);
  if (!permutes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "perm=[", absl::StrJoin(perm, ","), "] does not permute ", x.dims.size(), " dimensions"));
  }
  Dims dims;
  for (const int64_t from : perm) dims.push_back(x.dims[static_cast<size_t>(from)]);
  results.push_back({.dtype = x.dtype, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

ShardingRule TransposeSharding(const OpTypes& op, const TypeList&) {
  ShardingRule::Factors from, to;
  for (const int64_t dim : Permutation(op.attributes, op.operands[0]->dims.size())) {
    from.push_back(static_cast<int8_t>(from.size()));
    to.push_back(static_cast<int8_t>(dim));
  }
  return {.operands = {from}, .results = {to}};
}

absl::Status TransposeGradient(GradientContext& c) {
  const std::vector<int64_t> perm = Permutation(c.attributes(), c.operand_type(0).dims.size());
  std::vector<int64_t> inverse(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) {
    inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  }
  c.SetOperandGradient(0, c.builder().Op(OpKind::kTranspose, {c.result_gradient()},
                                         c.GradientName(0), {{"perm", inverse}}));
  return c.builder().status();
}

absl::Status EvaluateTranspose(Evaluation& e) {
  const Tensor& x = e.operand(0);
  const std::vector<int64_t> perm = Permutation(e.attributes, x.dims().size());
  const Dims from = StridesOf(x.dims());
  Dims strides;
  for (const int64_t dim : perm) strides.push_back(from[static_cast<size_t>(dim)]);
  for (Odometer at(e.results[0].dims(), {strides}); !at.done(); at.Next()) {
    e.results[0].CopyElement(at.index(), x, at.offset(0));
  }
  return absl::OkStatus();
}

absl::Status EvaluateIdentity(Evaluation& e) {
  e.results[0] = e.operand(0).Reshaped(e.results[0].dims());
  return absl::OkStatus();
}

absl::Status EvaluateConstant(Evaluation& e) {
  std::optional<Tensor> value = ConstantTensor(e.attributes, e.results[0].type());
  if (!value.has_value()) return absl::FailedPreconditionError("its values were not kept");
  e.results[0] = *std::move(value);
  return absl::OkStatus();
}

}  // namespace
}  // namespace shape_cc

// Its type is the one that its text or its builder gives: data is optional.
extern const OpInfo kConstantOp = {
    .name = "Constant",
    .summary = "a tensor known beforehand; `values` lists its elements, or `fill` is all of them",
    .op_class = OpClass::kView,
    .operands = 0,
    .evaluate = shape_cc::EvaluateConstant,
};

extern const OpInfo kIdentityOp = {
    .name = "Identity",
    .summary = "x under another name",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = InferUnary,
    .sharding = ElementwiseRule,
    .evaluate = shape_cc::EvaluateIdentity,
    .gradient = shape_cc::IdentityGradient,
    .strided_view = true,
    .linear = true,
};

extern const OpInfo kTransposeOp = {
    .name = "Transpose",
    .summary = "dimension d of the result is dimension perm[d] of x; all reversed without perm",
    .operands = 1,
    .infer = shape_cc::InferTranspose,
    .sharding = shape_cc::TransposeSharding,
    .evaluate = shape_cc::EvaluateTranspose,
    .gradient = shape_cc::TransposeGradient,
    .linear = true,
};

}  // namespace orrery::ir
