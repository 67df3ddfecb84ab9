#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/unary_record.h"
#include "support/status.h"

// Functions of one number, element by element: those of a calculator. activation.cc has the others.

namespace orrery::ir {
namespace unary_cc {
namespace {

using P = const UnaryParameters&;

// The signs of zero and of no number stay.
double SignOf(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

constexpr UnaryFunction kFunctions[] = {
    {.name = "Abs",
     .summary = "the magnitude of x",
     .value = [](double x, P) { return std::abs(x); },
     .slope = [](double x, P) { return SignOf(x); },
     .whole =
         [](int64_t x) { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; }},
    {.name = "Acos",
     .summary = "the angle whose cosine is x",
     .value = [](double x, P) { return std::acos(x); },
     .slope = [](double x, P) { return -1 / std::sqrt(1 - x * x); },
     .flops = kExpFlops},
    {.name = "Acosh",
     .summary = "inverse hyperbolic cosine of x",
     .value = [](double x, P) { return std::acosh(x); },
     .slope = [](double x, P) { return 1 / std::sqrt(x * x - 1); },
     .flops = kExpFlops},
    {.name = "Asin",
     .summary = "the angle whose sine is x",
     .value = [](double x, P) { return std::asin(x); },
     .slope = [](double x, P) { return 1 / std::sqrt(1 - x * x); },
     .flops = kExpFlops},
    {.name = "Asinh",
     .summary = "inverse hyperbolic sine of x",
     .value = [](double x, P) { return std::asinh(x); },
     .slope = [](double x, P) { return 1 / std::sqrt(x * x + 1); },
     .flops = kExpFlops},
    {.name = "Atan",
     .summary = "the angle whose tangent is x",
     .value = [](double x, P) { return std::atan(x); },
     .slope = [](double x, P) { return 1 / (x * x + 1); },
     .flops = kExpFlops},
    {.name = "Atanh",
     .summary = "inverse hyperbolic tangent of x",
     .value = [](double x, P) { return std::atanh(x); },
     .slope = [](double x, P) { return 1 / (1 - x * x); },
     .flops = kExpFlops},
    {.name = "Ceil",
     .summary = "the least whole number that is not below x",
     .value = [](double x, P) { return std::ceil(x); }},
    {.name = "Cos",
     .summary = "cosine of x",
     .value = [](double x, P) { return std::cos(x); },
     .slope = [](double x, P) { return -std::sin(x); },
     .flops = kExpFlops},
    {.name = "Cosh",
     .summary = "hyperbolic cosine of x",
     .value = [](double x, P) { return std::cosh(x); },
     .slope = [](double x, P) { return std::sinh(x); },
     .flops = kExpFlops},
    {.name = "Erf",
     .summary = "the error function of x",
     .value = [](double x, P) { return std::erf(x); },
     .slope = [](double x, P) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); },
     .flops = kExpFlops},
    {.name = "Exp",
     .summary = "e to the x",
     .value = [](double x, P) { return std::exp(x); },
     .slope = [](double y, P) { return y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Floor",
     .summary = "the greatest whole number that is not above x",
     .value = [](double x, P) { return std::floor(x); }},
    {.name = "Log",
     .summary = "natural logarithm of x",
     .value = [](double x, P) { return std::log(x); },
     .slope = [](double x, P) { return 1 / x; },
     .flops = kExpFlops},
    {.name = "Reciprocal",
     .summary = "1 / x",
     .value = [](double x, P) { return 1 / x; },
     .slope = [](double y, P) { return -y * y; },
     .saves_result = true},
    {.name = "Round",
     .summary = "the whole number nearest to x; of two, the even one",
     .value = [](double x, P) { return std::nearbyint(x); }},
    {.name = "Rsqrt",
     .summary = "1 over the square root of x",
     .value = [](double x, P) { return 1 / std::sqrt(x); },
     .slope = [](double y, P) { return -0.5 * y * y * y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Sign",
     .summary = "-1, 0 or 1 as x is negative, zero or positive",
     .value = [](double x, P) { return SignOf(x); },
     .whole = [](int64_t x) { return int64_t{x > 0} - int64_t{x < 0}; }},
    {.name = "Sin",
     .summary = "sine of x",
     .value = [](double x, P) { return std::sin(x); },
     .slope = [](double x, P) { return std::cos(x); },
     .flops = kExpFlops},
    {.name = "Sinh",
     .summary = "hyperbolic sine of x",
     .value = [](double x, P) { return std::sinh(x); },
     .slope = [](double x, P) { return std::cosh(x); },
     .flops = kExpFlops},
    {.name = "Sqrt",
     .summary = "square root of x",
     .value = [](double x, P) { return std::sqrt(x); },
     .slope = [](double y, P) { return 0.5 / y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Tan",
     .summary = "tangent of x",
     .value = [](double x, P) { return std::tan(x); },
     .slope = [](double y, P) { return 1 + y * y; },
     .saves_result = true,
     .flops = kExpFlops},
    {.name = "Tanh",
     .summary = "hyperbolic tangent of x",
     .value = [](double x, P) { return std::tanh(x); },
     .slope = [](double y, P) { return 1 - y * y; },
     .saves_result = true,
     .flops = kExpFlops},
};

consteval size_t Row(absl::string_view name) { return RowOf<kFunctions>(name); }

template <size_t row>
constexpr OpInfo Record() {
  return UnaryRecord<kFunctions, row>();
}

}  // namespace
}  // namespace unary_cc

const UnaryFunction* FindUnaryFunction(absl::string_view name) {
  for (const std::span<const UnaryFunction> table :
       {std::span<const UnaryFunction>(unary_cc::kFunctions), ActivationFunctions()}) {
    for (const UnaryFunction& f : table) {
      if (f.name == name) return &f;
    }
  }
  return nullptr;
}

UnaryParameters ReadParameters(const UnaryFunction& function, const AttributeSet& attributes) {
  UnaryParameters values = {};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, fallback] = function.parameters[i];
    values[i] = attributes.Number(name, fallback);
    if (name != "approximate") continue;
    const std::string form = attributes.String(name, "none");
    values[i] = form == "tanh" ? 1 : form == "sigmoid" ? 2 : 0;
  }
  return values;
}

absl::Status EvaluateWhole(const UnaryFunction& f, Evaluation& e) {
  const std::vector<int64_t>& x = e.operand(0).ints();
  const bool never_negative = e.operand(0).dtype() == DType::kU64;  // though its bits may look so
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t y = f.whole(x[i]);
    if (never_negative && x[i] < 0) y = f.name == "Abs" ? x[i] : 1;
    e.results[0].ints()[i] = y;
  }
  return absl::OkStatus();
}

