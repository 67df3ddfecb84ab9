#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"

// Padding around a tensor, and tiling.

namespace orrery::ir {
namespace pad_cc {
namespace {

constexpr absl::string_view kModes[] = {"constant", "edge", "reflect", "wrap"};

// The element that position `i` of a padded dimension of `size` repeats, where 0 is the first one
// that was there before; negative for one that is filled in.
int64_t SourceOf(int64_t i, int64_t size, absl::string_view mode) {
  if (i >= 0 && i < size) return i;
  if (mode == "edge") return i < 0 ? 0 : size - 1;
  if (mode == "wrap") return (i % size + size) % size;
  if (mode == "constant") return -1;
  if (size == 1) return 0;
  const int64_t period = 2 * (size - 1);
  const int64_t position = (i % period + period) % period;
  return position < size ? position : period - position;
}

struct Padding {
  std::vector<int64_t> axes, before, after;
  std::string mode;
};

Padding PaddingOf(const AttributeSet& attributes) {
  return {.axes = attributes.Ints("axes"),
          .before = attributes.Ints("before"),
          .after = attributes.Ints("after"),
          .mode = attributes.String("mode", "constant")};
}

absl::Status CheckPadding(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckAxes(op.attributes.Ints("axes"), op.operands[0]->dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckLists(op.attributes, {"before", "after"}, 0));
  const std::string mode = op.attributes.String("mode", "constant");
  if (std::find(std::begin(kModes), std::end(kModes), mode) != std::end(kModes)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("mode=\"", mode, "\"; wanted one of ", absl::StrJoin(kModes, ", ")));
}

absl::Status InferPad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPadding(op));
  const Padding padding = PaddingOf(op.attributes);
  Dims dims = op.operands[0]->dims;
  for (size_t i = 0; i < padding.axes.size(); ++i) {
    int64_t& dim = dims[static_cast<size_t>(padding.axes[i])];
    if (dim == 0 && padding.mode != "constant" &&
        SizeSum(padding.before[i], padding.after[i]) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", padding.axes[i], " of ", Show(op.operands[0]->dims),
                       " has nothing to repeat for mode=\"", padding.mode, "\""));
    }
    dim = SizeSum(SizeSum(dim, padding.before[i]), padding.after[i]);
  }
  return AddResult(op, std::move(dims), results);
}

// Calls use(position in the padded tensor, position in the plain one), the latter negative for what
// is filled in.
template <typename Use>
void ForEachPadded(const AttributeSet& attributes, const Dims& padded, const Dims& plain, Use use) {
  const Padding padding = PaddingOf(attributes);
  const Dims strides = StridesOf(plain);
  std::vector<std::vector<int64_t>> sources(padded.size());  // by dimension: offsets
  for (size_t d = 0; d < padded.size(); ++d) {
    const std::optional<size_t> position = PositionOf(padding.axes, d);
    const int64_t before = position.has_value() ? padding.before[*position] : 0;
    for (int64_t i = 0; i < padded[d]; ++i) {
      const int64_t source = SourceOf(i - before, plain[d], padding.mode);
      sources[d].push_back(source < 0 ? -1 : source * strides[d]);
    }
  }
  for (Odometer at(padded, {}); !at.done(); at.Next()) {
    int64_t from = 0;
    for (size_t d = 0; d < padded.size() && from >= 0; ++d) {
      const int64_t offset = sources[d][static_cast<size_t>(at.at()[d])];
      from = offset < 0 ? -1 : from + offset;
    }
    use(at.index(), from);
  }
}

absl::Status EvaluatePad(Evaluation& e) {
  const double value = e.attributes.Number("value", 0);
  Tensor& y = e.results[0];
  ForEachPadded(e.attributes, y.dims(), e.operand(0).dims(), [&](int64_t to, int64_t from) {
    if (from < 0) {
      y.SetNumber(to, value);
    } else {
      y.CopyElement(to, e.operand(0), from);
    }
  });
  return absl::OkStatus();
}

// What was filled in is cut off; what repeats others adds to them.
absl::Status PadGradient(GradientContext& c) {
  const Padding padding = PaddingOf(c.attributes());
  if (padding.mode != "constant") {
    return SetGradientOp(c, 0, OpKind::kPadGrad, c.attributes());
  }
  const Dims dims = c.operand_type(0).dims;
  std::vector<int64_t> ends;
  for (size_t i = 0; i < padding.axes.size(); ++i) {
    const int64_t size = dims[static_cast<size_t>(padding.axes[i])];
    ends.push_back(padding.after[i] == 0 ? kToTheEnd : padding.before[i] + size);
  }
  return SetGradientOp(c, 0, OpKind::kSlice,
                       {{"axes", padding.axes},
                        {"starts", padding.before},
                        {"ends", ends},
                        {"steps", std::vector<int64_t>(padding.axes.size(), 1)}});
}

