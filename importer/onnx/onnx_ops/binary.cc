#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Arithmetic of two and more tensors, and of bits.

namespace orrery::importer {
namespace binary_cc {
namespace {

// Input 1 with dimensions of size 1 behind its own, so that these stand from `axis` of input 0 on.
absl::StatusOr<ir::ValueId> StandingFrom(NodeContext& c, int64_t axis) {
  const size_t rank = c.input_type(0).dims.size(), own = c.input_type(1).dims.size();
  ORRERY_ASSIGN_OR_RETURN(const size_t from, ir::NormalizeAxis(axis, rank));
  std::vector<int64_t> added;
  for (size_t d = own; from + d < rank; ++d) added.push_back(static_cast<int64_t>(d));
  if (added.empty()) return c.input(1);
  return c.Op(ir::OpKind::kUnsqueeze, {c.input(1)}, {{"axes", added}});
}

// Before opset 7 the attribute `axis` said where the second operand stands along the first.
template <ir::OpKind kind>
absl::Status LowerBinary(NodeContext& c) {
  const bool placed = c.opset() < 7 && c.Attribute("axis") != nullptr;
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId y,
                          placed ? StandingFrom(c, c.Int("axis", 0)) : c.input(1));
  return c.Return(c.Op(kind, {c.input(0), y}));
}

// Over how many samples there are, as a loss is that is written sum / x.shape[0]: a share that
// follows the batch.
absl::Status LowerDiv(NodeContext& c) {
  const ir::Tensor* divisor = ir::IsFloat(c.input_type(0).dtype) ? c.KnownInput(1) : nullptr;
  const bool one = divisor != nullptr && divisor->size() == 1 &&
                   divisor->dims().size() <= c.input_type(0).dims.size();
  const double number = one ? divisor->Number(0) : 0;
  if (number >= 1 && number < 1e15 && number == std::floor(number) &&
      c.GrowsWithBatch(static_cast<int64_t>(number))) {
    return c.Return(c.Op(ir::OpKind::kScale, {c.input(0)},
                         {{"factor", 1 / number}, {"over_batch", int64_t{1}}}));
  }
  return LowerBinary<ir::OpKind::kDiv>(c);
}

// Before opset 7 the slopes were those of dimension 1.
absl::Status LowerPRelu(NodeContext& c) {
  const bool placed =
      c.opset() < 7 && c.input_type(0).dims.size() > 1 && c.input_type(1).dims.size() == 1;
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId slope, placed ? StandingFrom(c, 1) : c.input(1));
  return c.Return(c.Op(ir::OpKind::kPRelu, {c.input(0), slope}));
}

// The operands one after another; one alone is the result itself.
absl::StatusOr<ir::ValueId> Chain(NodeContext& c, ir::OpKind kind) {
  ir::ValueId sum = c.input(0);
  for (int i = 1; i < c.node().input_size(); ++i) {
    if (!c.has_input(i)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has no name"));
    }
    ORRERY_ASSIGN_OR_RETURN(sum, c.Op(kind, {sum, c.input(i)}));
  }
  return sum;
}

template <ir::OpKind kind>
absl::Status LowerVariadic(NodeContext& c) {
  return c.Return(Chain(c, kind));
}

absl::Status LowerMean(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId sum, Chain(c, ir::OpKind::kAdd));
  if (c.node().input_size() == 1) return c.Return(sum);
  const double share = 1.0 / c.node().input_size();
  return c.Return(c.Op(ir::OpKind::kScale, {sum}, {{"factor", share}}));
}

absl::Status LowerMod(NodeContext& c) {
  ir::AttributeSet attributes;
  if (c.Int("fmod", 0) != 0) attributes.Set("fmod", int64_t{1});
  return c.Return(c.Op(ir::OpKind::kMod, {c.input(0), c.input(1)}, attributes));
}

absl::Status LowerBitShift(NodeContext& c) {
  const std::string direction = absl::AsciiStrToLower(c.String("direction", ""));
  return c.Return(
      c.Op(ir::OpKind::kBitShift, {c.input(0), c.input(1)}, {{"direction", direction}}));
}

// Ops that the IR has for bool and whole numbers alike, and ONNX under a name for each.
absl::Status CheckBits(NodeContext& c, bool bitwise) {
  for (int i = 0; i < c.node().input_size() && c.has_input(i); ++i) {
    const ir::DType dtype = c.input_type(i).dtype;
    if (!ir::IsFloat(dtype) && (dtype != ir::DType::kBool) == bitwise) continue;
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " is of ", ir::ToString(dtype),
                                                   "; wanted ",
                                                   bitwise ? "whole numbers" : "bool"));
  }
  return absl::OkStatus();
}

