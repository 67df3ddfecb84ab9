#include "ir/ops/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "ir/ops/kernels.h"
#include "ir/ops/matrix_product.h"
#include "ir/tensor.h"

namespace orrery::ir {
namespace newton_schulz_cc {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kEpsilon = 1e-7;  // of the norm

using Matrix = std::vector<double>;

// to = a b, of row-major matrices; `flip`: b counts as its transpose.
Matrix Product(Matrix& a, Matrix& b, int64_t m, int64_t k, int64_t n, bool flip) {
  Matrix to(static_cast<size_t>(m * n), 0);
  const MatrixView<double> right = {
      .data = b.data(), .rows = flip ? n : k, .columns = flip ? k : n};
  AddProduct<double>({.data = to.data(), .rows = m, .columns = n},
                     {.data = a.data(), .rows = m, .columns = k}, right.Transposed(flip));
  return to;
}

Matrix Transposed(const double* matrix, int64_t rows, int64_t columns) {
  Matrix flipped(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      flipped[static_cast<size_t>(c * rows + r)] = matrix[r * columns + c];
    }
  }
  return flipped;
}

absl::Status Infer(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  if (x.dims.size() < 2 || !IsFloat(x.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("got ", ToString(x.dtype), Show(x.dims),
                                                   "; wanted matrices [..,m,n] of floating point"));
  }
  if (absl::Status status = CheckNewtonSchulzSteps(op.attributes); !status.ok()) return status;
  return InferUnary(op, results);
}

// Matrices are made orthogonal whole.
ShardingRule Rule(const OpTypes& op, const TypeList&) {
  ShardingRule::Factors factors(op.operands[0]->dims.size(), kNoFactor);
  for (size_t d = 0; d + 2 < factors.size(); ++d) factors[d] = static_cast<int8_t>(d);
  return {.operands = {factors}, .results = {factors}};
}

absl::Status Evaluate(Evaluation& e) {
  const Tensor& x = e.operand(0);
  const int64_t rows = x.dims()[x.dims().size() - 2], columns = x.dims().back();
  const double scale = e.attributes.Number("scale", 1);
  for (int64_t from = 0; from < x.size(); from += rows * columns) {
    const Matrix y =
        Orthogonal(x.floats().data() + from, rows, columns, NewtonSchulzStepsOf(e.attributes));
    for (size_t i = 0; i < y.size(); ++i) {
      e.results[0].SetNumber(from + static_cast<int64_t>(i), scale * y[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace newton_schulz_cc

int64_t NewtonSchulzStepsOf(const AttributeSet& attributes) {
  return attributes.Int("steps", kNewtonSchulzSteps);
}

absl::Status CheckNewtonSchulzSteps(const AttributeSet& attributes) {
  const Attribute* given = attributes.Find("steps");
  if (given != nullptr && !std::holds_alternative<int64_t>(*given)) {
    return absl::InvalidArgumentError("got steps that are no whole number; wanted 1 to 100");
  }
  const int64_t steps = NewtonSchulzStepsOf(attributes);
  if (steps >= 1 && steps <= 100) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", steps, " steps; wanted 1 to 100"));
}

std::vector<double> Orthogonal(const double* matrix, int64_t rows, int64_t columns, int64_t steps) {
  using newton_schulz_cc::Matrix;
  const bool flip = rows > columns;
  Matrix x = flip ? newton_schulz_cc::Transposed(matrix, rows, columns)
                  : Matrix(matrix, matrix + rows * columns);
  const int64_t m = std::min(rows, columns), n = std::max(rows, columns);
  double norm = 0;
  for (const double value : x) norm += value * value;
  norm = std::sqrt(norm) + newton_schulz_cc::kEpsilon;
  for (double& value : x) value /= norm;
  for (int64_t step = 0; step < steps; ++step) {
    Matrix a = newton_schulz_cc::Product(x, x, m, n, m, /*flip=*/true);
    Matrix b = newton_schulz_cc::Product(a, a, m, m, m, /*flip=*/false);
    for (size_t i = 0; i < b.size(); ++i) {
      b[i] = newton_schulz_cc::kB * a[i] + newton_schulz_cc::kC * b[i];
    }
    Matrix y = newton_schulz_cc::Product(b, x, m, m, n, /*flip=*/false);
    for (size_t i = 0; i < y.size(); ++i) y[i] += newton_schulz_cc::kA * x[i];
    x = std::move(y);
  }
  return flip ? newton_schulz_cc::Transposed(x.data(), m, n) : x;
}

ProductShapes NewtonSchulzProducts(const Dims& dims, int64_t steps) {
  ProductShapes products;
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const int64_t batch = rows * columns == 0 ? 0 : ElementCount(dims) / (rows * columns);
  const int64_t m = std::min(rows, columns), n = std::max(rows, columns);
  for (int64_t step = 0; step < steps; ++step) {
    products.push_back({.batch = batch, .m = m, .n = m, .k = n});
    products.push_back({.batch = batch, .m = m, .n = m, .k = m});
    products.push_back({.batch = batch, .m = m, .n = n, .k = m});
  }
  return products;
}

double NewtonSchulzFlops(const Dims& dims, int64_t steps) {
  double flops = 0;
  for (const ProductShape& p : NewtonSchulzProducts(dims, steps)) {
    flops += 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) *
             static_cast<double>(p.n) * static_cast<double>(p.k);
  }
  return flops;
}

// Products, and a kernel for the norm.
extern const OpInfo kNewtonSchulzOp = {
    .name = "NewtonSchulz",
    .summary = "each matrix of x [..,m,n] made orthogonal by `steps` steps, times `scale`",
    .operands = 1,
    .infer = newton_schulz_cc::Infer,
    .flops =
        [](const OpTypes& op, const TypeList& results) {
          return NewtonSchulzFlops(results[0].dims, NewtonSchulzStepsOf(op.attributes));
        },
    .products =
        [](const OpTypes& op, const TypeList& results) {
          return NewtonSchulzProducts(results[0].dims, NewtonSchulzStepsOf(op.attributes));
        },
    .sharding = newton_schulz_cc::Rule,
    .evaluate = newton_schulz_cc::Evaluate,
    .kernels = 3 * kNewtonSchulzSteps + 1,
    .matrix_product = true,
};

}  // namespace orrery::ir
