#include <functional>

#include "ir/op_info.h"
#include "ir/ops/pointwise.h"
#include "support/status.h"

// Where along one dimension the extreme element stands.

namespace orrery::ir {
namespace arg_reduce_cc {
namespace {

absl::Status InferArg(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(WantNumbers(op));
  const TensorType& x = *op.operands[0];
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          NormalizeAxis(op.attributes.Int("axis", 0), x.dims.size()));
  Dims dims = x.dims;
  if (op.attributes.Int("keepdims", 0) != 0) {
    dims[axis] = 1;
  } else {
    dims.erase(dims.begin() + static_cast<int64_t>(axis));
  }
  if (x.dims[axis] == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", axis, " of ", Show(x.dims), " is empty; wanted at least 1"));
  }
  results.push_back({.dtype = DType::kI64, .dims = std::move(dims), .sharding = {}});
  return absl::OkStatus();
}

ShardingRule ArgSharding(const OpTypes& op, const TypeList&) {
  const size_t rank = op.operands[0]->dims.size();
  const size_t axis = NormalizeAxis(op.attributes.Int("axis", 0), rank).value();
  ShardingRule::Factors from, to;
  for (size_t d = 0; d < rank; ++d) {
    from.push_back(d == axis ? kNoFactor : static_cast<int8_t>(d));
    if (d != axis || op.attributes.Int("keepdims", 0) != 0) to.push_back(from.back());
  }
  return {.operands = {from}, .results = {to}};
}

// Beats(x, y): x is the more extreme one.
template <typename Beats>
absl::Status EvaluateArg(Evaluation& e) {
  const Tensor& x = e.operand(0);
  ORRERY_ASSIGN_OR_RETURN(const size_t axis,
                          NormalizeAxis(e.attributes.Int("axis", 0), x.dims().size()));
  const bool last = e.attributes.Int("select_last_index", 0) != 0;
  const AroundDim around = SplitAround(x.dims(), axis);
  WithArithmeticOf(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t to = 0; to < around.outer * around.inner; ++to) {
      const int64_t begin = to / around.inner * around.size * around.inner + to % around.inner;
      const auto at = [&](int64_t i) { return ElementOf<T>(x, begin + i * around.inner); };
      int64_t best = 0;
      for (int64_t i = 1; i < around.size; ++i) {
        if (Beats()(at(i), at(best)) || (last && at(i) == at(best))) best = i;
      }
      e.results[0].ints()[static_cast<size_t>(to)] = best;
    }
  });
  return absl::OkStatus();
}

double ArgFlops(const OpTypes& op, const TypeList&) {
  return static_cast<double>(ElementCount(op.operands[0]->dims));
}

}  // namespace
}  // namespace arg_reduce_cc

extern const OpInfo kArgMaxOp = {
    .name = "ArgMax",
    .summary =
        "where along `axis` the greatest x is, the first unless select_last_index=1; the "
        "dimension vanishes unless keepdims=1",
    .operands = 1,
    .infer = arg_reduce_cc::InferArg,
    .flops = arg_reduce_cc::ArgFlops,
    .sharding = arg_reduce_cc::ArgSharding,
    .evaluate = arg_reduce_cc::EvaluateArg<std::greater<>>,
    .no_gradient = 1,
};

extern const OpInfo kArgMinOp = {
    .name = "ArgMin",
    .summary =
        "where along `axis` the least x is, the first unless select_last_index=1; the "
        "dimension vanishes unless keepdims=1",
    .operands = 1,
    .infer = arg_reduce_cc::InferArg,
    .flops = arg_reduce_cc::ArgFlops,
    .sharding = arg_reduce_cc::ArgSharding,
    .evaluate = arg_reduce_cc::EvaluateArg<std::less<>>,
    .no_gradient = 1,
};

}  // namespace orrery::ir
