#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "support/status.h"

namespace orrery::importer {
namespace non_max_suppression_cc {
namespace {

struct Box {
  double top = 0, left = 0, bottom = 0, right = 0;
  double area() const { return (bottom - top) * (right - left); }
};

// Boxes are two corners in any order, or a center (x, y), width and height.
Box BoxOf(const ir::Tensor& boxes, int64_t i, bool is_center) {
  std::array<double, 4> n = {};
  for (int64_t k = 0; k < 4; ++k) n[static_cast<size_t>(k)] = boxes.Number(4 * i + k);
  if (is_center) {
    return {n[1] - n[3] / 2, n[0] - n[2] / 2, n[1] + n[3] / 2, n[0] + n[2] / 2};
  }
  return {std::min(n[0], n[2]), std::min(n[1], n[3]), std::max(n[0], n[2]), std::max(n[1], n[3])};
}

// The area that both cover over the area that either covers.
double Overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

struct Limits {
  double boxes = 0, overlap = 0, score = -std::numeric_limits<double>::infinity();
  bool is_center = false;
};

// The boxes of batch entry `batch` that are kept by the scores that begin at `row`: the best first,
// without those that overlap a better one.
std::vector<int64_t> Keep(const ir::Tensor& boxes, const ir::Tensor& scores, int64_t batch,
                          int64_t row, const Limits& limits) {
  const int64_t count = boxes.dims()[1];
  std::vector<int64_t> order, kept;
  for (int64_t i = 0; i < count; ++i) {
    if (scores.Number(row * count + i) > limits.score) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores.Number(row * count + a) > scores.Number(row * count + b);
  });
  for (const int64_t i : order) {
    if (static_cast<double>(kept.size()) >= limits.boxes) break;
    const Box box = BoxOf(boxes, batch * count + i, limits.is_center);
    const bool is_apart = std::all_of(kept.begin(), kept.end(), [&](int64_t other) {
      const Box better = BoxOf(boxes, batch * count + other, limits.is_center);
      return Overlap(box, better) <= limits.overlap;
    });
    if (is_apart) kept.push_back(i);
  }
  return kept;
}

absl::Status CheckShapes(const ir::Dims& boxes, const ir::Dims& scores) {
  if (boxes.size() == 3 && scores.size() == 3 && boxes[0] == scores[0] && boxes[1] == scores[2] &&
      boxes[2] == 4) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "boxes and scores do not fit; wanted [batch,boxes,4] and [batch,classes,boxes]");
}

// Folded when all is known. It is not simulated at its largest size, every box of every class: what
// follows it works on a handful.
absl::Status LowerNonMaxSuppression(NodeContext& c) {
  ORRERY_RETURN_IF_ERROR(CheckShapes(c.input_type(0).dims, c.input_type(1).dims));
  const ir::Tensor* known[5] = {};
  for (int i = 0; i < 5; ++i) {
    if (!c.has_input(i)) continue;
    known[i] = c.KnownInput(i);
    if (known[i] != nullptr && (i < 2 || known[i]->size() == 1)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the number of boxes that it keeps depends on data, on '", c.node().input(i),
        "'; wanted sizes that are known beforehand; try to export the model without its "
        "post-processing"));
  }
  Limits limits{.is_center = c.Int("center_point_box", 0) != 0};
  if (known[2] != nullptr) limits.boxes = known[2]->Number(0);
  if (known[3] != nullptr) limits.overlap = known[3]->Number(0);
  if (known[4] != nullptr) limits.score = known[4]->Number(0);
  const ir::Dims dims = known[1]->dims();
  std::vector<int64_t> selected;
  for (int64_t row = 0; row < dims[0] * dims[1]; ++row) {
    const int64_t batch = row / dims[1];
    for (const int64_t box : Keep(*known[0], *known[1], batch, row, limits)) {
      selected.insert(selected.end(), {batch, row % dims[1], box});
    }
  }
  const auto rows = static_cast<int64_t>(selected.size()) / 3;
  return c.Return(c.Constant(ir::Tensor::OfInts(ir::DType::kI64, {rows, 3}, std::move(selected))));
}

}  // namespace
}  // namespace non_max_suppression_cc

extern const OnnxOp kNonMaxSuppressionOnnxOp = {
    .type = "NonMaxSuppression",
    .inputs = 2,
    .lower = non_max_suppression_cc::LowerNonMaxSuppression};

}  // namespace orrery::importer