template <ir::OpKind kind, bool bitwise>
absl::Status LowerLogic(NodeContext& c) {
  ORRERY_RETURN_IF_ERROR(CheckBits(c, bitwise));
  return LowerBinary<kind>(c);
}

template <bool bitwise>
absl::Status LowerNot(NodeContext& c) {
  ORRERY_RETURN_IF_ERROR(CheckBits(c, bitwise));
  return c.Return(c.Op(ir::OpKind::kNot, {c.input(0)}));
}

}  // namespace
}  // namespace binary_cc

extern const OnnxOp kAddOnnxOp = {
    .type = "Add", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kAdd>};
extern const OnnxOp kMulOnnxOp = {
    .type = "Mul", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kMul>};
extern const OnnxOp kSubOnnxOp = {
    .type = "Sub", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kSub>};
extern const OnnxOp kDivOnnxOp = {.type = "Div", .inputs = 2, .lower = binary_cc::LowerDiv};
extern const OnnxOp kPowOnnxOp = {
    .type = "Pow", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kPow>};
extern const OnnxOp kPReluOnnxOp = {.type = "PRelu",
                                    .inputs = 2,

                                    .weights = 2,
                                    .lower = binary_cc::LowerPRelu};
extern const OnnxOp kModOnnxOp = {.type = "Mod", .inputs = 2, .lower = binary_cc::LowerMod};

extern const OnnxOp kMinOnnxOp = {.type = "Min",
                                  .lower = binary_cc::LowerVariadic<ir::OpKind::kMin>};
extern const OnnxOp kMaxOnnxOp = {.type = "Max",
                                  .lower = binary_cc::LowerVariadic<ir::OpKind::kMax>};
extern const OnnxOp kSumOnnxOp = {.type = "Sum",
                                  .lower = binary_cc::LowerVariadic<ir::OpKind::kAdd>};
extern const OnnxOp kMeanOnnxOp = {.type = "Mean", .lower = binary_cc::LowerMean};

extern const OnnxOp kEqualOnnxOp = {
    .type = "Equal", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kEqual>};
extern const OnnxOp kGreaterOnnxOp = {
    .type = "Greater", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kGreater>};
extern const OnnxOp kGreaterOrEqualOnnxOp = {
    .type = "GreaterOrEqual",
    .inputs = 2,
    .lower = binary_cc::LowerBinary<ir::OpKind::kGreaterOrEqual>};
extern const OnnxOp kLessOnnxOp = {
    .type = "Less", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kLess>};
extern const OnnxOp kLessOrEqualOnnxOp = {
    .type = "LessOrEqual", .inputs = 2, .lower = binary_cc::LowerBinary<ir::OpKind::kLessOrEqual>};

extern const OnnxOp kAndOnnxOp = {
    .type = "And", .inputs = 2, .lower = binary_cc::LowerLogic<ir::OpKind::kAnd, false>};
extern const OnnxOp kOrOnnxOp = {
    .type = "Or", .inputs = 2, .lower = binary_cc::LowerLogic<ir::OpKind::kOr, false>};
extern const OnnxOp kXorOnnxOp = {
    .type = "Xor", .inputs = 2, .lower = binary_cc::LowerLogic<ir::OpKind::kXor, false>};
extern const OnnxOp kNotOnnxOp = {.type = "Not", .lower = binary_cc::LowerNot<false>};
extern const OnnxOp kBitwiseAndOnnxOp = {.type = "BitwiseAnd",
                                         .inputs = 2,
                                         .since_opset = 18,
                                         .lower = binary_cc::LowerLogic<ir::OpKind::kAnd, true>};
extern const OnnxOp kBitwiseOrOnnxOp = {.type = "BitwiseOr",
                                        .inputs = 2,
                                        .since_opset = 18,
                                        .lower = binary_cc::LowerLogic<ir::OpKind::kOr, true>};
extern const OnnxOp kBitwiseXorOnnxOp = {.type = "BitwiseXor",
                                         .inputs = 2,
                                         .since_opset = 18,
                                         .lower = binary_cc::LowerLogic<ir::OpKind::kXor, true>};
extern const OnnxOp kBitwiseNotOnnxOp = {
    .type = "BitwiseNot", .since_opset = 18, .lower = binary_cc::LowerNot<true>};
extern const OnnxOp kBitShiftOnnxOp = {
    .type = "BitShift", .inputs = 2, .lower = binary_cc::LowerBitShift};

}  // namespace orrery::importer
