#include "tests/semantics/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "support/check.h"

namespace orrery::semantics {
namespace {

using ir::AttributeSet;
using ir::OpKind;
using Operands = std::span<const Tensor* const>;

constexpr double kLearningRate = 0.1, kForget = 0.9;

size_t At(int64_t i) { return static_cast<size_t>(i); }

// Products of dimensions before and after `dim`.
struct Strides {
  int64_t outer = 1;
  int64_t inner = 1;
};
Strides Around(const ir::Dims& dims, size_t dim) {
  Strides strides;
  for (size_t d = 0; d < dim; ++d) strides.outer *= dims[d];
  for (size_t d = dim + 1; d < dims.size(); ++d) strides.inner *= dims[d];
  return strides;
}

// The coordinates of element number `index`.
ir::Dims Coordinates(const ir::Dims& dims, int64_t index) {
  ir::Dims at(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    at[d] = index % dims[d];
    index /= dims[d];
  }
  return at;
}

int64_t IndexOf(const ir::Dims& dims, const ir::Dims& at) {
  int64_t index = 0;
  for (size_t d = 0; d < dims.size(); ++d) index = index * dims[d] + at[d];
  return index;
}

// The element of `x` that broadcasting puts at `at`.
double Broadcast(const Tensor& x, const ir::Dims& at) {
  ir::Dims own(x.dims.size());
  for (size_t d = 0; d < own.size(); ++d) {
    own[d] = x.dims[d] == 1 ? 0 : at[at.size() - own.size() + d];
  }
  return x.values[At(IndexOf(x.dims, own))];
}

template <typename F>
Tensor Unary(const Tensor& x, F f) {
  Tensor y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

template <typename F>
Tensor Binary(const Tensor& x, const Tensor& y, F f) {
  const size_t rank = std::max(x.dims.size(), y.dims.size());
  ir::Dims dims(rank, 1);
  for (const Tensor* operand : {&x, &y}) {
    for (size_t back = 1; back <= operand->dims.size(); ++back) {
      dims[rank - back] = std::max(dims[rank - back], operand->dims[operand->dims.size() - back]);
    }
  }
  Tensor result = Filled(dims, 0);
  for (int64_t i = 0; i < ir::ElementCount(dims); ++i) {
    const ir::Dims at = Coordinates(dims, i);
    result.values[At(i)] = f(Broadcast(x, at), Broadcast(y, at));
  }
  return result;
}

// A product as it is indexed: x by (outer, m, k), w by (k, n), whichever way they are stored.
class Product {
 public:
  Product(const AttributeSet& attributes, const Tensor& x, const Tensor& w)
      : x_(x),
        w_(w),
        flip_x_(attributes.Int("transpose_x", 0) != 0),
        flip_w_(attributes.Int("transpose_w", 0) != 0) {
    const size_t rank = x.dims.size();
    m = x.dims[flip_x_ ? rank - 1 : rank - 2];
    k = x.dims[flip_x_ ? rank - 2 : rank - 1];
    n = w.dims[flip_w_ ? 0 : 1];
    outer = ir::ElementCount(x.dims) / (m * k);
  }

  size_t AtX(int64_t o, int64_t i, int64_t p) const {
    return At(flip_x_ ? (o * k + p) * m + i : (o * m + i) * k + p);
  }
  size_t AtW(int64_t p, int64_t j) const { return At(flip_w_ ? j * k + p : p * n + j); }
  size_t AtY(int64_t o, int64_t i, int64_t j) const { return At((o * m + i) * n + j); }
  ir::Dims ResultDims() const {
    ir::Dims dims(x_.dims.begin(), x_.dims.end() - 2);
    dims.push_back(m);
    dims.push_back(n);
    return dims;
  }
  /// Calls f(index in x, index in w, index in y) for every multiplication.
  template <typename F>
  void ForEach(F f) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t p = 0; p < k; ++p) f(AtX(o, i, p), AtW(p, j), AtY(o, i, j));
        }
      }
    }
  }

  int64_t outer, m, k, n;

 private:
  const Tensor &x_, &w_;
  bool flip_x_, flip_w_;
};

