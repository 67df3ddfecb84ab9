#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"

// Slice, and the gradient of one with steps.

namespace orrery::ir {
namespace slice_cc {
namespace {

// One dimension of a slice: elements start, start + step, …: `count` of them.
struct Run {
  int64_t start = 0, step = 1, count = 0;
};

// The slice of a dimension of `size`; nothing when it leaves it. kToTheEnd as an end goes on to the
// last element in the direction of the step, and as a start begins at the far end.
std::optional<Run> RunOf(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (start < 0 || end < 0 || step == 0 || step < -kTooLarge || step > kTooLarge) {
    return std::nullopt;
  }
  if (step > 0) {
    const int64_t stop = end == kToTheEnd ? std::max(size, start) : end;
    if (start > size || stop > size) return std::nullopt;
    return Run{start, step, stop <= start ? 0 : (stop - start - 1) / step + 1};
  }
  const int64_t first = start == kToTheEnd ? size - 1 : start;
  const int64_t stop = end == kToTheEnd ? -1 : end;
  if (first >= size || stop >= size) return std::nullopt;
  return Run{first, step, stop >= first ? 0 : (first - stop - 1) / -step + 1};
}

absl::Status InferSlice(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  ORRERY_RETURN_IF_ERROR(CheckAxes(axes, x.dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckLists(op.attributes, {"starts", "ends"}, 0));
  ORRERY_RETURN_IF_ERROR(CheckLists(op.attributes, {"steps"}, -kTooLarge));
  const std::vector<int64_t> starts = op.attributes.Ints("starts");
  const std::vector<int64_t> ends = op.attributes.Ints("ends");
  const std::vector<int64_t> steps = op.attributes.Ints("steps");
  Dims dims = x.dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& dim = dims[static_cast<size_t>(axes[i])];
    const std::optional<Run> run = RunOf(starts[i], ends[i], steps[i], dim);
    if (!run.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("the slice from ", starts[i], " to ", ends[i],
                                                     " by ", steps[i], " leaves dimension ",
                                                     axes[i], " of ", Show(x.dims)));
    }
    dim = run->count;
  }
  return AddResult(op, std::move(dims), results);
}

// Where element 0 of the slice stands in a tensor of `dims`, and its strides there.
struct Window {
  int64_t offset = 0;
  Dims strides;
};

Window WindowOf(const AttributeSet& attributes, const Dims& dims) {
  const std::vector<int64_t> axes = attributes.Ints("axes");
  const std::vector<int64_t> starts = attributes.Ints("starts");
  const std::vector<int64_t> steps = attributes.Ints("steps");
  Window window{.offset = 0, .strides = StridesOf(dims)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t start = starts[i] == kToTheEnd ? dims[axis] - 1 : starts[i];
    window.offset += start * window.strides[axis];
    window.strides[axis] *= steps[i];
  }
  return window;
}

absl::Status EvaluateSlice(Evaluation& e) {
  Tensor& y = e.results[0];
  const Window window = WindowOf(e.attributes, e.operand(0).dims());
  for (Odometer at(y.dims(), {window.strides}); !at.done(); at.Next()) {
    y.CopyElement(at.index(), e.operand(0), window.offset + at.offset(0));
  }
  return absl::OkStatus();
}

// Zeros around the gradient, or between its elements too when the slice has steps.
absl::Status SliceGradient(GradientContext& c) {
  const Dims to = c.operand_type(0).dims, from = c.builder().type(c.result()).dims;
  const std::vector<int64_t> axes = c.attributes().Ints("axes");
  const std::vector<int64_t> starts = c.attributes().Ints("starts");
  const std::vector<int64_t> steps = c.attributes().Ints("steps");
  const bool dense = std::all_of(steps.begin(), steps.end(), [](int64_t n) { return n == 1; });
  std::vector<int64_t> after, sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    sizes.push_back(to[axis]);
    after.push_back(dense ? to[axis] - starts[i] - from[axis] : 0);
  }
  if (dense) {
    return SetGradientOp(c, 0, OpKind::kPad,
                         {{"axes", axes}, {"before", starts}, {"after", after}});
  }
  return SetGradientOp(c, 0, OpKind::kSliceGrad,
                       {{"axes", axes}, {"starts", starts}, {"steps", steps}, {"sizes", sizes}});
}

absl::Status InferSliceGrad(const OpTypes& op, TypeList& results) {
  const TensorType& dy = *op.operands[0];
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  ORRERY_RETURN_IF_ERROR(CheckAxes(axes, dy.dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckLists(op.attributes, {"starts", "sizes"}, 0));
  ORRERY_RETURN_IF_ERROR(CheckLists(op.attributes, {"steps"}, -kTooLarge));
  const std::vector<int64_t> starts = op.attributes.Ints("starts");
  const std::vector<int64_t> steps = op.attributes.Ints("steps");
  const std::vector<int64_t> sizes = op.attributes.Ints("sizes");
  Dims dims = dy.dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& dim = dims[static_cast<size_t>(axes[i])];
    const int64_t size = std::min(sizes[i], kTooLarge);
    const std::optional<Run> run = RunOf(starts[i], kToTheEnd, steps[i], size);
    if (!run.has_value() || dim > run->count) {
      return absl::InvalidArgumentError(absl::StrCat("a slice of ", dim, " from ", starts[i],
                                                     " by ", steps[i], " leaves a dimension of ",
                                                     sizes[i]));
    }
    dim = size;
  }
  return AddResult(op, std::move(dims), results);
}

absl::Status EvaluateSliceGrad(Evaluation& e) {
  const Tensor& dy = e.operand(0);
  const Window window = WindowOf(e.attributes, e.results[0].dims());
  for (Odometer at(dy.dims(), {window.strides}); !at.done(); at.Next()) {
    e.results[0].CopyElement(window.offset + at.offset(0), dy, at.index());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace slice_cc

extern const OpInfo kSliceOp = {
    .name = "Slice",
    .summary =
        "every steps[i]-th element from starts[i] to before ends[i] of dimension axes[i]; "
        "the largest number as an end goes as far as there are elements, and as the start "
        "of a step backwards begins at the last one",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = slice_cc::InferSlice,
    .sharding = SplitUntouchedDims,
    .evaluate = slice_cc::EvaluateSlice,
    .gradient = slice_cc::SliceGradient,
    .strided_view = true,
    .linear = true,
};

extern const OpInfo kSliceGradOp = {
    .name = "SliceGrad",
    .summary =
        "zeros of `sizes` along `axes`, but dy where a Slice with `starts` and `steps` reads",
    .operands = 1,
    .infer = slice_cc::InferSliceGrad,
    .sharding = SplitUntouchedDims,
    .evaluate = slice_cc::EvaluateSliceGrad,
    .linear = true,
};

}  // namespace orrery::ir
