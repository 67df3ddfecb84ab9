#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"
#include "support/status.h"

namespace orrery::importer {
namespace slice_cc {
namespace {

using ir::kToTheEnd;

// Before opset 10 all were attributes.
struct Bounds {
  std::vector<int64_t> starts, ends, axes, steps;
};

absl::StatusOr<Bounds> BoundsOf(NodeContext& c) {
  Bounds bounds{
      .starts = c.Ints("starts"), .ends = c.Ints("ends"), .axes = c.Ints("axes"), .steps = {}};
  std::vector<int64_t>* const inputs[] = {&bounds.starts, &bounds.ends, &bounds.axes,
                                          &bounds.steps};
  for (int i = 1; i <= 4; ++i) {
    if (!c.has_input(i)) continue;
    ORRERY_ASSIGN_OR_RETURN(*inputs[i - 1], c.IntegerInput(i));
  }
  if (bounds.axes.empty()) {
    bounds.axes.resize(bounds.starts.size());
    std::iota(bounds.axes.begin(), bounds.axes.end(), 0);
  }
  if (bounds.steps.empty()) bounds.steps.resize(bounds.starts.size(), 1);
  const size_t count = bounds.starts.size();
  if (bounds.ends.size() == count && bounds.axes.size() == count && bounds.steps.size() == count) {
    return bounds;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("got ", count, " starts, ", bounds.ends.size(), " ends, ", bounds.axes.size(),
                   " axes and ", bounds.steps.size(), " steps; wanted as many of each"));
}

struct Run {
  int64_t start = 0, end = 0, step = 1;
};

int64_t FromTheFront(int64_t position, int64_t size) {
  return position < 0 ? position + size : position;
}

// A slice of a dimension of `size`, clipped to it, as the IR writes it: see kSliceOp. A step goes
// at most once over the dimension.
Run Normalized(Run run, int64_t size) {
  run.step = std::clamp(run.step, -size, size);
  run.start = FromTheFront(run.start, size);
  run.end = FromTheFront(run.end, size);
  if (run.step > 0) {
    run.start = std::clamp<int64_t>(run.start, 0, size);
    run.end = std::clamp<int64_t>(run.end, run.start, std::max(run.start, size));
    if (run.end == size) run.end = kToTheEnd;
    return run;
  }
  run.start = std::clamp<int64_t>(run.start, -1, size - 1);
  run.end = std::clamp<int64_t>(run.end, -1, size - 1);
  if (run.end >= run.start) return {.start = 0, .end = 0, .step = 1};
  if (run.start == size - 1) run.start = kToTheEnd;
  if (run.end == -1) run.end = kToTheEnd;
  return run;
}

// Dimensions that stay whole are left out: a slice of everything is no slice.
absl::Status LowerSlice(NodeContext& c) {
  if (c.opset() >= 10 && !(c.has_input(1) && c.has_input(2))) {
    return absl::InvalidArgumentError("starts and ends are missing; wanted inputs 1 and 2");
  }
  ORRERY_ASSIGN_OR_RETURN(const Bounds bounds, BoundsOf(c));
  const ir::Dims dims = c.input_type(0).dims;
  std::vector<int64_t> axes, starts, ends, steps;
  for (size_t i = 0; i < bounds.starts.size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(bounds.axes[i], dims.size()));
    if (bounds.steps[i] == 0) return absl::InvalidArgumentError("a step is 0; wanted another");
    if (dims[axis] == 0) continue;
    const Run run = Normalized({bounds.starts[i], bounds.ends[i], bounds.steps[i]}, dims[axis]);
    if (run.start == 0 && run.end == kToTheEnd && run.step == 1) continue;
    axes.push_back(static_cast<int64_t>(axis));
    starts.push_back(run.start);
    ends.push_back(run.end);
    steps.push_back(run.step);
  }
  if (axes.empty()) return c.Return(c.input(0));
  return c.Return(c.Op(ir::OpKind::kSlice, {c.input(0)},
                       {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}}));
}

}  // namespace
}  // namespace slice_cc

extern const OnnxOp kSliceOnnxOp = {.type = "Slice", .lower = slice_cc::LowerSlice};

}  // namespace orrery::importer