absl::Status InferPadGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPadding(op));
  const Padding padding = PaddingOf(op.attributes);
  Dims dims = op.operands[0]->dims;
  for (size_t i = 0; i < padding.axes.size(); ++i) {
    int64_t& dim = dims[static_cast<size_t>(padding.axes[i])];
    const int64_t added = SizeSum(padding.before[i], padding.after[i]);
    if (dim <= added) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", padding.axes[i], " of ",
                                                     Show(op.operands[0]->dims),
                                                     " is no more than ", added, " of padding"));
    }
    dim -= added;
  }
  return AddResult(op, std::move(dims), results);
}

absl::Status EvaluatePadGrad(Evaluation& e) {
  ForEachPadded(e.attributes, e.operand(0).dims(), e.results[0].dims(),
                [&](int64_t from, int64_t to) {
                  if (to >= 0) AddElement(e.results[0], to, e.operand(0), from);
                });
  return absl::OkStatus();
}

absl::Status InferTile(const OpTypes& op, TypeList& results) {
  const std::vector<int64_t> axes = op.attributes.Ints("axes");
  ORRERY_RETURN_IF_ERROR(CheckAxes(axes, op.operands[0]->dims.size()));
  ORRERY_RETURN_IF_ERROR(CheckLists(op.attributes, {"repeats"}, 0));
  const std::vector<int64_t> repeats = op.attributes.Ints("repeats");
  Dims dims = op.operands[0]->dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& dim = dims[static_cast<size_t>(axes[i])];
    dim = SizeProduct(dim, repeats[i]);
  }
  return AddResult(op, std::move(dims), results);
}

absl::Status EvaluateTile(Evaluation& e) {
  const Dims& dims = e.operand(0).dims();
  const Dims strides = StridesOf(dims);
  for (Odometer at(e.results[0].dims(), {}); !at.done(); at.Next()) {
    int64_t from = 0;
    for (size_t d = 0; d < dims.size(); ++d) from += at.at()[d] % dims[d] * strides[d];
    e.results[0].CopyElement(at.index(), e.operand(0), from);
  }
  return absl::OkStatus();
}

// The gradient as [.., repeats, size, ..], summed over the repeats.
absl::Status TileGradient(GradientContext& c) {
  const Dims dims = c.operand_type(0).dims;
  const std::vector<int64_t> axes = c.attributes().Ints("axes");
  const std::vector<int64_t> repeats = c.attributes().Ints("repeats");
  std::vector<int64_t> shape, sums;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (const std::optional<size_t> position = PositionOf(axes, d); position.has_value()) {
      sums.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(repeats[*position]);
    }
    // The first dimension is the batch, which must stay free.
    const bool free = d == 0 && ElementCount(dims) > 0;
    shape.push_back(free ? -1 : dims[d]);
  }
  const ValueId apart =
      c.builder().Op(OpKind::kReshape, {c.result_gradient()}, "", {{"shape", shape}});
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kReduceSum, {apart}, c.GradientName(0), {{"axes", sums}}));
  return c.builder().status();
}

}  // namespace
}  // namespace pad_cc

extern const OpInfo kPadOp = {
    .name = "Pad",
    .summary =
        "x with before[i] and after[i] elements more around dimension axes[i]: `value`, or "
        "what `mode` edge, reflect or wrap repeats",
    .operands = 1,
    .infer = pad_cc::InferPad,
    .sharding = SplitUntouchedDims,
    .evaluate = pad_cc::EvaluatePad,
    .gradient = pad_cc::PadGradient,
};

extern const OpInfo kPadGradOp = {
    .name = "PadGrad",
    .summary = "gradient of Pad from that of its result: what repeats an element is added to it",
    .operands = 1,
    .infer = pad_cc::InferPadGrad,
    .flops = OneFlopAFirstElement,
    .sharding = SplitUntouchedDims,
    .evaluate = pad_cc::EvaluatePadGrad,
    .linear = true,
};

extern const OpInfo kTileOp = {
    .name = "Tile",
    .summary = "repeats[i] copies of x, one after another, along dimension axes[i]",
    .operands = 1,
    .infer = pad_cc::InferTile,
    .sharding = SplitUntouchedDims,
    .evaluate = pad_cc::EvaluateTile,
    .gradient = pad_cc::TileGradient,
    .linear = true,
};

}  // namespace orrery::ir
