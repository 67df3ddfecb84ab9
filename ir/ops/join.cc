#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"

// Concat and Split: one tensor and its parts along a dimension.

namespace orrery::ir {
namespace join_cc {
namespace {

size_t AxisOf(const AttributeSet& attributes) {
  return static_cast<size_t>(attributes.Int("axis", 0));
}

absl::Status InferConcat(const OpTypes& op, TypeList& results) {
  if (op.operands.empty()) {
    return absl::InvalidArgumentError("got 0 operands; wanted at least 1");
  }
  const TensorType& first = *op.operands[0];
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, first.dims.size()));
  const size_t axis = AxisOf(op.attributes);
  Dims dims = first.dims;
  for (size_t i = 1; i < op.operands.size(); ++i) {
    const TensorType& part = *op.operands[i];
    Dims wanted = first.dims;
    if (part.dims.size() == wanted.size()) wanted[axis] = part.dims[axis];
    if (part.dims != wanted || part.dtype != first.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot join ", ToString(first, op.mesh), " and ", ToString(part, op.mesh),
                       " along dimension ", axis, "; wanted all others alike"));
    }
    dims[axis] = SizeSum(dims[axis], part.dims[axis]);
  }
  return AddResult(op, std::move(dims), results);
}

ShardingRule ConcatRule(const OpTypes& op, const TypeList& results) {
  ShardingRule rule = SplitUntouchedDims(op, results);
  rule.operands.resize(op.operands.size(), ShardingRule::Factors(rule.operands[0]));
  return rule;
}

absl::Status EvaluateConcat(Evaluation& e) {
  const size_t axis = AxisOf(e.attributes);
  const AroundDim whole = SplitAround(e.results[0].dims(), axis);
  int64_t begin = 0;
  for (const Tensor* part : e.operands) {
    const AroundDim around = SplitAround(part->dims(), axis);
    const int64_t run = around.size * around.inner;
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t i = 0; i < run; ++i) {
        const int64_t to = o * whole.size * whole.inner + begin + i;
        e.results[0].CopyElement(to, *part, o * run + i);
      }
    }
    begin += run;
  }
  return absl::OkStatus();
}

// Views into the gradient.
absl::Status ConcatGradient(GradientContext& c) {
  const int64_t axis = c.attributes().Int("axis", 0);
  int64_t begin = 0;
  for (int i = 0; i < c.operand_count(); ++i) {
    const int64_t size = c.operand_type(i).dims[static_cast<size_t>(axis)];
    const bool is_last = i + 1 == c.operand_count();
    if (c.needs(i)) {
      const AttributeSet slice = {
          {"axes", std::vector<int64_t>{axis}},
          {"starts", std::vector<int64_t>{begin}},
          {"ends", std::vector<int64_t>{is_last ? kToTheEnd : begin + size}},
          {"steps", std::vector<int64_t>{1}}};
      ORRERY_RETURN_IF_ERROR(SetGradientOp(c, i, OpKind::kSlice, slice));
    }
    begin += size;
  }
  return absl::OkStatus();
}

absl::Status InferSplit(const OpTypes& op, TypeList& results) {
  const TensorType& x = *op.operands[0];
  ORRERY_RETURN_IF_ERROR(CheckAxis(op.attributes, x.dims.size()));
  const size_t axis = AxisOf(op.attributes);
  const std::vector<int64_t> sizes = op.attributes.Ints("sizes");
  int64_t sum = 0;
  for (const int64_t size : sizes) sum = size < 0 ? kTooLarge : SizeSum(sum, size);
  if (sizes.empty() || sum != x.dims[axis]) {
    return absl::InvalidArgumentError(absl::StrCat("sizes=[", absl::StrJoin(sizes, ","),
                                                   "] do not add up to the ", x.dims[axis],
                                                   " of dimension ", axis));
  }
  for (const int64_t size : sizes) {
    Dims dims = x.dims;
    dims[axis] = size;
    ORRERY_RETURN_IF_ERROR(AddResult(op, std::move(dims), results));
  }
  return absl::OkStatus();
}

absl::Status EvaluateSplit(Evaluation& e) {
  const size_t axis = AxisOf(e.attributes);
  const AroundDim whole = SplitAround(e.operand(0).dims(), axis);
  int64_t begin = 0;
  for (Tensor& part : e.results) {
    const AroundDim around = SplitAround(part.dims(), axis);
    const int64_t run = around.size * around.inner;
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t i = 0; i < run; ++i) {
        part.CopyElement(o * run + i, e.operand(0), o * whole.size * whole.inner + begin + i);
      }
    }
    begin += run;
  }
  return absl::OkStatus();
}

// The gradients of the parts side by side. Parts that nothing depends on are padding of zeros to
// their neighbour, not constants: these could not be split.
absl::Status SplitGradient(GradientContext& c) {
  const int64_t axis = c.attributes().Int("axis", 0);
  const std::vector<int64_t> sizes = c.attributes().Ints("sizes");
  struct Part {
    ValueId gradient;
    int64_t before = 0, after = 0;
  };
  std::vector<Part> parts;
  int64_t gap = 0;
  for (size_t j = 0; j < sizes.size(); ++j) {
    const ValueId gradient = c.result_gradient(static_cast<int>(j));
    if (gradient.valid()) {
      parts.push_back({.gradient = gradient, .before = parts.empty() ? gap : 0});
    } else if (parts.empty()) {
      gap += sizes[j];
    } else {
      parts.back().after += sizes[j];
    }
  }
  std::vector<ValueId> joined;
  for (const Part& part : parts) {
    const bool padded = part.before > 0 || part.after > 0;
    const AttributeSet pad = {{"axes", std::vector<int64_t>{axis}},
                              {"before", std::vector<int64_t>{part.before}},
                              {"after", std::vector<int64_t>{part.after}}};
    const std::string name = parts.size() == 1 ? c.GradientName(0) : "";
    joined.push_back(padded ? c.builder().Op(OpKind::kPad, {part.gradient}, name, pad)
                            : part.gradient);
  }
  c.SetOperandGradient(0, joined.size() == 1 ? joined[0]
                                             : c.builder().Op(OpKind::kConcat, joined,
                                                              c.GradientName(0), {{"axis", axis}}));
  return c.builder().status();
}

}  // namespace
}  // namespace join_cc

extern const OpInfo kConcatOp = {
    .name = "Concat",
    .summary = "its operands side by side along dimension `axis`",
    .operands = OpInfo::kVariadic,
    .infer = join_cc::InferConcat,
    .sharding = join_cc::ConcatRule,
    .evaluate = join_cc::EvaluateConcat,
    .gradient = join_cc::ConcatGradient,
    .linear = true,
};

extern const OpInfo kSplitOp = {
    .name = "Split",
    .summary = "parts of x of the given `sizes` along dimension `axis`",
    .op_class = OpClass::kView,
    .operands = 1,
    .results = OpInfo::kVariadic,
    .infer = join_cc::InferSplit,
    .sharding = SplitUntouchedDims,
    .evaluate = join_cc::EvaluateSplit,
    .gradient = join_cc::SplitGradient,
    .strided_view = true,
    .linear = true,
};

}  // namespace orrery::ir
