#include "ir/ops/unary.h"

#include "ir/ops/unary_functions.h"
#include "support/status.h"

// Functions of one number, element by element. One row in unary_functions.h, one record here.

namespace orrery::ir {

const UnaryFunction* FindUnaryFunction(absl::string_view name) {
  const auto* const found = std::lower_bound(
      std::begin(kUnaryFunctions), std::end(kUnaryFunctions), name,
      [](const UnaryFunction& f, absl::string_view wanted) { return f.name < wanted; });
  return found != std::end(kUnaryFunctions) && found->name == name ? found : nullptr;
}

UnaryParameters ReadParameters(const UnaryFunction& function, const AttributeSet& attributes) {
  UnaryParameters values = {};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, fallback] = function.parameters[i];
    values[i] = name == "approximate" ? (attributes.String(name, "none") == "tanh" ? 1.0 : 0.0)
                                      : attributes.Number(name, fallback);
  }
  return values;
}

namespace {

constexpr uint32_t kNoneHasGradient = ~uint32_t{0};

template <size_t row>
absl::Status InferFunction(const OpTypes& op, TypeList& results) {
  if constexpr (kUnaryFunctions[row].whole == nullptr) return InferFloat(op, results);
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  return InferUnary(op, results);
}

template <size_t row>
absl::Status EvaluateFunction(Evaluation& e) {
  constexpr const UnaryFunction& f = kUnaryFunctions[row];
  if (e.operand(0).is_float()) {
    const UnaryParameters parameters = ReadParameters(f, e.attributes);
    return EvaluateUnary(e, [&](double x) { return f.value(x, parameters); });
  }
  const std::vector<int64_t>& x = e.operand(0).ints();
  if (e.operand(0).dtype() == DType::kU64) {  // never negative, though its bits may look so
    for (size_t i = 0; i < x.size(); ++i) {
      e.results[0].ints()[i] = f.name == "Sign" ? int64_t{x[i] != 0} : x[i];
    }
    return absl::OkStatus();
  }
  if constexpr (f.whole != nullptr) {
    for (size_t i = 0; i < x.size(); ++i) e.results[0].ints()[i] = f.whole(x[i]);
  }
  return absl::OkStatus();
}

template <size_t row>
absl::Status GradientOfFunction(GradientContext& c) {
  constexpr const UnaryFunction& f = kUnaryFunctions[row];
  AttributeSet attributes = c.attributes();
  attributes.Set("of", std::string(f.name));
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kUnaryGrad,
                        {f.saves_result ? c.result() : c.operand(0), c.result_gradient()},
                        c.GradientName(0), attributes));
  return c.builder().status();
}

template <size_t row>
constexpr OpInfo RecordOf() {
  constexpr const UnaryFunction& f = kUnaryFunctions[row];
  return {
      .name = f.name,
      .summary = f.summary,
      .operands = 1,
      .infer = InferFunction<row>,
      .flops = FlopsAnElement<f.flops>,
      .sharding = ElementwiseRule,
      .evaluate = EvaluateFunction<row>,
      .gradient = f.slope == nullptr ? nullptr : GradientOfFunction<row>,
      .no_gradient = f.slope == nullptr ? kNoneHasGradient : 0,
  };
}

const UnaryFunction* DifferentiatedBy(const AttributeSet& attributes) {
  const UnaryFunction* const f = FindUnaryFunction(attributes.String("of", ""));
  return f == nullptr || f->slope == nullptr ? nullptr : f;
}

absl::Status InferUnaryGrad(const OpTypes& op, TypeList& results) {
  if (DifferentiatedBy(op.attributes) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("of=\"", op.attributes.String("of", ""),
                     "\" is no unary function that has a gradient; wanted one such as \"Tanh\""));
  }
  ORRERY_RETURN_IF_ERROR(WantFloat(op, 0));
  ORRERY_RETURN_IF_ERROR(WantFloat(op, 1));
  return InferSameShapes(op, results);
}

// The derivative costs about what the function does; one more product applies it.
double UnaryGradFlops(const OpTypes& op, const TypeList& results) {
  const UnaryFunction* const f = DifferentiatedBy(op.attributes);
  const double each = f->saves_result ? 3 : f->flops + 1;
  return each * static_cast<double>(ElementCount(results[0].dims));
}

