#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// The discrete Fourier transform along one dimension. The last dimension has real and imaginary
// part, or the real part alone.

namespace orrery::ir {
namespace fourier_cc {
namespace {

constexpr double kPi = 3.14159265358979323846;

struct Transform {
  size_t axis;
  int64_t length;  // of the transform: the input is cut, or filled with zeros
  int64_t kept;    // of the result
  bool inverse;
};

absl::StatusOr<Transform> TransformOf(const AttributeSet& attributes, const Dims& x) {
  if (x.size() < 2 || (x.back() != 1 && x.back() != 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got shape ", Show(x), "; wanted [..,1] or [..,2]"));
  }
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attributes.Int("axis", 1), x.size()));
  if (axis + 1 == x.size()) {
    return absl::InvalidArgumentError("axis is that of real and imaginary part");
  }
  const int64_t length = attributes.Int("length", x[axis]);
  if (length < 1 || length > (int64_t{1} << 40)) {
    return absl::InvalidArgumentError(absl::StrCat("length=", length, "; wanted at least 1"));
  }
  const bool one_sided = attributes.Int("onesided", 0) != 0;
  return Transform{.axis = axis,
                   .length = length,
                   .kept = one_sided ? length / 2 + 1 : length,
                   .inverse = attributes.Int("inverse", 0) != 0};
}

absl::Status InferDft(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  Dims dims = op.operands[0]->dims;
  ORRERY_ASSIGN_OR_RETURN(const Transform t, TransformOf(op.attributes, dims));
  dims[t.axis] = t.kept;
  dims.back() = 2;
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

// 5 n log2 n a line, as benchmarks of fast transforms count it.
double DftFlops(const OpTypes& op, const TypeList& results) {
  const absl::StatusOr<Transform> t = TransformOf(op.attributes, op.operands[0]->dims);
  if (!t.ok() || t->kept == 0) return 0;
  const double lines = static_cast<double>(ElementCount(results[0].dims) / 2 / t->kept);
  const auto length = static_cast<double>(t->length);
  return 5 * lines * length * std::log2(std::max(length, 2.0));
}

ShardingRule DftSharding(const OpTypes& op, const TypeList&) {
  const size_t rank = op.operands[0]->dims.size();
  const size_t axis = TransformOf(op.attributes, op.operands[0]->dims).value().axis;
  ShardingRule::Factors factors(rank, kNoFactor);
  for (size_t d = 0; d + 1 < rank; ++d) {
    if (d != axis) factors[d] = static_cast<int8_t>(d);
  }
  return {.operands = {factors}, .results = {factors}};
}

absl::Status EvaluateDft(Evaluation& e) {
  const Tensor& x = e.operand(0);
  ORRERY_ASSIGN_OR_RETURN(const Transform t, TransformOf(e.attributes, x.dims()));
  const int64_t parts = x.dims().back(), size = x.dims()[t.axis];
  const AroundDim around = SplitAround(x.dims(), t.axis);
  const int64_t inner = around.inner / parts, used = std::min(size, t.length);
  if (static_cast<double>(t.length) * static_cast<double>(used) * static_cast<double>(inner) *
          static_cast<double>(around.outer) >
      1e10) {
    return absl::ResourceExhaustedError("a transform of that length is too much to compute");
  }
  std::vector<double> cosine, sine;
  const double turn = (t.inverse ? 2 : -2) * kPi / static_cast<double>(t.length);
  for (int64_t i = 0; i < t.length; ++i) {
    cosine.push_back(std::cos(turn * static_cast<double>(i)));
    sine.push_back(std::sin(turn * static_cast<double>(i)));
  }
  const double scale = t.inverse ? 1 / static_cast<double>(t.length) : 1;
  for (int64_t line = 0; line < around.outer * inner; ++line) {
    const int64_t outer = line / inner, at = line % inner;
    for (int64_t k = 0; k < t.kept; ++k) {
      double real = 0, imaginary = 0;
      for (int64_t i = 0; i < used; ++i) {
        const int64_t from = ((outer * size + i) * inner + at) * parts;
        const double a = x.Number(from), b = parts == 2 ? x.Number(from + 1) : 0;
        const auto angle = static_cast<size_t>(i * k % t.length);
        real += a * cosine[angle] - b * sine[angle];
        imaginary += a * sine[angle] + b * cosine[angle];
      }
      const int64_t to = ((outer * t.kept + k) * inner + at) * 2;
      e.results[0].SetNumber(to, real * scale);
      e.results[0].SetNumber(to + 1, imaginary * scale);
    }
  }
  return absl::OkStatus();
}

// `value` cut or filled with zeros to `size` along an axis.
ValueId Fitted(Builder& b, ValueId value, size_t axis, int64_t size) {
  const int64_t has = b.type(value).dims[axis];
  const auto at = static_cast<int64_t>(axis);
  if (has == size) return value;
  if (has > size) {
    return b.Op(OpKind::kSlice, {value}, "",
                {{"axes", std::vector<int64_t>{at}},
                 {"starts", std::vector<int64_t>{0}},
                 {"ends", std::vector<int64_t>{size}},
                 {"steps", std::vector<int64_t>{1}}});
  }
  return b.Op(OpKind::kPad, {value}, "",
              {{"axes", std::vector<int64_t>{at}},
               {"before", std::vector<int64_t>{0}},
               {"after", std::vector<int64_t>{size - has}}});
}

// The transposed transform is the other one, but for its scale.
absl::Status DftGradient(GradientContext& c) {
  const Dims x = c.operand_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(const Transform t, TransformOf(c.attributes(), x));
  Builder& b = c.builder();
  ValueId gradient = Fitted(b, c.result_gradient(), t.axis, t.length);
  AttributeSet attributes = {{"axis", static_cast<int64_t>(t.axis)}};
  if (!t.inverse) attributes.Set("inverse", int64_t{1});
  gradient = b.Op(OpKind::kDft, {gradient}, "", attributes);
  const auto length = static_cast<double>(t.length);
  gradient = b.Op(OpKind::kScale, {gradient}, "", {{"factor", t.inverse ? 1 / length : length}});
  if (!b.status().ok()) return b.status();
  gradient = Fitted(b, gradient, t.axis, x[t.axis]);
  if (!b.status().ok()) return b.status();
  c.SetOperandGradient(0, Fitted(b, gradient, x.size() - 1, x.back()));
  return b.status();
}

}  // namespace
}  // namespace fourier_cc

extern const OpInfo kDftOp = {
    .name = "Dft",
    .summary =
        "Fourier transform of x [..,1 or 2] (real and imaginary part) along `axis`, of "
        "`length`; inverse=1: the inverse; onesided=1: up to half the frequencies",
    .operands = 1,
    .infer = fourier_cc::InferDft,
    .flops = fourier_cc::DftFlops,
    .sharding = fourier_cc::DftSharding,
    .evaluate = fourier_cc::EvaluateDft,
    .gradient = fourier_cc::DftGradient,
    .linear = true,
};

}  // namespace orrery::ir
