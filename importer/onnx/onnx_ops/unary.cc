#include "ir/ops/unary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

// Functions of one number, element by element, whose attributes ONNX calls as the IR does.

namespace orrery::importer {
namespace unary_cc {
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
}  // namespace unary_cc

extern const OnnxOp kAbsOnnxOp = {.type = "Abs",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kAbs>};
extern const OnnxOp kAcosOnnxOp = {.type = "Acos",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kAcos>};
extern const OnnxOp kAcoshOnnxOp = {.type = "Acosh",
                                    .lower = unary_cc::LowerFunction<ir::OpKind::kAcosh>};
extern const OnnxOp kAsinOnnxOp = {.type = "Asin",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kAsin>};
extern const OnnxOp kAsinhOnnxOp = {.type = "Asinh",
                                    .lower = unary_cc::LowerFunction<ir::OpKind::kAsinh>};
extern const OnnxOp kAtanOnnxOp = {.type = "Atan",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kAtan>};
extern const OnnxOp kAtanhOnnxOp = {.type = "Atanh",
                                    .lower = unary_cc::LowerFunction<ir::OpKind::kAtanh>};
extern const OnnxOp kCeilOnnxOp = {.type = "Ceil",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kCeil>};
extern const OnnxOp kCeluOnnxOp = {.type = "Celu",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kCelu>};
extern const OnnxOp kCosOnnxOp = {.type = "Cos",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kCos>};
extern const OnnxOp kCoshOnnxOp = {.type = "Cosh",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kCosh>};
extern const OnnxOp kEluOnnxOp = {.type = "Elu",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kElu>};
extern const OnnxOp kErfOnnxOp = {.type = "Erf",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kErf>};
extern const OnnxOp kExpOnnxOp = {.type = "Exp",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kExp>};
extern const OnnxOp kFloorOnnxOp = {.type = "Floor",
                                    .lower = unary_cc::LowerFunction<ir::OpKind::kFloor>};
extern const OnnxOp kGeluOnnxOp = {
    .type = "Gelu", .since_opset = 20, .lower = unary_cc::LowerFunction<ir::OpKind::kGelu>};
extern const OnnxOp kHardSigmoidOnnxOp = {
    .type = "HardSigmoid", .lower = unary_cc::LowerFunction<ir::OpKind::kHardSigmoid>};
extern const OnnxOp kHardSwishOnnxOp = {.type = "HardSwish",
                                        .lower = unary_cc::LowerFunction<ir::OpKind::kHardSwish>};
extern const OnnxOp kIsNaNOnnxOp = {.type = "IsNaN",
                                    .lower = unary_cc::LowerFunction<ir::OpKind::kIsNaN>};
extern const OnnxOp kLeakyReluOnnxOp = {.type = "LeakyRelu",
                                        .lower = unary_cc::LowerFunction<ir::OpKind::kLeakyRelu>};
extern const OnnxOp kLogOnnxOp = {.type = "Log",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kLog>};
extern const OnnxOp kMishOnnxOp = {
    .type = "Mish", .since_opset = 18, .lower = unary_cc::LowerFunction<ir::OpKind::kMish>};
extern const OnnxOp kNegOnnxOp = {.type = "Neg",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kNeg>};
extern const OnnxOp kReciprocalOnnxOp = {.type = "Reciprocal",
                                         .lower = unary_cc::LowerFunction<ir::OpKind::kReciprocal>};
extern const OnnxOp kRoundOnnxOp = {.type = "Round",
                                    .lower = unary_cc::LowerFunction<ir::OpKind::kRound>};
extern const OnnxOp kSeluOnnxOp = {.type = "Selu",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kSelu>};
extern const OnnxOp kShrinkOnnxOp = {.type = "Shrink",
                                     .lower = unary_cc::LowerFunction<ir::OpKind::kShrink>};
extern const OnnxOp kSigmoidOnnxOp = {.type = "Sigmoid",
                                      .lower = unary_cc::LowerFunction<ir::OpKind::kSigmoid>};
extern const OnnxOp kSignOnnxOp = {.type = "Sign",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kSign>};
extern const OnnxOp kSinOnnxOp = {.type = "Sin",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kSin>};
extern const OnnxOp kSinhOnnxOp = {.type = "Sinh",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kSinh>};
extern const OnnxOp kSoftplusOnnxOp = {.type = "Softplus",
                                       .lower = unary_cc::LowerFunction<ir::OpKind::kSoftplus>};
extern const OnnxOp kSoftsignOnnxOp = {.type = "Softsign",
                                       .lower = unary_cc::LowerFunction<ir::OpKind::kSoftsign>};
extern const OnnxOp kSqrtOnnxOp = {.type = "Sqrt",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kSqrt>};
extern const OnnxOp kTanOnnxOp = {.type = "Tan",
                                  .lower = unary_cc::LowerFunction<ir::OpKind::kTan>};
extern const OnnxOp kTanhOnnxOp = {.type = "Tanh",
                                   .lower = unary_cc::LowerFunction<ir::OpKind::kTanh>};
extern const OnnxOp kThresholdedReluOnnxOp = {
    .type = "ThresholdedRelu", .lower = unary_cc::LowerFunction<ir::OpKind::kThresholdedRelu>};
extern const OnnxOp kIsInfOnnxOp = {.type = "IsInf", .lower = unary_cc::LowerIsInf};

}  // namespace orrery::importer