absl::Status EvaluateUnaryGrad(Evaluation& e) {
  const UnaryFunction& f = *DifferentiatedBy(e.attributes);
  const UnaryParameters parameters = ReadParameters(f, e.attributes);
  return EvaluateBinary(e,
                        [&](double saved, double dy) { return f.slope(saved, parameters) * dy; });
}

}  // namespace

extern const OpInfo kAbsOp = RecordOf<RowOf("Abs")>();
extern const OpInfo kAcosOp = RecordOf<RowOf("Acos")>();
extern const OpInfo kAcoshOp = RecordOf<RowOf("Acosh")>();
extern const OpInfo kAsinOp = RecordOf<RowOf("Asin")>();
extern const OpInfo kAsinhOp = RecordOf<RowOf("Asinh")>();
extern const OpInfo kAtanOp = RecordOf<RowOf("Atan")>();
extern const OpInfo kAtanhOp = RecordOf<RowOf("Atanh")>();
extern const OpInfo kCeilOp = RecordOf<RowOf("Ceil")>();
extern const OpInfo kCeluOp = RecordOf<RowOf("Celu")>();
extern const OpInfo kClipOp = RecordOf<RowOf("Clip")>();
extern const OpInfo kCosOp = RecordOf<RowOf("Cos")>();
extern const OpInfo kCoshOp = RecordOf<RowOf("Cosh")>();
extern const OpInfo kEluOp = RecordOf<RowOf("Elu")>();
extern const OpInfo kErfOp = RecordOf<RowOf("Erf")>();
extern const OpInfo kExpOp = RecordOf<RowOf("Exp")>();
extern const OpInfo kFloorOp = RecordOf<RowOf("Floor")>();
extern const OpInfo kGeluOp = RecordOf<RowOf("Gelu")>();
extern const OpInfo kHardSigmoidOp = RecordOf<RowOf("HardSigmoid")>();
extern const OpInfo kHardSwishOp = RecordOf<RowOf("HardSwish")>();
extern const OpInfo kLeakyReluOp = RecordOf<RowOf("LeakyRelu")>();
extern const OpInfo kLogOp = RecordOf<RowOf("Log")>();
extern const OpInfo kMishOp = RecordOf<RowOf("Mish")>();
extern const OpInfo kReciprocalOp = RecordOf<RowOf("Reciprocal")>();
extern const OpInfo kRoundOp = RecordOf<RowOf("Round")>();
extern const OpInfo kRsqrtOp = RecordOf<RowOf("Rsqrt")>();
extern const OpInfo kSeluOp = RecordOf<RowOf("Selu")>();
extern const OpInfo kShrinkOp = RecordOf<RowOf("Shrink")>();
extern const OpInfo kSigmoidOp = RecordOf<RowOf("Sigmoid")>();
extern const OpInfo kSignOp = RecordOf<RowOf("Sign")>();
extern const OpInfo kSiluOp = RecordOf<RowOf("Silu")>();
extern const OpInfo kSinOp = RecordOf<RowOf("Sin")>();
extern const OpInfo kSinhOp = RecordOf<RowOf("Sinh")>();
extern const OpInfo kSoftplusOp = RecordOf<RowOf("Softplus")>();
extern const OpInfo kSoftsignOp = RecordOf<RowOf("Softsign")>();
extern const OpInfo kSqrtOp = RecordOf<RowOf("Sqrt")>();
extern const OpInfo kTanOp = RecordOf<RowOf("Tan")>();
extern const OpInfo kTanhOp = RecordOf<RowOf("Tanh")>();
extern const OpInfo kThresholdedReluOp = RecordOf<RowOf("ThresholdedRelu")>();

extern const OpInfo kUnaryGradOp = {
    .name = "UnaryGrad",
    .summary = "gradient of the unary function `of`: its slope, by its x or its result, times dy",
    .operands = 2,
    .infer = InferUnaryGrad,
    .flops = UnaryGradFlops,
    .sharding = ElementwiseRule,
    .evaluate = EvaluateUnaryGrad,
};

}  // namespace orrery::ir
