#include <algorithm>
#include <cmath>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/interpolation.h"
#include "ir/ops/movement.h"

// Resize, one dimension after another.

namespace orrery::ir {
namespace resize_cc {
namespace {

absl::Status CheckResize(const OpTypes& op) {
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  ORRERY_RETURN_IF_ERROR(CheckAxes(axes, op.operands[0]->dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckLists(op.attributes, {"sizes"}, 1));
  for (const int64_t axis : axes) {
    if (op.operands[0]->dims[static_cast<size_t>(axis)] >= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "dimension ", axis, " of ", Show(op.operands[0]->dims), " has no elements to resize"));
  }
  return CheckInterpolation(op.attributes);
}

// The result of both has `sizes`.
absl::Status InferResize(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckResize(op));
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  const std::vector<int64_t> sizes = op.attributes.Ints("sizes");
  Dims dims = op.operands[0]->dims;
  for (size_t i = 0; i < axes.size(); ++i) dims[static_cast<size_t>(axes[i])] = sizes[i];
  return AddResult(op, std::move(dims), results);
}

// A multiplication and an addition for each tap of each axis.
double FlopsOf(const OpTypes& op, const Dims& resized) {
  const int64_t taps = TapsOf(op.attributes);
  const auto axes = static_cast<double>(op.attributes.Ints("axes").size());
  if (taps <= 1) return 0;
  return 2 * static_cast<double>(taps) * axes * static_cast<double>(ElementCount(resized));
}

double ResizeFlops(const OpTypes& op, const TypeList& results) {
  return FlopsOf(op, results[0].dims);
}

double ResizeGradFlops(const OpTypes& op, const TypeList&) {
  return FlopsOf(op, op.operands[0]->dims);
}

// How each position of the larger side is made of positions of the other, for each axis.
std::vector<std::vector<Blend>> BlendsOf(const AttributeSet& attributes, const Dims& from,
                                         const Dims& to) {
  const std::vector<int64_t> axes = attributes.Ints("axes");
  std::vector<std::vector<Blend>> blends;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    blends.push_back(BlendsAlong(attributes, i, from[axis], to[axis]));
  }
  return blends;
}

// Elements [outer, size, inner] to [outer, blends, inner].
std::vector<double> Apply(const std::vector<double>& x, const AroundDim& around,
                          const std::vector<Blend>& blends) {
  std::vector<double> y;
  y.reserve(static_cast<size_t>(around.outer * around.inner) * blends.size());
  for (int64_t o = 0; o < around.outer; ++o) {
    for (const Blend& blend : blends) {
      for (int64_t n = 0; n < around.inner; ++n) {
        double sum = 0;
        for (const auto& [position, weight] : blend.taps) {
          sum += weight * x[static_cast<size_t>((o * around.size + position) * around.inner + n)];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

// The other way round: each element gives to those that it was made of.
std::vector<double> ApplyTransposed(const std::vector<double>& dy, const AroundDim& around,
                                    const std::vector<Blend>& blends) {
  std::vector<double> dx(static_cast<size_t>(around.outer * around.size * around.inner), 0);
  size_t from = 0;
  for (int64_t o = 0; o < around.outer; ++o) {
    for (const Blend& blend : blends) {
      for (int64_t n = 0; n < around.inner; ++n, ++from) {
        for (const auto& [position, weight] : blend.taps) {
          dx[static_cast<size_t>((o * around.size + position) * around.inner + n)] +=
              weight * dy[from];
        }
      }
    }
  }
  return dx;
}

std::vector<double> NumbersOf(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.size()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = tensor.Number(static_cast<int64_t>(i));
  return numbers;
}

void SetNumbers(const std::vector<double>& numbers, Tensor& tensor) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    tensor.SetNumber(static_cast<int64_t>(i), numbers[i]);
  }
}

bool IsOutside(const std::vector<std::vector<Blend>>& blends, const std::vector<int64_t>& axes,
               const Dims& at) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto position = static_cast<size_t>(at[static_cast<size_t>(axes[i])]);
    if (blends[i][position].is_outside) return true;
  }
  return false;
}

absl::Status EvaluateResize(Evaluation& e) {
  Tensor& y = e.results[0];
  const std::vector<int64_t> axes = e.attributes.Ints("axes");
  Dims dims = e.operand(0).dims();
  const auto blends = BlendsOf(e.attributes, dims, y.dims());
  std::vector<double> numbers = NumbersOf(e.operand(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    numbers = Apply(numbers, SplitAround(dims, axis), blends[i]);
    dims[axis] = y.dims()[axis];
  }
  SetNumbers(numbers, y);
  const double extrapolated = e.attributes.Number("extrapolation_value", 0);
  for (Odometer at(y.dims(), {}); !at.done(); at.Next()) {
    if (IsOutside(blends, axes, at.at())) y.SetNumber(at.index(), extrapolated);
  }
  return absl::OkStatus();
}

absl::Status EvaluateResizeGrad(Evaluation& e) {
  Tensor& dx = e.results[0];
  const std::vector<int64_t> axes = e.attributes.Ints("axes");
  Dims dims = e.operand(0).dims();
  const auto blends = BlendsOf(e.attributes, dx.dims(), dims);
  std::vector<double> numbers = NumbersOf(e.operand(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    dims[axis] = dx.dims()[axis];
    numbers = ApplyTransposed(numbers, SplitAround(dims, axis), blends[i]);
  }
  SetNumbers(numbers, dx);
  return absl::OkStatus();
}

absl::Status ResizeGradient(GradientContext& c) {
  const Dims dims = c.operand_type(0).dims;
  std::vector<int64_t> sizes;
  for (const int64_t axis : c.attributes().Ints("axes")) {
    sizes.push_back(dims[static_cast<size_t>(axis)]);
  }
  AttributeSet back = c.attributes();
  back.Set("sizes", sizes);
  return SetGradientOp(c, 0, OpKind::kResizeGrad, back);
}

}  // namespace
}  // namespace resize_cc

extern const OpInfo kResizeOp = {
    .name = "Resize",
    .summary =
        "x with `sizes` along `axes`, interpolated by `mode` nearest, linear or cubic; "
        "`coordinates` and the rest as in ONNX",
    .operands = 1,
    .infer = resize_cc::InferResize,
    .flops = resize_cc::ResizeFlops,
    .sharding = SplitUntouchedDims,
    .evaluate = resize_cc::EvaluateResize,
    .gradient = resize_cc::ResizeGradient,
};

extern const OpInfo kResizeGradOp = {
    .name = "ResizeGrad",
    .summary = "gradient of Resize from that of its result: `sizes` are those of x",
    .operands = 1,
    .infer = resize_cc::InferResize,
    .flops = resize_cc::ResizeGradFlops,
    .sharding = SplitUntouchedDims,
    .evaluate = resize_cc::EvaluateResizeGrad,
    .linear = true,
};

}  // namespace orrery::ir
