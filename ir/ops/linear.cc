#include "ir/ops/linear.h"

#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/product_shapes.h"
#include "ir/ops/product_type.h"
#include "support/status.h"

// A matrix product with what its kernel does before it writes its result: bias and activation. And
// products that stand side by side and read the same x once.

namespace orrery::ir {
namespace linear_cc {
namespace {

constexpr int8_t kFactorK = 0;
constexpr int8_t kFactorN = 1;
constexpr int8_t kFactorRows = 2;  // and up: the leading dimensions of x

bool Transposed(const AttributeSet& attributes) { return attributes.Int("transpose_w", 0) != 0; }

// Columns of w, which is [k,n] or stored transposed; an error unless it fits x and `bias` fits it.
absl::StatusOr<int64_t> Columns(const OpTypes& op, const TensorType& w, const TensorType* bias) {
  const TensorType& x = *op.operands[0];
  if (x.dims.size() < 2 || w.dims.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("got shapes ", Show(x.dims), " and ",
                                                   Show(w.dims), "; wanted [..,m,k] and [k,n]"));
  }
  const bool flip = Transposed(op.attributes);
  const int64_t k = w.dims[flip ? 1 : 0], n = w.dims[flip ? 0 : 1];
  if (x.dims.back() != k) {
    return absl::InvalidArgumentError(
        absl::StrCat("inner dimensions differ; got ", x.dims.back(), " and ", k));
  }
  if (x.dtype != w.dtype) {
    return absl::InvalidArgumentError(absl::StrCat("element types differ; got ", ToString(x.dtype),
                                                   ", ", ToString(w.dtype), "; wanted one"));
  }
  // Added to the sum before it is written.
  if (const DType out = ProductType(op.attributes, x.dtype);
      bias != nullptr && bias->dtype != out) {
    return absl::InvalidArgumentError(absl::StrCat("the bias is of ", ToString(bias->dtype),
                                                   "; wanted ", ToString(out),
                                                   ", as the result is"));
  }
  if (bias != nullptr && (bias->dims.size() != 1 || bias->dims[0] != n)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got a bias of shape ", Show(bias->dims), "; wanted [", n, "]"));
  }
  return n;
}

TensorType ResultOf(const TensorType& x, int64_t n) {
  Dims dims = x.dims;
  dims.back() = n;
  return {.dtype = x.dtype, .dims = std::move(dims), .sharding = {}};
}

absl::Status InferLinear(const OpTypes& op, TypeList& results) {
  const std::string activation = op.attributes.String("activation", "");
  if (!IsLinearActivation(activation)) {
    return absl::InvalidArgumentError(
        absl::StrCat("activation=\"", activation,
                     "\"; wanted \"\", \"relu\", \"gelu\", \"gelu_tanh\" or \"silu\""));
  }
  const TensorType* bias = op.operands.size() > 2 ? op.operands[2] : nullptr;
  ORRERY_ASSIGN_OR_RETURN(const int64_t n, Columns(op, *op.operands[1], bias));
  results.push_back(ResultOf(*op.operands[0], n));
  if (SavesInput(activation)) results.push_back(ResultOf(*op.operands[0], n));
  return SetProductType(op.attributes, results);
}

// Multiply-adds alone: bias and activation are done on elements that are at hand.
double LinearFlops(const OpTypes& op, const TypeList& results) {
  return 2.0 * static_cast<double>(ElementCount(results[0].dims)) *
         static_cast<double>(op.operands[0]->dims.back());
}

ShardingRule::Factors FactorsOfRows(size_t rank, int8_t last) {
  ShardingRule::Factors factors(rank);
  for (size_t d = 0; d < rank; ++d) {
    factors[d] = static_cast<int8_t>(kFactorRows + static_cast<int>(d));
  }
  factors[rank - 1] = last;
  return factors;
}

ShardingRule::Factors FactorsOfW(const OpTypes& op, int8_t k) {
  if (Transposed(op.attributes)) return {kFactorN, k};
  return {k, kFactorN};
}

// What is not linear needs the whole sum: with an activation the inner dimension stays whole.
ShardingRule LinearSharding(const OpTypes& op, const TypeList& results) {
  const int8_t k = op.attributes.String("activation", "").empty() ? kFactorK : kNoFactor;
  const size_t rank = op.operands[0]->dims.size();
  ShardingRule rule{.operands = {FactorsOfRows(rank, k), FactorsOfW(op, k)}, .results = {}};
  if (op.operands.size() > 2) rule.operands.push_back({kFactorN});
  for (size_t j = 0; j < results.size(); ++j) rule.results.push_back(FactorsOfRows(rank, kFactorN));
  return rule;
}

// y = x w, in rows, plus bias over `parts`.
void Multiply(const Evaluation& e, const Tensor& w, const Tensor* bias, Tensor& y) {
  const Tensor& x = e.operand(0);
  const bool flip = Transposed(e.attributes);
  const int64_t k = x.dims().back(), n = y.dims().back();
  const auto parts = static_cast<double>(e.partial_over);
  for (int64_t at = 0; at < y.size(); ++at) {
    const int64_t row = at / n, column = at % n;
    double sum = bias == nullptr ? 0 : bias->Number(column) / parts;
    for (int64_t p = 0; p < k; ++p) {
      sum += x.Number(row * k + p) * w.Number(flip ? column * k + p : p * n + column);
    }
    y.SetNumber(at, sum);
  }
}

absl::Status EvaluateLinear(Evaluation& e) {
  const std::string activation = e.attributes.String("activation", "");
  Tensor& y = e.results[0];
  Multiply(e, e.operand(1), e.has_operand(2) ? &e.operand(2) : nullptr, y);
  if (e.results.size() > 1) e.results[1] = y;
  for (int64_t i = 0; i < y.size(); ++i) y.SetNumber(i, LinearActivation(activation, y.Number(i)));
  return absl::OkStatus();
}

// The gradient of what the activation is applied to.
ValueId BeforeActivation(GradientContext& c) {
  const std::string activation = c.attributes().String("activation", "");
  Builder& b = c.builder();
  if (activation.empty()) return c.result_gradient();
  if (activation == "relu") return b.ReluGrad(c.result(0), c.result_gradient());
  AttributeSet attributes = {{"of", std::string(activation == "silu" ? "Silu" : "Gelu")}};
  if (activation == "gelu_tanh") attributes.Set("approximate", std::string("tanh"));
  return b.Op(OpKind::kUnaryGrad, {c.result(1), c.result_gradient()}, "", attributes);
}

// The gradient of a bias: dy summed over its rows.
ValueId SumRows(GradientContext& c, ValueId dy, int operand) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d + 1 < c.builder().type(dy).dims.size(); ++d) {
    axes.push_back(static_cast<int64_t>(d));
  }
  return c.builder().Op(OpKind::kReduceSum, {dy}, c.GradientName(operand), {{"axes", axes}});
}