std::vector<Tensor> MatMul(const AttributeSet& attributes, Operands o) {
  const Product product(attributes, *o[0], *o[1]);
  Tensor y = Filled(product.ResultDims(), 0);
  product.ForEach(
      [&](size_t x, size_t w, size_t at) { y.values[at] += o[0]->values[x] * o[1]->values[w]; });
  return {y};
}

std::vector<Tensor> MatMulGrad(const AttributeSet& attributes, Operands o) {
  const Product product(attributes, *o[0], *o[1]);
  Tensor dx = Filled(o[0]->dims, 0), dw = Filled(o[1]->dims, 0);
  product.ForEach([&](size_t x, size_t w, size_t y) {
    dx.values[x] += o[1]->values[w] * o[2]->values[y];
    dw.values[w] += o[0]->values[x] * o[2]->values[y];
  });
  return {dx, dw};
}

std::vector<Tensor> Transpose(const AttributeSet& attributes, Operands o) {
  const Tensor& x = *o[0];
  std::vector<int64_t> perm = attributes.Ints("perm");
  if (perm.empty()) {
    for (size_t d = x.dims.size(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  }
  ir::Dims dims;
  for (const int64_t from : perm) dims.push_back(x.dims[At(from)]);
  Tensor y = Filled(dims, 0);
  for (int64_t i = 0; i < ir::ElementCount(dims); ++i) {
    const ir::Dims to = Coordinates(dims, i);
    ir::Dims from(to.size());
    for (size_t d = 0; d < perm.size(); ++d) from[At(perm[d])] = to[d];
    y.values[At(i)] = x.values[At(IndexOf(x.dims, from))];
  }
  return {y};
}

std::vector<Tensor> ReduceSum(const AttributeSet& attributes, Operands o) {
  const Tensor& x = *o[0];
  const std::vector<int64_t> axes = attributes.Ints("axes");
  const auto kept = [&](size_t d) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end();
  };
  ir::Dims dims;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (kept(d)) dims.push_back(x.dims[d]);
  }
  Tensor y = Filled(dims, 0);
  for (int64_t i = 0; i < ir::ElementCount(x.dims); ++i) {
    const ir::Dims from = Coordinates(x.dims, i);
    ir::Dims to;
    for (size_t d = 0; d < from.size(); ++d) {
      if (kept(d)) to.push_back(from[d]);
    }
    y.values[At(IndexOf(dims, to))] += x.values[At(i)];
  }
  return {y};
}

double Number(const AttributeSet& attributes, absl::string_view name) {
  const ir::Attribute* found = attributes.Find(name);
  ORRERY_CHECK(found != nullptr) << name;
  if (const auto* whole = std::get_if<int64_t>(found)) return static_cast<double>(*whole);
  return std::get<double>(*found);
}

// Parameters, master copies perhaps, moments, gradients: `moments` says how many of those.
std::vector<Tensor> Optimize(const AttributeSet& attributes, Operands o, size_t moments) {
  const size_t n = At(attributes.Int("parameters", 1)), groups = o.size() / n;
  const bool masters = groups == moments + 3;
  ORRERY_CHECK(masters || groups == moments + 2) << groups << " groups";
  const size_t first_moment = masters ? 2 : 1;
  std::vector<Tensor> results;
  for (size_t i = 0; i < o.size() - n; ++i) results.push_back(*o[i]);
  for (size_t i = 0; i < n; ++i) {
    Tensor step = *o[(groups - 1) * n + i];  // the gradient
    for (size_t j = 0; j < moments; ++j) {
      Tensor& moment = results[(first_moment + j) * n + i];
      const Tensor news =
          j == 0 ? step : Unary(*o[(groups - 1) * n + i], [](double g) { return g * g; });
      moment = Binary(moment, news, [](double m, double g) { return kForget * m + g; });
      step = j == 0 ? moment : Binary(step, moment, [](double m, double v) {
        return m / (std::sqrt(v) + 1e-3);
      });
    }
    Tensor& current = results[masters ? n + i : i];
    current = Binary(current, step, [](double w, double g) { return w - kLearningRate * g; });
    results[i] = current;
  }
  return results;
}

using Evaluator = std::vector<Tensor> (*)(const AttributeSet&, Operands);

