#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/ops/kernels.h"

// Matrix products: x (… m k) times w (k n), and the pair of products of its backward.

namespace orrery::ir {
namespace {

constexpr int8_t kFactorK = 0;
constexpr int8_t kFactorN = 1;
constexpr int8_t kFactorRows = 2;  // and up: the leading dimensions of x

// x (… k), w (k n) after the transpositions that the attributes ask for.
struct Product {
  bool transpose_x, transpose_w;
  size_t x_k, x_m, w_k, w_n;
};

Product ProductOf(const OpTypes& op) {
  const size_t rank = op.operands[0]->dims.size();
  const bool tx = op.attributes.Int("transpose_x", 0) != 0;
  const bool tw = op.attributes.Int("transpose_w", 0) != 0;
  return {.transpose_x = tx,
          .transpose_w = tw,
          .x_k = tx ? rank - 2 : rank - 1,
          .x_m = tx ? rank - 1 : rank - 2,
          .w_k = tw ? size_t{1} : size_t{0},
          .w_n = tw ? size_t{0} : size_t{1}};
}

absl::Status CheckOperands(const OpTypes& op) {
  const TensorType &x = *op.operands[0], &w = *op.operands[1];
  if (x.dims.size() < 2 || w.dims.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("got shapes ", Show(x.dims), " and ",
                                                   Show(w.dims), "; wanted [..,m,k] and [k,n]"));
  }
  if (x.dtype != w.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("element types differ; got ", ToString(x.dtype), " and ", ToString(w.dtype)));
  }
  const Product p = ProductOf(op);
  if (x.dims[p.x_k] == w.dims[p.w_k]) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("inner dimensions differ; got ", x.dims[p.x_k], " and ", w.dims[p.w_k]));
}

absl::Status InferMatMul(const OpTypes& op, TypeList& results) {
  if (absl::Status status = CheckOperands(op); !status.ok()) return status;
  const TensorType &x = *op.operands[0], &w = *op.operands[1];
  const Product p = ProductOf(op);
  Dims dims(x.dims.begin(), x.dims.end() - 2);
  dims.push_back(x.dims[p.x_m]);
  dims.push_back(w.dims[p.w_n]);
  results.push_back({.dtype = x.dtype, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

double MatMulFlops(const OpTypes& op, const TypeList& results) {
  return 2.0 * static_cast<double>(ElementCount(results[0].dims)) *
         static_cast<double>(op.operands[0]->dims[ProductOf(op).x_k]);
}

// Factors of x: leading dimensions, m and k, in the places that a transposition gives them.
ShardingRule::Factors FactorsOfX(const OpTypes& op) {
  const Product p = ProductOf(op);
  const size_t rank = op.operands[0]->dims.size();
  ShardingRule::Factors factors(rank);
  for (size_t d = 0; d < rank; ++d)
    factors[d] = static_cast<int8_t>(kFactorRows + static_cast<int>(d));
  factors[p.x_m] = static_cast<int8_t>(kFactorRows + static_cast<int>(rank) - 2);
  factors[p.x_k] = kFactorK;
  return factors;
}

ShardingRule::Factors FactorsOfY(size_t rank) {
  ShardingRule::Factors factors(rank);
  for (size_t d = 0; d < rank; ++d)
    factors[d] = static_cast<int8_t>(kFactorRows + static_cast<int>(d));
  factors[rank - 1] = kFactorN;
  return factors;
}

ShardingRule::Factors FactorsOfW(const OpTypes& op) {
  ShardingRule::Factors factors(2);
  factors[ProductOf(op).w_k] = kFactorK;
  factors[ProductOf(op).w_n] = kFactorN;
  return factors;
}

ShardingRule MatMulSharding(const OpTypes& op, const TypeList& results) {
  return {.operands = {FactorsOfX(op), FactorsOfW(op)},
          .results = {FactorsOfY(results[0].dims.size())}};
}

// One op for both gradients where both are wanted and w is a plain matrix; else the one product.
absl::Status MatMulGradient(GradientContext& c) {
  if (c.attributes().Int("transpose_x", 0) != 0) {
    return absl::UnimplementedError("no gradient of a product whose first operand is transposed");
  }
  Builder& b = c.builder();
  const ValueId x = c.operand(0), w = c.operand(1), dy = c.result_gradient();
  if (c.needs(0) && c.needs(1)) {
    const std::string dx_name = c.GradientName(0), dw_name = x == w ? "" : c.GradientName(1);
    const absl::string_view names[] = {dx_name, dw_name};
    const ValueId operands[] = {x, w, dy};
    const OpId op = b.Ops(OpKind::kMatMulGrad, operands, names, c.attributes());
    if (!op.valid()) return b.status();
    c.SetOperandGradient(0, b.function().result(op, 0));
    c.SetOperandGradient(1, b.function().result(op, 1));
    return absl::OkStatus();
  }
  const bool transposed = c.attributes().Int("transpose_w", 0) != 0;
  if (c.needs(0)) {
    const AttributeSet flip =
        transposed ? AttributeSet() : AttributeSet{{"transpose_w", int64_t{1}}};
    c.SetOperandGradient(0, b.Op(OpKind::kMatMul, {dy, w}, c.GradientName(0), flip));
  }
  if (!c.needs(1)) return b.status();
  if (c.operand_type(0).dims.size() != 2) {
    // The product over all leading dimensions at once has no form as a MatMul of matrices.
    return absl::UnimplementedError("no gradient of the weight alone for a batched product");
  }
  const AttributeSet flip = {{"transpose_x", int64_t{1}}};
  c.SetOperandGradient(1, transposed ? b.Op(OpKind::kMatMul, {dy, x}, c.GradientName(1), flip)
                                     : b.Op(OpKind::kMatMul, {x, dy}, c.GradientName(1), flip));
  return b.status();
}

absl::Status InferMatMulGrad(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &w = *op.operands[1], &dy = *op.operands[2];
  const TensorType* product[] = {&x, &w};
  if (absl::Status status = InferMatMul({op.attributes, product, op.mesh}, results); !status.ok()) {
    return status;
  }
  if (results[0].dims != dy.dims) {
    return absl::InvalidArgumentError(
        absl::StrCat("the gradient has shape ", Show(dy.dims), "; wanted ", Show(results[0].dims)));
  }
  results.clear();
  for (const TensorType* operand : product) {
    results.push_back({.dtype = operand->dtype, .dims = operand->dims, .sharding = {}});
  }
  return absl::OkStatus();
}

double MatMulGradFlops(const OpTypes& op, const TypeList&) {
  return 4.0 * static_cast<double>(ElementCount(op.operands[0]->dims)) *
         static_cast<double>(op.operands[1]->dims[ProductOf(op).w_n]);
}

ShardingRule MatMulGradSharding(const OpTypes& op, const TypeList&) {
  const auto x = FactorsOfX(op), w = FactorsOfW(op), y = FactorsOfY(op.operands[2]->dims.size());
  return {.operands = {x, w, y}, .results = {x, w}};
}

// x as (outer, m, k), w as (k, n), y as (outer, m, n), whichever way they are stored.
struct Places {
  bool flip_x, flip_w;
  int64_t outer, m, k, n;

  size_t X(int64_t o, int64_t i, int64_t p) const {
    return static_cast<size_t>(flip_x ? (o * k + p) * m + i : (o * m + i) * k + p);
  }
  size_t W(int64_t p, int64_t j) const {
    return static_cast<size_t>(flip_w ? j * k + p : p * n + j);
  }
  size_t Y(int64_t o, int64_t i, int64_t j) const {
    return static_cast<size_t>((o * m + i) * n + j);
  }
  template <typename F>
  void ForEach(F f) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t p = 0; p < k; ++p) f(X(o, i, p), W(p, j), Y(o, i, j));
        }
      }
    }
  }
};