absl::Status UnaryGradient(const UnaryFunction& f, GradientContext& c) {
  AttributeSet attributes = c.attributes();
  attributes.Set("of", std::string(f.name));
  const ValueId saved = f.saves_result ? c.result() : c.operand(0);
  c.SetOperandGradient(0, c.builder().Op(OpKind::kUnaryGrad, {saved, c.result_gradient()},
                                         c.GradientName(0), attributes));
  return c.builder().status();
}

namespace unary_cc {
namespace {

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
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 0));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 1));
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
}  // namespace unary_cc

extern const OpInfo kAbsOp = unary_cc::Record<unary_cc::Row("Abs")>();
extern const OpInfo kAcosOp = unary_cc::Record<unary_cc::Row("Acos")>();
extern const OpInfo kAcoshOp = unary_cc::Record<unary_cc::Row("Acosh")>();
extern const OpInfo kAsinOp = unary_cc::Record<unary_cc::Row("Asin")>();
extern const OpInfo kAsinhOp = unary_cc::Record<unary_cc::Row("Asinh")>();
extern const OpInfo kAtanOp = unary_cc::Record<unary_cc::Row("Atan")>();
extern const OpInfo kAtanhOp = unary_cc::Record<unary_cc::Row("Atanh")>();
extern const OpInfo kCeilOp = unary_cc::Record<unary_cc::Row("Ceil")>();
extern const OpInfo kCosOp = unary_cc::Record<unary_cc::Row("Cos")>();
extern const OpInfo kCoshOp = unary_cc::Record<unary_cc::Row("Cosh")>();
extern const OpInfo kErfOp = unary_cc::Record<unary_cc::Row("Erf")>();
extern const OpInfo kExpOp = unary_cc::Record<unary_cc::Row("Exp")>();
extern const OpInfo kFloorOp = unary_cc::Record<unary_cc::Row("Floor")>();
extern const OpInfo kLogOp = unary_cc::Record<unary_cc::Row("Log")>();
extern const OpInfo kReciprocalOp = unary_cc::Record<unary_cc::Row("Reciprocal")>();
extern const OpInfo kRoundOp = unary_cc::Record<unary_cc::Row("Round")>();
extern const OpInfo kRsqrtOp = unary_cc::Record<unary_cc::Row("Rsqrt")>();
extern const OpInfo kSignOp = unary_cc::Record<unary_cc::Row("Sign")>();
extern const OpInfo kSinOp = unary_cc::Record<unary_cc::Row("Sin")>();
extern const OpInfo kSinhOp = unary_cc::Record<unary_cc::Row("Sinh")>();
extern const OpInfo kSqrtOp = unary_cc::Record<unary_cc::Row("Sqrt")>();
extern const OpInfo kTanOp = unary_cc::Record<unary_cc::Row("Tan")>();
extern const OpInfo kTanhOp = unary_cc::Record<unary_cc::Row("Tanh")>();

extern const OpInfo kUnaryGradOp = {
    .name = "UnaryGrad",
    .summary = "gradient of the unary function `of`: its slope, by its x or its result, times dy",
    .operands = 2,
    .infer = unary_cc::InferUnaryGrad,
    .flops = unary_cc::UnaryGradFlops,
    .sharding = ElementwiseRule,
    .evaluate = unary_cc::EvaluateUnaryGrad,
};

}  // namespace orrery::ir
