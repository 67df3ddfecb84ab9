#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/matrix_product.h"
#include "ir/ops/product_type.h"

// Matrix products: x (… m k) times w (… k n) with numpy's broadcasting of what stands before the
// matrices, and the products of their backward. A weight of two dimensions has fused forms: both
// gradients at once, and its own gradient as one product over all rows.

namespace orrery::ir {
namespace matmul_cc {
namespace {

constexpr int8_t kFactorK = 0;
constexpr int8_t kFactorN = 1;
constexpr int8_t kFactorRows = 2;  // and up: the leading dimensions of the result, and m

// x (… k), w (… k n) after the transpositions that the attributes ask for.
struct Product {
  bool transpose_x, transpose_w;
  size_t x_k, x_m, w_k, w_n;
};

Product ProductOf(const AttributeSet& attributes, size_t x_rank, size_t w_rank) {
  const bool tx = attributes.Int("transpose_x", 0) != 0;
  const bool tw = attributes.Int("transpose_w", 0) != 0;
  return {.transpose_x = tx,
          .transpose_w = tw,
          .x_k = tx ? x_rank - 2 : x_rank - 1,
          .x_m = tx ? x_rank - 1 : x_rank - 2,
          .w_k = tw ? w_rank - 1 : w_rank - 2,
          .w_n = tw ? w_rank - 2 : w_rank - 1};
}

Product ProductOf(const OpTypes& op) {
  return ProductOf(op.attributes, op.operands[0]->dims.size(), op.operands[1]->dims.size());
}

Dims Leading(const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); }

absl::Status InferMatMul(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &w = *op.operands[1];
  if (x.dims.size() < 2 || w.dims.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("got shapes ", Show(x.dims), " and ",
                                                   Show(w.dims), "; wanted [..,m,k] and [..,k,n]"));
  }
  if (absl::Status status = CheckTypeOfFirst(op, 1); !status.ok()) return status;
  const Product p = ProductOf(op);
  if (x.dims[p.x_k] != w.dims[p.w_k]) {
    return absl::InvalidArgumentError(
        absl::StrCat("inner dimensions differ; got ", x.dims[p.x_k], " and ", w.dims[p.w_k]));
  }
  std::optional<Dims> dims = BroadcastDims(Leading(x.dims), Leading(w.dims));
  if (!dims.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("leading dimensions of ", Show(x.dims), " and ",
                                                   Show(w.dims), " do not broadcast"));
  }
  dims->push_back(x.dims[p.x_m]);
  dims->push_back(w.dims[p.w_n]);
  results.push_back({.dtype = x.dtype, .dims = *std::move(dims), .sharding = {}});
  return SetProductType(op.attributes, results);
}

double MatMulFlops(const OpTypes& op, const TypeList& results) {
  return 2.0 * static_cast<double>(ElementCount(results[0].dims)) *
         static_cast<double>(op.operands[0]->dims[ProductOf(op).x_k]);
}

// All rows of x at once where one matrix is multiplied with them, else a product a matrix.
ProductShapes MatMulProducts(const OpTypes& op, const TypeList& results) {
  const Product p = ProductOf(op);
  const TensorType &x = *op.operands[0], &w = *op.operands[1];
  const int64_t m = x.dims[p.x_m], n = w.dims[p.w_n], k = x.dims[p.x_k];
  const int64_t products = ElementCount(Leading(results[0].dims));
  if (ElementCount(Leading(w.dims)) == 1) return {{.m = products * m, .n = n, .k = k}};
  return {{.batch = products, .m = m, .n = n, .k = k}};
}

// Factors of the leading dimensions of an operand, aligned with those of the result.
ShardingRule::Factors LeadingFactors(const Dims& dims, const Dims& result) {
  ShardingRule::Factors factors(dims.size(), kNoFactor);
  for (size_t d = 0; d + 2 < dims.size(); ++d) {
    const size_t aligned = result.size() - dims.size() + d;
    if (dims[d] == result[aligned])
      factors[d] = static_cast<int8_t>(kFactorRows + static_cast<int>(aligned));
  }
  return factors;
}

// The factors of x, w and the result of shape `y`.
struct ProductFactors {
  ShardingRule::Factors x, w, y;
};

ProductFactors FactorsOf(const OpTypes& op, const Dims& y) {
  const Product p = ProductOf(op);
  const auto m = static_cast<int8_t>(kFactorRows + static_cast<int>(y.size()) - 2);
  ProductFactors factors{.x = LeadingFactors(op.operands[0]->dims, y),
                         .w = LeadingFactors(op.operands[1]->dims, y),
                         .y = LeadingFactors(y, y)};
  factors.x[p.x_m] = m;
  factors.x[p.x_k] = kFactorK;
  factors.w[p.w_k] = kFactorK;
  factors.w[p.w_n] = kFactorN;
  factors.y[y.size() - 2] = m;
  factors.y[y.size() - 1] = kFactorN;
  return factors;
}

