#include <Eigen/Dense>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// Determinants of square matrices.

namespace orrery::ir {
namespace determinant_cc {
namespace {

using Matrix = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

absl::Status CheckSquare(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  const Dims& x = op.operands[0]->dims;
  if (x.size() >= 2 && x[x.size() - 1] == x[x.size() - 2]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got shape ", Show(x), "; wanted [..,n,n]"));
}

Dims Leading(const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); }

absl::Status InferDet(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckSquare(op));
  AddResult(results, op.operands[0]->dtype, Leading(op.operands[0]->dims));
  return absl::OkStatus();
}

absl::Status InferDetGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckSquare(op));
  ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, 1));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 1, Leading(op.operands[0]->dims), "as the result"));
  return InferUnary(op, results);
}

// Elimination: 2/3 n³.
double DetFlops(const OpTypes& op, const TypeList&) {
  const Dims& x = op.operands[0]->dims;
  return 2.0 / 3 * static_cast<double>(ElementCount(x)) * static_cast<double>(x.back());
}

ShardingRule DetSharding(const OpTypes& op, const TypeList& results) {
  const size_t leading = op.operands[0]->dims.size() - 2;
  const auto factors = [leading](const TensorType& type) {
    ShardingRule::Factors row(type.dims.size(), kNoFactor);
    for (size_t d = 0; d < leading; ++d) row[d] = static_cast<int8_t>(d);
    return row;
  };
  ShardingRule rule;
  for (const TensorType* operand : op.operands) rule.operands.push_back(factors(*operand));
  for (const TensorType& result : results) rule.results.push_back(factors(result));
  return rule;
}

Matrix MatrixAt(const Tensor& x, int64_t i) {
  const int64_t n = x.dims().back();
  return Matrix(const_cast<double*>(x.floats().data()) + i * n * n, n, n);
}

absl::Status EvaluateDet(Evaluation& e) {
  for (int64_t i = 0; i < e.results[0].size(); ++i) {
    const Matrix x = MatrixAt(e.operand(0), i);
    e.results[0].SetNumber(i, x.size() == 0 ? 1 : Eigen::MatrixXd(x).partialPivLu().determinant());
  }
  return absl::OkStatus();
}

// dx = dy det(x) x^-T.
absl::Status EvaluateDetGrad(Evaluation& e) {
  for (int64_t i = 0; i < e.operand(1).size(); ++i) {
    const Eigen::MatrixXd x = MatrixAt(e.operand(0), i);
    if (x.size() == 0) continue;
    const auto factors = x.partialPivLu();
    MatrixAt(e.results[0], i) =
        e.operand(1).Number(i) * factors.determinant() * factors.inverse().transpose();
  }
  return absl::OkStatus();
}

absl::Status DetGradient(GradientContext& c) {
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kDetGrad, {c.operand(0), c.result_gradient()}, c.GradientName(0)));
  return c.builder().status();
}

}  // namespace
}  // namespace determinant_cc

extern const OpInfo kDetOp = {
    .name = "Det",
    .summary = "determinants of x [..,n,n]",
    .operands = 1,
    .infer = determinant_cc::InferDet,
    .flops = determinant_cc::DetFlops,
    .sharding = determinant_cc::DetSharding,
    .evaluate = determinant_cc::EvaluateDet,
    .gradient = determinant_cc::DetGradient,
};

extern const OpInfo kDetGradOp = {
    .name = "DetGrad",
    .summary = "gradient of Det(x) from x and that of its result",
    .operands = 2,
    .infer = determinant_cc::InferDetGrad,
    .flops = [](const OpTypes& op,
                const TypeList& r) { return 4 * determinant_cc::DetFlops(op, r); },
    .sharding = determinant_cc::DetSharding,
    .evaluate = determinant_cc::EvaluateDetGrad,
};

}  // namespace orrery::ir
