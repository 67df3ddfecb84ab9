#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "ir/op_kind.h"
#include "support/status.h"

// ONNX ops about the order and the positions of elements.

namespace orrery::importer {
namespace scan_cc {
namespace {

// The one whole number that input i holds.
absl::StatusOr<int64_t> NumberInput(const NodeContext& c, int i) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, c.IntegerInput(i));
  if (numbers.size() == 1) return numbers[0];
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " holds ", numbers.size(), " numbers; wanted one"));
}

// k was an attribute before opset 10.
absl::Status LowerTopK(NodeContext& c) {
  int64_t k = c.Int("k", 0);
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(k, NumberInput(c, 1));
  }
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", -1), c.input_type(0).dims.size()));
  const ir::ValueId x = c.input(0);
  ir::AttributeSet attributes = {{"axis", static_cast<int64_t>(axis)}, {"k", k}};
  if (c.Int("largest", 1) == 0) attributes.Set("largest", int64_t{0});
  if (c.Int("sorted", 1) == 0) attributes.Set("sorted", int64_t{0});
  ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results,
                          c.Ops(ir::OpKind::kTopK, std::span(&x, 1), attributes));
  c.SetOutput(0, results[0]);
  c.SetOutput(1, results[1]);
  return absl::OkStatus();
}

absl::Status LowerCumSum(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const int64_t given, NumberInput(c, 1));
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(given, c.input_type(0).dims.size()));
  ir::AttributeSet attributes = {{"axis", static_cast<int64_t>(axis)}};
  if (c.Int("exclusive", 0) != 0) attributes.Set("exclusive", int64_t{1});
  if (c.Int("reverse", 0) != 0) attributes.Set("reverse", int64_t{1});
  return c.Return(c.Op(ir::OpKind::kCumSum, {c.input(0)}, attributes));
}

absl::Status LowerTrilu(NodeContext& c) {
  ir::AttributeSet attributes = {{"upper", int64_t{c.Int("upper", 1) != 0}}};
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t k, NumberInput(c, 1));
    if (k != 0) attributes.Set("k", k);
  }
  return c.Return(c.Op(ir::OpKind::kTrilu, {c.input(0)}, attributes));
}

absl::Status LowerReverseSequence(NodeContext& c) {
  const ir::AttributeSet attributes = {{"batch_axis", c.Int("batch_axis", 1)},
                                       {"time_axis", c.Int("time_axis", 0)}};
  return c.Return(c.Op(ir::OpKind::kReverseSequence, {c.input(0), c.input(1)}, attributes));
}

absl::Status LowerOneHot(NodeContext& c) {
  const ir::Tensor* depth = c.KnownInput(1);
  const ir::Tensor* values = c.KnownInput(2);
  if (depth == nullptr || depth->size() != 1 || values == nullptr || values->size() != 2) {
    return absl::InvalidArgumentError(
        "depth or values depend on data; wanted one and two numbers that are known beforehand");
  }
  constexpr double kMost = 1e15;
  if (!(depth->Number(0) >= 0 && depth->Number(0) < kMost)) {
    return absl::InvalidArgumentError(
        absl::StrCat("depth is ", depth->Number(0), "; wanted a number of classes"));
  }
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          ir::NormalizeAxis(c.Int("axis", -1), c.input_type(0).dims.size() + 1));
  ir::AttributeSet attributes = {{"axis", static_cast<int64_t>(axis)},
                                 {"depth", static_cast<int64_t>(depth->Number(0))},
                                 {"to", std::string(ir::ToString(values->dtype()))}};
  if (values->Number(0) != 0) attributes.Set("off", values->Number(0));
  if (values->Number(1) != 1) attributes.Set("on", values->Number(1));
  return c.Return(c.Op(ir::OpKind::kOneHot, {c.input(0)}, attributes));
}

}  // namespace
}  // namespace scan_cc

extern const OnnxOp kTopKOnnxOp = {.type = "TopK", .lower = scan_cc::LowerTopK};

extern const OnnxOp kCumSumOnnxOp = {.type = "CumSum", .inputs = 2, .lower = scan_cc::LowerCumSum};

extern const OnnxOp kTriluOnnxOp = {.type = "Trilu", .lower = scan_cc::LowerTrilu};

extern const OnnxOp kReverseSequenceOnnxOp = {
    .type = "ReverseSequence", .inputs = 2, .lower = scan_cc::LowerReverseSequence};

extern const OnnxOp kOneHotOnnxOp = {.type = "OneHot", .inputs = 3, .lower = scan_cc::LowerOneHot};

}  // namespace orrery::importer