Places PlacesOf(const Evaluation& e) {
  const Dims &x = e.operand(0).dims(), &w = e.operand(1).dims();
  const bool flip_x = e.attributes.Int("transpose_x", 0) != 0;
  const bool flip_w = e.attributes.Int("transpose_w", 0) != 0;
  const size_t rank = x.size();
  const int64_t m = x[flip_x ? rank - 1 : rank - 2], k = x[flip_x ? rank - 2 : rank - 1];
  int64_t outer = 1;
  for (size_t d = 0; d + 2 < rank; ++d) outer *= x[d];
  return {
      .flip_x = flip_x, .flip_w = flip_w, .outer = outer, .m = m, .k = k, .n = w[flip_w ? 0 : 1]};
}

absl::Status EvaluateMatMul(Evaluation& e) {
  const auto &x = e.operand(0).floats(), &w = e.operand(1).floats();
  auto& y = e.results[0].floats();
  PlacesOf(e).ForEach([&](size_t i, size_t j, size_t at) { y[at] += x[i] * w[j]; });
  return absl::OkStatus();
}

absl::Status EvaluateMatMulGrad(Evaluation& e) {
  const auto &x = e.operand(0).floats(), &w = e.operand(1).floats(), &dy = e.operand(2).floats();
  auto &dx = e.results[0].floats(), &dw = e.results[1].floats();
  PlacesOf(e).ForEach([&](size_t i, size_t j, size_t at) {
    dx[i] += w[j] * dy[at];
    dw[j] += x[i] * dy[at];
  });
  return absl::OkStatus();
}

}  // namespace

extern const OpInfo kMatMulOp = {
    .name = "MatMul",
    .summary = "x [..,m,k] times w [k,n]; transpose_x and transpose_w swap the last two dimensions",
    .operands = 2,
    .infer = InferMatMul,
    .flops = MatMulFlops,
    .sharding = MatMulSharding,
    .evaluate = EvaluateMatMul,
    .gradient = MatMulGradient,
    .matrix_product = true,
};

extern const OpInfo kMatMulGradOp = {
    .name = "MatMulGrad",
    .summary = "gradients of MatMul(x, w) from the gradient of its result: of x, of w",
    .operands = 3,
    .results = 2,
    .infer = InferMatMulGrad,
    .flops = MatMulGradFlops,
    .sharding = MatMulGradSharding,
    .evaluate = EvaluateMatMulGrad,
    .kernels = 2,
    .matrix_product = true,
};

}  // namespace orrery::ir