ShardingRule MatMulSharding(const OpTypes& op, const TypeList& results) {
  const ProductFactors f = FactorsOf(op, results[0].dims);
  return {.operands = {f.x, f.w}, .results = {f.y}};
}

AttributeSet Flips(bool x, bool w) {
  AttributeSet flips;
  if (x) flips.Set("transpose_x", int64_t{1});
  if (w) flips.Set("transpose_w", int64_t{1});
  return flips;
}

// Both gradients of a product with a plain matrix in one op.
absl::Status FusedGradient(GradientContext& c) {
  Builder& b = c.builder();
  const ValueId x = c.operand(0), w = c.operand(1);
  const std::string dx_name = c.GradientName(0), dw_name = x == w ? "" : c.GradientName(1);
  const absl::string_view names[] = {dx_name, dw_name};
  const ValueId operands[] = {x, w, c.result_gradient()};
  const OpId op = b.Ops(OpKind::kMatMulGrad, operands, names, c.attributes());
  if (!op.valid()) return b.status();
  c.SetOperandGradient(0, b.function().result(op, 0));
  c.SetOperandGradient(1, b.function().result(op, 1));
  return absl::OkStatus();
}

// A product that makes the gradient of operand i, summed over what was broadcast.
void SetProduct(GradientContext& c, int i, ValueId left, ValueId right, const AttributeSet& flips) {
  const Dims dims = c.operand_type(i).dims;
  const size_t rank =
      std::max(c.builder().type(left).dims.size(), c.builder().type(right).dims.size());
  const ValueId full = c.builder().Op(OpKind::kMatMul, {left, right},
                                      rank == dims.size() ? c.GradientName(i) : "", flips);
  if (c.builder().status().ok()) c.SetOperandGradient(i, Unbroadcast(c, full, i));
}

// With X and W as they are stored, Y = X' W' and ' for what the attributes ask:
// dX' = dY W'^T and dW' = X'^T dY.
absl::Status MatMulGradient(GradientContext& c) {
  if (absl::Status status = CheckDifferentiable(c); !status.ok()) return status;
  const ValueId x = c.operand(0), w = c.operand(1), dy = c.result_gradient();
  const size_t x_rank = c.operand_type(0).dims.size(), w_rank = c.operand_type(1).dims.size();
  if (w_rank == 2 && c.needs(0) && c.needs(1)) return FusedGradient(c);
  const Product p = ProductOf(c.attributes(), x_rank, w_rank);
  if (c.needs(0)) {
    if (p.transpose_x) {
      SetProduct(c, 0, w, dy, Flips(p.transpose_w, true));
    } else {
      SetProduct(c, 0, dy, w, Flips(false, !p.transpose_w));
    }
  }
  if (!c.needs(1)) return c.builder().status();
  if (w_rank == 2 && x_rank > 2) {
    c.SetOperandGradient(
        1, c.builder().Op(OpKind::kMatMulWeightGrad, {x, dy}, c.GradientName(1), c.attributes()));
  } else if (p.transpose_w) {
    SetProduct(c, 1, dy, x, Flips(true, p.transpose_x));
  } else {
    SetProduct(c, 1, x, dy, Flips(!p.transpose_x, false));
  }
  return c.builder().status();
}

absl::Status InferMatMulGrad(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &w = *op.operands[1], &dy = *op.operands[2];
  if (w.dims.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("operand 1 has shape ", Show(w.dims), "; wanted [k,n]"));
  }
  const TensorType* product[] = {&x, &w};
  if (absl::Status status = InferMatMul({op.attributes, product, op.mesh}, results); !status.ok()) {
    return status;
  }
  if (results[0].dims != dy.dims) {
    return absl::InvalidArgumentError(
        absl::StrCat("the gradient has shape ", Show(dy.dims), "; wanted ", Show(results[0].dims)));
  }
  if (IsFloat(dy.dtype) != IsFloat(x.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("the gradient is of ", ToString(dy.dtype),
                                                   ", the product of ", ToString(x.dtype),
                                                   "; wanted numbers of one kind"));
  }
  results.clear();
  for (const TensorType* operand : product) {
    results.push_back({.dtype = operand->dtype, .dims = operand->dims, .sharding = {}});
  }
  return SetProductType(op.attributes, results);
}