AttributeSet FlipOf(const AttributeSet& attributes) {
  return Transposed(attributes) ? AttributeSet{{"transpose_w", int64_t{1}}} : AttributeSet();
}

// Gradients of x and w, in one op where both are wanted.
void ProductGradient(GradientContext& c, ValueId dy, int w) {
  Builder& b = c.builder();
  if (!c.needs(w)) {
    if (!c.needs(0)) return;
    const AttributeSet flip =
        Transposed(c.attributes()) ? AttributeSet() : AttributeSet{{"transpose_w", int64_t{1}}};
    c.SetOperandGradient(0, b.Op(OpKind::kMatMul, {dy, c.operand(w)}, c.GradientName(0), flip));
    return;
  }
  if (!c.needs(0)) {
    c.SetOperandGradient(w, b.Op(OpKind::kMatMulWeightGrad, {c.operand(0), dy}, c.GradientName(w),
                                 FlipOf(c.attributes())));
    return;
  }
  const std::string dx = c.GradientName(0), dw = c.GradientName(w);
  const absl::string_view names[] = {dx, dx == dw ? "" : absl::string_view(dw)};
  const ValueId operands[] = {c.operand(0), c.operand(w), dy};
  const OpId op = b.Ops(OpKind::kMatMulGrad, operands, names, FlipOf(c.attributes()));
  if (!op.valid()) return;
  c.SetOperandGradient(0, b.function().result(op, 0));
  c.SetOperandGradient(w, b.function().result(op, 1));
}

absl::Status LinearGradient(GradientContext& c) {
  if (absl::Status status = CheckDifferentiable(c); !status.ok()) return status;
  if (!c.result_gradient().valid()) return absl::OkStatus();
  const ValueId dy = BeforeActivation(c);
  if (!c.builder().status().ok()) return c.builder().status();
  ProductGradient(c, dy, 1);
  if (c.operand_count() > 2 && c.needs(2)) c.SetOperandGradient(2, SumRows(c, dy, 2));
  return c.builder().status();
}

// LinearGroup: x, then `count` weights, then as many biases or none.

size_t GroupSize(const AttributeSet& attributes) {
  return static_cast<size_t>(std::max<int64_t>(attributes.Int("count", 0), 0));
}

absl::Status CheckGroup(const OpTypes& op, std::initializer_list<size_t> operand_counts) {
  const size_t count = GroupSize(op.attributes), operands = op.operands.size();
  for (const size_t wanted : operand_counts) {
    if (count > 0 && operands == wanted) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("got ", operands, " operands and count=", count,
                   "; wanted x, then `count` weights, and `count` more tensors"));
}

