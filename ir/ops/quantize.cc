#include <algorithm>
#include <cmath>

#include "ir/op_info.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Between real numbers and whole ones: real = scale · (whole - zero point). One scale for the
// tensor, one for each position along the dimension `axis`, or, with `block_size`, one for each
// block along it. Scales are statistics: no gradient flows into any operand.

namespace orrery::ir {
namespace quantize_cc {
namespace {

constexpr size_t kScale = 1, kZeroPoint = 2;

int64_t BlockOf(const AttributeSet& attributes) { return attributes.Int("block_size", 0); }

bool IsWholeTensor(const OpTypes& op) {
  return BlockOf(op.attributes) <= 0 && ElementCount(op.operands[kScale]->dims) == 1;
}

absl::StatusOr<size_t> AxisOf(const AttributeSet& attributes, size_t rank) {
  return NormalizeAxis(attributes.Int("axis", 1), rank);
}

// The shape that the scales must have, where they are not one for the tensor.
absl::StatusOr<Dims> ScaleDims(const OpTypes& op) {
  const Dims& x = op.operands[0]->dims;
  ORRERY_ASSIGN_OR_RETURN(const size_t axis, AxisOf(op.attributes, x.size()));
  const int64_t block = BlockOf(op.attributes);
  if (block <= 0) return Dims({x[axis]});
  Dims dims = x;
  dims[axis] = (x[axis] - 1) / block + 1;
  return dims;
}

absl::Status CheckScales(const OpTypes& op) {
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, kScale));
  if (!IsWholeTensor(op)) {
    ORRERY_ASSIGN_OR_RETURN(const Dims wanted, ScaleDims(op));
    if (op.operands[kScale]->dims != wanted) {
      return absl::InvalidArgumentError(absl::StrCat("the scale has shape ",
                                                     Show(op.operands[kScale]->dims),
                                                     "; wanted one number or ", Show(wanted)));
    }
  }
  if (op.operands.size() <= kZeroPoint) return absl::OkStatus();
  const TensorType &zero = *op.operands[kZeroPoint], &scale = *op.operands[kScale];
  const bool single = ElementCount(zero.dims) == 1 && ElementCount(scale.dims) == 1;
  if (single || zero.dims == scale.dims) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the zero point has shape ", Show(zero.dims),
                                                 "; wanted that of the scale, ", Show(scale.dims)));
}

absl::Status CheckZeroPoint(const OpTypes& op, DType wanted) {
  if (op.operands.size() <= kZeroPoint || op.operands[kZeroPoint]->dtype == wanted) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the zero point is of ",
                                                 ToString(op.operands[kZeroPoint]->dtype),
                                                 "; wanted ", ToString(wanted)));
}

absl::Status InferQuantize(const OpTypes& op, TypeList& results) {
  const std::string to = op.attributes.String("to", "u8");
  const std::optional<DType> dtype = ParseDType(to);
  const bool fits =
      dtype == DType::kF8 || (dtype.has_value() && IsWhole(*dtype) && SizeOf(*dtype) <= 2);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("to=\"", to, "\"; wanted u8, i8, u16, i16 or f8"));
  }
  ORRERY_RETURN_IF_ERROR(CheckScales(op));
  ORRERY_RETURN_IF_ERROR(CheckZeroPoint(op, *dtype));
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  ORRERY_RETURN_IF_ERROR(InferUnary(op, results));
  results[0].dtype = *dtype;
  return absl::OkStatus();
}

absl::Status InferDequantize(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckScales(op));
  ORRERY_RETURN_IF_ERROR(CheckZeroPoint(op, op.operands[0]->dtype));
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  ORRERY_RETURN_IF_ERROR(InferUnary(op, results));
  results[0].dtype = op.operands[kScale]->dtype;
  return absl::OkStatus();
}