double MatMulGradFlops(const OpTypes& op, const TypeList&) {
  return 4.0 * static_cast<double>(ElementCount(op.operands[0]->dims)) *
         static_cast<double>(op.operands[1]->dims[ProductOf(op).w_n]);
}

// Of x, [rows,n] times [n,k], and of w, [k,rows] times [rows,n].
ProductShapes MatMulGradProducts(const OpTypes& op, const TypeList&) {
  const Product p = ProductOf(op);
  const int64_t k = op.operands[1]->dims[p.w_k], n = op.operands[1]->dims[p.w_n];
  const int64_t rows = ElementCount(op.operands[0]->dims) / std::max<int64_t>(k, 1);
  return {{.m = rows, .n = k, .k = n}, {.m = k, .n = n, .k = rows}};
}

ShardingRule MatMulGradSharding(const OpTypes& op, const TypeList&) {
  const ProductFactors f = FactorsOf(op, op.operands[2]->dims);
  return {.operands = {f.x, f.w, f.y}, .results = {f.x, f.w}};
}

// x (… m k) and dy (… m n): their product over all rows is the gradient of the weight (k n).
absl::Status InferMatMulWeightGrad(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &dy = *op.operands[1];
  if (absl::Status status = CheckTypeOfFirst(op, 1); !status.ok()) return status;
  const Product p = ProductOf(op.attributes, x.dims.size(), 2);
  bool fits = x.dims.size() >= 2 && x.dims.size() == dy.dims.size();
  for (size_t d = 0; fits && d + 1 < x.dims.size(); ++d) {
    fits = dy.dims[d] == x.dims[d + 2 == x.dims.size() ? p.x_m : d];
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got shapes ", Show(x.dims), " and ", Show(dy.dims), "; wanted [..,m,k] and [..,m,n]"));
  }
  const int64_t k = x.dims[p.x_k], n = dy.dims.back();
  results.push_back(
      {.dtype = x.dtype, .dims = p.transpose_w ? Dims{n, k} : Dims{k, n}, .sharding = {}});
  return SetProductType(op.attributes, results);
}

double MatMulWeightGradFlops(const OpTypes& op, const TypeList&) {
  return 2.0 * static_cast<double>(ElementCount(op.operands[0]->dims)) *
         static_cast<double>(op.operands[1]->dims.back());
}

ProductShapes MatMulWeightGradProducts(const OpTypes& op, const TypeList&) {
  const TensorType& x = *op.operands[0];
  const int64_t k = x.dims[ProductOf(op.attributes, x.dims.size(), 2).x_k];
  const int64_t n = op.operands[1]->dims.back();
  return {{.m = k, .n = n, .k = ElementCount(x.dims) / std::max<int64_t>(k, 1)}};
}

ShardingRule MatMulWeightGradSharding(const OpTypes& op, const TypeList& results) {
  const TensorType* product[] = {op.operands[0], &results[0]};
  const ProductFactors f = FactorsOf({op.attributes, product, op.mesh}, op.operands[1]->dims);
  return {.operands = {f.x, f.y}, .results = {f.w}};
}

// Evaluation, matrix by matrix. Whole numbers wrap around.

// The matrix of `tensor` that starts at `offset`; T is double or uint64_t.
template <typename T>
MatrixView<T> MatrixAt(const Tensor& tensor, int64_t offset) {
  const Dims& dims = tensor.dims();
  return {.data = Elements<T>(tensor) + offset,
          .rows = dims[dims.size() - 2],
          .columns = dims[dims.size() - 1]};
}

Dims LeadingStrides(const Dims& dims, const Dims& leading) {
  Dims strides = BroadcastStrides(Leading(dims), leading);
  for (int64_t& stride : strides) stride *= dims[dims.size() - 2] * dims[dims.size() - 1];
  return strides;
}

// Calls f(x offset, w offset, y offset) for each matrix of y.
template <typename F>
void ForEachMatrix(const Dims& x, const Dims& w, const Dims& y, F f) {
  const Dims leading = Leading(y);
  const int64_t size = y[y.size() - 2] * y[y.size() - 1];
  for (Odometer at(leading, {LeadingStrides(x, leading), LeadingStrides(w, leading)}); !at.done();
       at.Next()) {
    f(at.offset(0), at.offset(1), at.index() * size);
  }
}

template <typename T>
void Multiply(Evaluation& e) {
  const Tensor &x = e.operand(0), &w = e.operand(1);
  Tensor& y = e.results[0];
  const Product p = ProductOf(e.attributes, x.dims().size(), w.dims().size());
  ForEachMatrix(x.dims(), w.dims(), y.dims(), [&](int64_t i, int64_t j, int64_t to) {
    AddProduct(MatrixAt<T>(y, to), MatrixAt<T>(x, i).Transposed(p.transpose_x),
               MatrixAt<T>(w, j).Transposed(p.transpose_w));
  });
}

