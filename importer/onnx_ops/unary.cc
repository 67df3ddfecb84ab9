#include "ir/ops/unary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "importer/onnx_op.h"

// Functions of one number, element by element, whose attributes ONNX calls as the IR does.

namespace orrery::importer {
namespace {

absl::Status ReadParameter(NodeContext& c, absl::string_view name, ir::AttributeSet& attributes) {
  if (c.Attribute(name) == nullptr) return absl::OkStatus();
  if (name == "approximate") {
    const std::string form = c.String(name, "none");
    if (form != "none" && form != "tanh") {
      return absl::InvalidArgumentError(
          absl::StrCat("approximate is '", form, "'; wanted 'none' or 'tanh'"));
    }
    if (form == "tanh") attributes.Set(name, form);
    return absl::OkStatus();
  }
  const double value = c.Float(name, 0);
  if (!std::isfinite(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, "; wanted a finite number"));
  }
  attributes.Set(name, value);
  return absl::OkStatus();
}

template <ir::OpKind kind>
absl::Status LowerFunction(NodeContext& c) {
  ir::AttributeSet attributes;
  const ir::UnaryFunction* const function = ir::FindUnaryFunction(ir::GetOpInfo(kind).name);
  for (size_t i = 0; function != nullptr && i < function->parameters.size(); ++i) {
    const absl::string_view name = function->parameters[i].name;
    if (name.empty()) continue;
    absl::Status status = ReadParameter(c, name, attributes);
    if (!status.ok()) return status;
  }
  return c.Return(c.Op(kind, {c.input(0)}, attributes));
}

absl::Status LowerIsInf(NodeContext& c) {
  ir::AttributeSet attributes;
  if (c.Int("detect_negative", 1) == 0) attributes.Set("negative", int64_t{0});
  if (c.Int("detect_positive", 1) == 0) attributes.Set("positive", int64_t{0});
  return c.Return(c.Op(ir::OpKind::kIsInf, {c.input(0)}, attributes));
}

}  // namespace

extern const OnnxOp kAbsOnnxOp = {.type = "Abs", .lower = LowerFunction<ir::OpKind::kAbs>};
extern const OnnxOp kAcosOnnxOp = {.type = "Acos", .lower = LowerFunction<ir::OpKind::kAcos>};
extern const OnnxOp kAcoshOnnxOp = {.type = "Acosh", .lower = LowerFunction<ir::OpKind::kAcosh>};
extern const OnnxOp kAsinOnnxOp = {.type = "Asin", .lower = LowerFunction<ir::OpKind::kAsin>};
extern const OnnxOp kAsinhOnnxOp = {.type = "Asinh", .lower = LowerFunction<ir::OpKind::kAsinh>};
extern const OnnxOp kAtanOnnxOp = {.type = "Atan", .lower = LowerFunction<ir::OpKind::kAtan>};
extern const OnnxOp kAtanhOnnxOp = {.type = "Atanh", .lower = LowerFunction<ir::OpKind::kAtanh>};
extern const OnnxOp kCeilOnnxOp = {.type = "Ceil", .lower = LowerFunction<ir::OpKind::kCeil>};
extern const OnnxOp kCeluOnnxOp = {.type = "Celu", .lower = LowerFunction<ir::OpKind::kCelu>};
extern const OnnxOp kCosOnnxOp = {.type = "Cos", .lower = LowerFunction<ir::OpKind::kCos>};
extern const OnnxOp kCoshOnnxOp = {.type = "Cosh", .lower = LowerFunction<ir::OpKind::kCosh>};
extern const OnnxOp kEluOnnxOp = {.type = "Elu", .lower = LowerFunction<ir::OpKind::kElu>};
extern const OnnxOp kErfOnnxOp = {.type = "Erf", .lower = LowerFunction<ir::OpKind::kErf>};
extern const OnnxOp kExpOnnxOp = {.type = "Exp", .lower = LowerFunction<ir::OpKind::kExp>};
extern const OnnxOp kFloorOnnxOp = {.type = "Floor", .lower = LowerFunction<ir::OpKind::kFloor>};
extern const OnnxOp kGeluOnnxOp = {
    .type = "Gelu", .since_opset = 20, .lower = LowerFunction<ir::OpKind::kGelu>};
extern const OnnxOp kHardSigmoidOnnxOp = {.type = "HardSigmoid",
                                          .lower = LowerFunction<ir::OpKind::kHardSigmoid>};
extern const OnnxOp kHardSwishOnnxOp = {.type = "HardSwish",
                                        .lower = LowerFunction<ir::OpKind::kHardSwish>};
extern const OnnxOp kIsNaNOnnxOp = {.type = "IsNaN", .lower = LowerFunction<ir::OpKind::kIsNaN>};
extern const OnnxOp kLeakyReluOnnxOp = {.type = "LeakyRelu",
                                        .lower = LowerFunction<ir::OpKind::kLeakyRelu>};
extern const OnnxOp kLogOnnxOp = {.type = "Log", .lower = LowerFunction<ir::OpKind::kLog>};
extern const OnnxOp kMishOnnxOp = {
    .type = "Mish", .since_opset = 18, .lower = LowerFunction<ir::OpKind::kMish>};
extern const OnnxOp kNegOnnxOp = {.type = "Neg", .lower = LowerFunction<ir::OpKind::kNeg>};
extern const OnnxOp kReciprocalOnnxOp = {.type = "Reciprocal",
                                         .lower = LowerFunction<ir::OpKind::kReciprocal>};
extern const OnnxOp kRoundOnnxOp = {.type = "Round", .lower = LowerFunction<ir::OpKind::kRound>};
extern const OnnxOp kSeluOnnxOp = {.type = "Selu", .lower = LowerFunction<ir::OpKind::kSelu>};
extern const OnnxOp kShrinkOnnxOp = {.type = "Shrink", .lower = LowerFunction<ir::OpKind::kShrink>};
extern const OnnxOp kSigmoidOnnxOp = {.type = "Sigmoid",
                                      .lower = LowerFunction<ir::OpKind::kSigmoid>};
extern const OnnxOp kSignOnnxOp = {.type = "Sign", .lower = LowerFunction<ir::OpKind::kSign>};
extern const OnnxOp kSinOnnxOp = {.type = "Sin", .lower = LowerFunction<ir::OpKind::kSin>};
extern const OnnxOp kSinhOnnxOp = {.type = "Sinh", .lower = LowerFunction<ir::OpKind::kSinh>};
extern const OnnxOp kSoftplusOnnxOp = {.type = "Softplus",
                                       .lower = LowerFunction<ir::OpKind::kSoftplus>};
extern const OnnxOp kSoftsignOnnxOp = {.type = "Softsign",
                                       .lower = LowerFunction<ir::OpKind::kSoftsign>};
extern const OnnxOp kSqrtOnnxOp = {.type = "Sqrt", .lower = LowerFunction<ir::OpKind::kSqrt>};
extern const OnnxOp kTanOnnxOp = {.type = "Tan", .lower = LowerFunction<ir::OpKind::kTan>};
extern const OnnxOp kTanhOnnxOp = {.type = "Tanh", .lower = LowerFunction<ir::OpKind::kTanh>};
extern const OnnxOp kThresholdedReluOnnxOp = {.type = "ThresholdedRelu",
                                              .lower = LowerFunction<ir::OpKind::kThresholdedRelu>};
extern const OnnxOp kIsInfOnnxOp = {.type = "IsInf", .lower = LowerIsInf};

}  // namespace orrery::importer