absl::Status InferLinearGroup(const OpTypes& op, TypeList& results) {
  const size_t count = GroupSize(op.attributes);
  if (absl::Status status = CheckGroup(op, {1 + count, 1 + 2 * count}); !status.ok()) return status;
  const bool biased = op.operands.size() > 1 + count;
  for (size_t i = 1; i <= count; ++i) {
    const TensorType* bias = biased ? op.operands[count + i] : nullptr;
    ORRERY_ASSIGN_OR_RETURN(const int64_t n, Columns(op, *op.operands[i], bias));
    results.push_back(ResultOf(*op.operands[0], n));
  }
  return SetProductType(op.attributes, results);
}

double LinearGroupFlops(const OpTypes& op, const TypeList& results) {
  double columns = 0;
  for (const TensorType& y : results) columns += static_cast<double>(y.dims.back());
  return 2.0 * static_cast<double>(ElementCount(op.operands[0]->dims)) * columns;
}

// All products are split alike: by columns, or along k.
ShardingRule LinearGroupSharding(const OpTypes& op, const TypeList& results) {
  const size_t rank = op.operands[0]->dims.size(), count = results.size();
  ShardingRule rule{.operands = {FactorsOfRows(rank, kFactorK)}, .results = {}};
  for (size_t i = 1; i < op.operands.size(); ++i) {
    rule.operands.push_back(i <= count ? FactorsOfW(op, kFactorK)
                                       : ShardingRule::Factors{kFactorN});
  }
  for (size_t j = 0; j < count; ++j) rule.results.push_back(FactorsOfRows(rank, kFactorN));
  return rule;
}

absl::Status EvaluateLinearGroup(Evaluation& e) {
  const size_t count = e.results.size();
  for (size_t i = 0; i < count; ++i) {
    const Tensor* bias = e.has_operand(1 + count) ? &e.operand(1 + count + i) : nullptr;
    Multiply(e, e.operand(1 + i), bias, e.results[i]);
  }
  return absl::OkStatus();
}

// Of products some of which nothing depends on, or some of which are frozen: one after another.
void GradientsOneByOne(GradientContext& c, int count) {
  Builder& b = c.builder();
  ValueId dx;
  for (int i = 1; i <= count; ++i) {
    if (!c.result_gradient(i - 1).valid()) continue;
    ProductGradient(c, c.result_gradient(i - 1), i);
    const ValueId part = c.operand_gradients()[0];
    if (!part.valid() || !b.status().ok()) continue;
    dx = dx.valid() ? b.Add(dx, part) : part;
    c.SetOperandGradient(0, ValueId());
  }
  c.SetOperandGradient(0, dx);
}

void GradientsAtOnce(GradientContext& c, int count) {
  Builder& b = c.builder();
  std::vector<ValueId> operands = {c.operand(0)};
  std::vector<std::string> texts = {c.GradientName(0)};
  for (int i = 1; i <= count; ++i) operands.push_back(c.operand(i));
  for (int i = 0; i < count; ++i) operands.push_back(c.result_gradient(i));
  for (int i = 1; i <= count; ++i) {
    texts.push_back(c.GradientName(i));
    for (int j = 1; j < i; ++j) {
      if (c.operand(i) == c.operand(j)) texts.back().clear();
    }
  }
  const std::vector<absl::string_view> names(texts.begin(), texts.end());
  AttributeSet attributes = FlipOf(c.attributes());
  attributes.Set("count", int64_t{count});
  const OpId op = b.Ops(OpKind::kLinearGroupGrad, operands, names, attributes);
  if (!op.valid()) return;
  for (int i = 0; i <= count; ++i) c.SetOperandGradient(i, b.function().result(op, i));
}

absl::Status LinearGroupGradient(GradientContext& c) {
  if (absl::Status status = CheckDifferentiable(c); !status.ok()) return status;
  const auto count = static_cast<int>(GroupSize(c.attributes()));
  bool whole = c.needs(0);
  for (int i = 0; i < count; ++i) whole = whole && c.result_gradient(i).valid() && c.needs(1 + i);
  whole ? GradientsAtOnce(c, count) : GradientsOneByOne(c, count);
  for (int i = 1 + count; i < c.operand_count() && c.builder().status().ok(); ++i) {
    const ValueId dy = c.result_gradient(i - 1 - count);
    if (dy.valid() && c.needs(i)) c.SetOperandGradient(i, SumRows(c, dy, i));
  }
  return c.builder().status();
}

// LinearGroupGrad: x, then `count` weights, then as many gradients.