absl::Status EvaluateMatMul(Evaluation& e) {
  WithNumbersOf(e.results[0], [&](auto zero) { Multiply<decltype(zero)>(e); });
  return absl::OkStatus();
}

// dw += x'^T dy for each matrix, and the same transposed for a transposed weight.
template <typename T>
void AddWeightGradient(const AttributeSet& attributes, const Tensor& x, const Tensor& dy,
                       Tensor& dw) {
  const Product p = ProductOf(attributes, x.dims().size(), 2);
  ForEachMatrix(x.dims(), dw.dims(), dy.dims(), [&](int64_t i, int64_t j, int64_t k) {
    const auto rows = MatrixAt<T>(x, i), gradient = MatrixAt<T>(dy, k);
    if (p.transpose_w) {
      AddProduct(MatrixAt<T>(dw, j), gradient.Transposed(), rows.Transposed(p.transpose_x));
    } else {
      AddProduct(MatrixAt<T>(dw, j), rows.Transposed(!p.transpose_x), gradient);
    }
  });
}

template <typename T>
void MultiplyBack(Evaluation& e) {
  const Tensor &x = e.operand(0), &w = e.operand(1), &dy = e.operand(2);
  const Product p = ProductOf(e.attributes, x.dims().size(), 2);
  ForEachMatrix(x.dims(), w.dims(), dy.dims(), [&](int64_t i, int64_t j, int64_t k) {
    const auto weight = MatrixAt<T>(w, j), gradient = MatrixAt<T>(dy, k);
    if (p.transpose_x) {
      AddProduct(MatrixAt<T>(e.results[0], i), weight.Transposed(p.transpose_w),
                 gradient.Transposed());
    } else {
      AddProduct(MatrixAt<T>(e.results[0], i), gradient, weight.Transposed(!p.transpose_w));
    }
  });
  AddWeightGradient<T>(e.attributes, x, dy, e.results[1]);
}

absl::Status EvaluateMatMulGrad(Evaluation& e) {
  WithNumbersOf(e.results[0], [&](auto zero) { MultiplyBack<decltype(zero)>(e); });
  return absl::OkStatus();
}

absl::Status EvaluateMatMulWeightGrad(Evaluation& e) {
  WithNumbersOf(e.results[0], [&](auto zero) {
    AddWeightGradient<decltype(zero)>(e.attributes, e.operand(0), e.operand(1), e.results[0]);
  });
  return absl::OkStatus();
}

}  // namespace
}  // namespace matmul_cc

extern const OpInfo kMatMulOp = {
    .name = "MatMul",
    .summary =
        "x [..,m,k] times w [..,k,n]; transpose_x and transpose_w swap the last two dimensions; "
        "written as `out`, in the type of x without it",
    .operands = 2,
    .infer = matmul_cc::InferMatMul,
    .flops = matmul_cc::MatMulFlops,
    .products = matmul_cc::MatMulProducts,
    .sharding = matmul_cc::MatMulSharding,
    .evaluate = matmul_cc::EvaluateMatMul,
    .gradient = matmul_cc::MatMulGradient,
    .matrix_product = true,
};

extern const OpInfo kMatMulGradOp = {
    .name = "MatMulGrad",
    .summary = "gradients of MatMul(x, w [k,n]) from the gradient of its result: of x, of w",
    .operands = 3,
    .results = 2,
    .infer = matmul_cc::InferMatMulGrad,
    .flops = matmul_cc::MatMulGradFlops,
    .products = matmul_cc::MatMulGradProducts,
    .sharding = matmul_cc::MatMulGradSharding,
    .evaluate = matmul_cc::EvaluateMatMulGrad,
    .kernels = 2,
    .matrix_product = true,
};

extern const OpInfo kMatMulWeightGradOp = {
    .name = "MatMulWeightGrad",
    .summary = "gradient of w [k,n] in MatMul(x, w) from x and the gradient of the result",
    .operands = 2,
    .infer = matmul_cc::InferMatMulWeightGrad,
    .flops = matmul_cc::MatMulWeightGradFlops,
    .products = matmul_cc::MatMulWeightGradProducts,
    .sharding = matmul_cc::MatMulWeightGradSharding,
    .evaluate = matmul_cc::EvaluateMatMulWeightGrad,
    .matrix_product = true,
};

}  // namespace orrery::ir
