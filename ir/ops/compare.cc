#include <functional>

#include "ir/op_info.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Comparisons and logic, element by element, with broadcasting. No gradient flows through them.

namespace orrery::ir {
namespace compare_cc {
namespace {

constexpr uint32_t kNoneHasGradient = ~uint32_t{0};

using Evaluator = absl::Status (*)(Evaluation&);

// results[0] = Compare(x, y), one of std::less<> and its like.
template <typename Compare>
absl::Status EvaluateComparison(Evaluation& e) {
  const Tensor &x = e.operand(0), &z = e.operand(1);
  Tensor& y = e.results[0];
  WithArithmeticOf(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (Odometer at(y.dims(),
                     {BroadcastStrides(x.dims(), y.dims()), BroadcastStrides(z.dims(), y.dims())});
         !at.done(); at.Next()) {
      const bool holds = Compare()(ElementOf<T>(x, at.offset(0)), ElementOf<T>(z, at.offset(1)));
      y.ints()[static_cast<size_t>(at.index())] = holds ? 1 : 0;
    }
  });
  return absl::OkStatus();
}

constexpr OpInfo Comparison(absl::string_view name, absl::string_view summary, Evaluator evaluate) {
  return {
      .name = name,
      .summary = summary,
      .operands = 2,
      .infer = InferComparison,
      .flops = OneFlopAnElement,
      .sharding = ElementwiseRule,
      .evaluate = evaluate,
      .no_gradient = kNoneHasGradient,
  };
}

template <typename F>
absl::Status EvaluateBits(Evaluation& e) {
  return EvaluateTyped(e, [](auto x, auto z) {
    using T = decltype(x);
    return static_cast<T>(F()(static_cast<uint64_t>(x), static_cast<uint64_t>(z)));
  });
}

constexpr OpInfo Logic(absl::string_view name, absl::string_view summary, Evaluator evaluate) {
  OpInfo info = Comparison(name, summary, evaluate);
  info.infer = InferBits;
  return info;
}

absl::Status InferNot(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(WantBits(op));
  return InferUnary(op, results);
}

absl::Status EvaluateNot(Evaluation& e) {
  const bool is_bool = e.operand(0).dtype() == DType::kBool;
  const std::vector<int64_t>& x = e.operand(0).ints();
  for (size_t i = 0; i < x.size(); ++i) e.results[0].ints()[i] = is_bool ? 1 - x[i] : ~x[i];
  return absl::OkStatus();
}

absl::Status InferShift(const OpTypes& op, TypeList& results) {
  const std::string direction = op.attributes.String("direction", "");
  if (direction != "left" && direction != "right") {
    return absl::InvalidArgumentError(
        absl::StrCat("direction=\"", direction, "\"; wanted \"left\" or \"right\""));
  }
  return InferBits(op, results);
}

absl::Status EvaluateShift(Evaluation& e) {
  const bool left = e.attributes.String("direction", "") == "left";
  return EvaluateTyped(e, [left](auto x, auto by) {
    using T = decltype(x);
    const auto bits = static_cast<uint64_t>(by);
    if (bits >= 64) return T{0};
    const auto word = static_cast<uint64_t>(x);
    return static_cast<T>(left ? word << bits : word >> bits);
  });
}

// Whether an element is one of the kinds of numbers that are none.
absl::Status InferIs(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(InferFloat(op, results));
  results[0].dtype = DType::kBool;
  return absl::OkStatus();
}

absl::Status EvaluateIsInf(Evaluation& e) {
  const bool above = e.attributes.Int("positive", 1) != 0;
  const bool below = e.attributes.Int("negative", 1) != 0;
  return EvaluateUnary(
      e, [=](double x) { return std::isinf(x) && (x > 0 ? above : below) ? 1.0 : 0.0; });
}

constexpr OpInfo UnaryTest(absl::string_view name, absl::string_view summary, Evaluator evaluate) {
  OpInfo info = Comparison(name, summary, evaluate);
  info.operands = 1;
  info.infer = InferIs;
  return info;
}

constexpr OpInfo NotRecord() {
  OpInfo info = UnaryTest("Not", "not x; of whole numbers all bits flipped", EvaluateNot);
  info.infer = InferNot;
  return info;
}

constexpr OpInfo ShiftRecord() {
  OpInfo info =
      Logic("BitShift", "the bits of x moved by y to the `direction` \"left\" or \"right\"",
            EvaluateShift);
  info.infer = InferShift;
  return info;
}

}  // namespace
}  // namespace compare_cc

extern const OpInfo kEqualOp = compare_cc::Comparison(
    "Equal", "whether x = y", compare_cc::EvaluateComparison<std::equal_to<>>);
extern const OpInfo kGreaterOp = compare_cc::Comparison(
    "Greater", "whether x > y", compare_cc::EvaluateComparison<std::greater<>>);
extern const OpInfo kGreaterOrEqualOp = compare_cc::Comparison(
    "GreaterOrEqual", "whether x >= y", compare_cc::EvaluateComparison<std::greater_equal<>>);
extern const OpInfo kLessOp =
    compare_cc::Comparison("Less", "whether x < y", compare_cc::EvaluateComparison<std::less<>>);
extern const OpInfo kLessOrEqualOp = compare_cc::Comparison(
    "LessOrEqual", "whether x <= y", compare_cc::EvaluateComparison<std::less_equal<>>);

extern const OpInfo kAndOp = compare_cc::Logic("And", "x and y; of whole numbers bit by bit",
                                               compare_cc::EvaluateBits<std::bit_and<>>);
extern const OpInfo kOrOp = compare_cc::Logic("Or", "x or y; of whole numbers bit by bit",
                                              compare_cc::EvaluateBits<std::bit_or<>>);
extern const OpInfo kXorOp = compare_cc::Logic("Xor", "either x or y; of whole numbers bit by bit",
                                               compare_cc::EvaluateBits<std::bit_xor<>>);
extern const OpInfo kNotOp = compare_cc::NotRecord();
extern const OpInfo kBitShiftOp = compare_cc::ShiftRecord();

extern const OpInfo kIsInfOp = compare_cc::UnaryTest(
    "IsInf", "whether x is infinite; not above for positive=0, not below for negative=0",
    compare_cc::EvaluateIsInf);
extern const OpInfo kIsNaNOp =
    compare_cc::UnaryTest("IsNaN", "whether x is not a number", [](Evaluation& e) {
      return EvaluateUnary(e, [](double x) { return std::isnan(x) ? 1.0 : 0.0; });
    });

}  // namespace orrery::ir