ShardingRule QuantizeRule(const OpTypes& op, const TypeList& results) {
  ShardingRule::Factors all(results[0].dims.size());
  for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int8_t>(d);
  const size_t scale_rank = op.operands[kScale]->dims.size();
  ShardingRule::Factors scale(scale_rank, kNoFactor);
  if (!IsWholeTensor(op)) {
    const size_t axis = AxisOf(op.attributes, all.size()).value();
    if (BlockOf(op.attributes) > 0) {  // blocks stay whole
      all[axis] = kNoFactor;
      scale = all;
    } else {
      scale[0] = all[axis];
    }
  }
  ShardingRule rule = {.operands = {all, scale}, .results = {all}};
  if (op.operands.size() > kZeroPoint) {
    scale.resize(op.operands[kZeroPoint]->dims.size(), kNoFactor);
    rule.operands.push_back(scale);
  }
  return rule;
}

// results[0][i] = f(x[i], its scale, its zero point).
template <typename F>
absl::Status ForEachScaled(Evaluation& e, F f) {
  const Tensor &x = e.operand(0), &scale = e.operand(kScale);
  const Tensor* const zero = e.has_operand(kZeroPoint) ? &e.operand(kZeroPoint) : nullptr;
  const int64_t block = std::max<int64_t>(BlockOf(e.attributes), 1);
  Dims strides(x.dims().size(), 0);
  size_t axis = 0;
  if (scale.size() != 1) {
    ORRERY_ASSIGN_OR_RETURN(axis, AxisOf(e.attributes, x.dims().size()));
    strides[axis] = 1;
    if (BlockOf(e.attributes) > 0) strides = StridesOf(scale.dims());
  }
  for (Odometer at(x.dims(), {}); !at.done(); at.Next()) {
    int64_t position = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      position += strides[d] * (d == axis ? at.at()[d] / block : at.at()[d]);
    }
    const double zero_point = zero == nullptr ? 0 : zero->Number(position);
    e.results[0].SetNumber(at.index(), f(x.Number(at.index()), scale.Number(position), zero_point));
  }
  return absl::OkStatus();
}

// The least and greatest number of a narrow type of whole numbers.
std::pair<double, double> RangeOf(DType dtype) {
  const double values = std::exp2(8 * static_cast<double>(SizeOf(dtype)));
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16;
  return is_signed ? std::pair(-values / 2, values / 2 - 1) : std::pair(0.0, values - 1);
}

absl::Status EvaluateQuantize(Evaluation& e) {
  const DType to = e.results[0].dtype();
  return ForEachScaled(e, [to](double x, double scale, double zero_point) {
    const double quotient = RoundFloat(x / scale, DType::kF32);  // where ties are decided
    if (IsFloat(to)) return quotient;
    const auto [least, most] = RangeOf(to);
    return std::clamp(std::nearbyint(quotient) + zero_point, least, most);
  });
}

absl::Status EvaluateDequantize(Evaluation& e) {
  return ForEachScaled(
      e, [](double x, double scale, double zero_point) { return (x - zero_point) * scale; });
}

}  // namespace
}  // namespace quantize_cc

extern const OpInfo kQuantizeLinearOp = {
    .name = "QuantizeLinear",
    .summary =
        "x over its scale y, rounded, plus the zero point z, within the range of the type "
        "`to`; scales of the tensor, along `axis` or of blocks of `block_size` there",
    .operands = 3,
    .optional = 1,
    .infer = quantize_cc::InferQuantize,
    .flops = FlopsAnElement<4>,
    .sharding = quantize_cc::QuantizeRule,
    .evaluate = quantize_cc::EvaluateQuantize,
    .no_gradient = 7,
};

extern const OpInfo kDequantizeLinearOp = {
    .name = "DequantizeLinear",
    .summary = "x minus the zero point z, times its scale y; scales as those of QuantizeLinear",
    .operands = 3,
    .optional = 1,
    .infer = quantize_cc::InferDequantize,
    .flops = FlopsAnElement<2>,
    .sharding = quantize_cc::QuantizeRule,
    .evaluate = quantize_cc::EvaluateDequantize,
    .no_gradient = 7,
};

}  // namespace orrery::ir