absl::Status InferLinearGroupGrad(const OpTypes& op, TypeList& results) {
  const size_t count = GroupSize(op.attributes);
  ORRERY_RETURN_IF_ERROR(CheckGroup(op, {1 + 2 * count}));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op));
  for (size_t i = 1; i <= count; ++i) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t n, Columns(op, *op.operands[i], nullptr));
    ORRERY_RETURN_IF_ERROR(CheckTypeOfFirst(op, count + i));
    const Dims wanted = ResultOf(*op.operands[0], n).dims, got = op.operands[count + i]->dims;
    if (got == wanted) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a gradient has shape ", Show(got), "; wanted ", Show(wanted)));
  }
  for (size_t i = 0; i <= count; ++i) {
    results.push_back(
        {.dtype = op.operands[i]->dtype, .dims = op.operands[i]->dims, .sharding = {}});
  }
  return SetProductType(op.attributes, results);
}

double LinearGroupGradFlops(const OpTypes& op, const TypeList& results) {
  double flops = 0;
  for (size_t i = 1; i < results.size(); ++i) {
    flops += 4.0 * static_cast<double>(ElementCount(op.operands[0]->dims)) *
             static_cast<double>(op.operands[results.size() - 1 + i]->dims.back());
  }
  return flops;
}

ShardingRule LinearGroupGradSharding(const OpTypes& op, const TypeList& results) {
  const size_t rank = op.operands[0]->dims.size(), count = results.size() - 1;
  const ShardingRule::Factors x = FactorsOfRows(rank, kFactorK), w = FactorsOfW(op, kFactorK);
  ShardingRule rule{.operands = {x}, .results = {x}};
  for (size_t i = 0; i < count; ++i) rule.operands.push_back(w);
  for (size_t i = 0; i < count; ++i) rule.operands.push_back(FactorsOfRows(rank, kFactorN));
  for (size_t i = 0; i < count; ++i) rule.results.push_back(w);
  return rule;
}

absl::Status EvaluateLinearGroupGrad(Evaluation& e) {
  const size_t count = e.results.size() - 1;
  const bool flip = Transposed(e.attributes);
  const std::vector<double>& x = e.operand(0).floats();
  const auto k = static_cast<size_t>(e.operand(0).dims().back());
  for (size_t i = 1; i <= count; ++i) {
    const std::vector<double>&w = e.operand(i).floats(), &dy = e.operand(count + i).floats();
    const auto n = static_cast<size_t>(e.operand(count + i).dims().back());
    for (size_t at = 0; at < dy.size() * k; ++at) {
      const size_t row = at / k / n, column = at / k % n, p = at % k;
      const size_t position = flip ? column * k + p : p * n + column;
      e.results[0].floats()[row * k + p] += dy[row * n + column] * w[position];
      e.results[i].floats()[position] += dy[row * n + column] * x[row * k + p];
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace linear_cc

extern const OpInfo kLinearOp = {
    .name = "Linear",
    .summary =
        "activation(x [..,m,k] times w [k,n], or [n,k] with transpose_w, plus bias [n]), and "
        "what the activation is applied to where its gradient needs that",
    .operands = 3,
    .optional = 1,
    .results = OpInfo::kVariadic,
    .infer = linear_cc::InferLinear,
    .flops = linear_cc::LinearFlops,
    .products = LinearProducts,
    .sharding = linear_cc::LinearSharding,
    .evaluate = linear_cc::EvaluateLinear,
    .gradient = linear_cc::LinearGradient,
    .matrix_product = true,
};

extern const OpInfo kLinearGroupOp = {
    .name = "LinearGroup",
    .summary = "products of x with `count` weights side by side, plus as many biases if given",
    .operands = OpInfo::kVariadic,
    .results = OpInfo::kVariadic,
    .infer = linear_cc::InferLinearGroup,
    .flops = linear_cc::LinearGroupFlops,
    .products = LinearGroupProducts,
    .sharding = linear_cc::LinearGroupSharding,
    .evaluate = linear_cc::EvaluateLinearGroup,
    .gradient = linear_cc::LinearGroupGradient,
    .matrix_product = true,
};

extern const OpInfo kLinearGroupGradOp = {
    .name = "LinearGroupGrad",
    .summary = "gradients of LinearGroup: of x, of each weight",
    .operands = OpInfo::kVariadic,
    .results = OpInfo::kVariadic,
    .infer = linear_cc::InferLinearGroupGrad,
    .flops = linear_cc::LinearGroupGradFlops,
    .products = LinearGroupGradProducts,
    .sharding = linear_cc::LinearGroupGradSharding,
    .evaluate = linear_cc::EvaluateLinearGroupGrad,
    .kernels = 2,
    .matrix_product = true,
};

}  // namespace orrery::ir