const std::map<OpKind, Evaluator>& Evaluators() {
  static const auto& kEvaluators = *new std::map<OpKind, Evaluator>{
      {OpKind::kMatMul, MatMul},
      {OpKind::kMatMulGrad, MatMulGrad},
      {OpKind::kTranspose, Transpose},
      {OpKind::kReduceSum, ReduceSum},
      {OpKind::kIdentity, [](const AttributeSet&, Operands o) { return std::vector{*o[0]}; }},
      {OpKind::kAdd,
       [](const AttributeSet&, Operands o) {
         return std::vector{Binary(*o[0], *o[1], [](double x, double y) { return x + y; })};
       }},
      {OpKind::kMul,
       [](const AttributeSet&, Operands o) {
         return std::vector{Binary(*o[0], *o[1], [](double x, double y) { return x * y; })};
       }},
      {OpKind::kScale,
       [](const AttributeSet& a, Operands o) {
         const double factor = Number(a, "factor");
         return std::vector{Unary(*o[0], [&](double x) { return factor * x; })};
       }},
      {OpKind::kRelu,
       [](const AttributeSet&, Operands o) {
         return std::vector{Unary(*o[0], [](double x) { return std::max(x, 0.0); })};
       }},
      {OpKind::kReluGrad,
       [](const AttributeSet&, Operands o) {
         return std::vector{
             Binary(*o[0], *o[1], [](double x, double dy) { return x > 0 ? dy : 0.0; })};
       }},
      {OpKind::kLoss,
       [](const AttributeSet& a, Operands o) {
         const double batch = Number(a, "batch");
         return std::vector{
             Binary(*o[0], *o[1], [&](double x, double z) { return (x - z) * (x - z) / batch; })};
       }},
      {OpKind::kLossGrad,
       [](const AttributeSet& a, Operands o) {
         const double batch = Number(a, "batch");
         return std::vector{
             Binary(*o[0], *o[1], [&](double x, double z) { return 2 * (x - z) / batch; })};
       }},
      {OpKind::kSgd, [](const AttributeSet& a, Operands o) { return Optimize(a, o, 0); }},
      {OpKind::kMomentum, [](const AttributeSet& a, Operands o) { return Optimize(a, o, 1); }},
      {OpKind::kAdam, [](const AttributeSet& a, Operands o) { return Optimize(a, o, 2); }},
  };
  return kEvaluators;
}

}  // namespace

Tensor Filled(const ir::Dims& dims, double value) {
  return {.dims = dims, .values = std::vector<double>(At(ir::ElementCount(dims)), value)};
}

double Distance(const Tensor& a, const Tensor& b) {
  if (a.dims != b.dims) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    largest = std::max(largest, std::abs(a.values[i] - b.values[i]));
  }
  return largest;
}

Tensor Slice(const Tensor& x, size_t dim, int64_t begin, int64_t end) {
  Tensor part{.dims = x.dims, .values = {}};
  part.dims[dim] = end - begin;
  const Strides around = Around(x.dims, dim);
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = x.values.begin() + (o * x.dims[dim] + i) * around.inner;
      part.values.insert(part.values.end(), row, row + around.inner);
    }
  }
  return part;
}

void Paste(const Tensor& part, size_t dim, int64_t begin, Tensor& x) {
  const Strides around = Around(x.dims, dim);
  auto from = part.values.begin();
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = begin; i < begin + part.dims[dim]; ++i, from += around.inner) {
      std::copy(from, from + around.inner, x.values.begin() + (o * x.dims[dim] + i) * around.inner);
    }
  }
}

Tensor Sum(const Tensor& x, const Tensor& y) {
  ORRERY_CHECK(x.dims == y.dims) << "shapes differ";
  Tensor sum = x;
  for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += y.values[i];
  return sum;
}

std::vector<Tensor> Evaluate(OpKind kind, const AttributeSet& attributes, Operands operands) {
  const auto found = Evaluators().find(kind);
  ORRERY_CHECK(found != Evaluators().end()) << ir::GetOpInfo(kind).name;
  return found->second(attributes, operands);
}

}  // namespace orrery::semantics
