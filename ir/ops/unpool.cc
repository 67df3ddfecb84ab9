#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// The inverse of a maximum pool: elements go back to where the pool found them, all else is zero.
// Positions count over the whole image, so that within a plane [..] they repeat for each channel.

namespace orrery::ir {
namespace unpool_cc {
namespace {

absl::Status CheckPositions(const OpTypes& op, size_t positions) {
  ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, 0, 3, "[batch,channels,..]"));
  ORRERY_RETURN_IF_ERROR(CheckInteger(op, positions));
  return absl::OkStatus();
}

absl::Status InferMaxUnpool(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPositions(op, 1));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 1, op.operands[0]->dims, "as x"));
  const Dims& x = op.operands[0]->dims;
  const std::vector<int64_t> spatial = op.attributes.Ints("spatial");
  bool fits = spatial.size() == x.size() - 2;
  for (const int64_t size : spatial) fits = fits && size > 0 && size < (int64_t{1} << 40);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("spatial=[", absl::StrJoin(spatial, ","), "]; wanted the sizes of the image"));
  }
  Dims dims = {x[0], x[1]};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

absl::Status InferMaxUnpoolGrad(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckPositions(op, 0));
  const Dims &positions = op.operands[0]->dims, &dy = op.operands[1]->dims;
  if (positions.size() != dy.size() || positions[0] != dy[0] || positions[1] != dy[1]) {
    return absl::InvalidArgumentError(absl::StrCat("got shapes ", Show(positions), " and ",
                                                   Show(dy), "; wanted one batch and channels"));
  }
  AddResult(results, op.operands[1]->dtype, positions);
  return absl::OkStatus();
}

ShardingRule UnpoolSharding(const OpTypes& op, const TypeList&) {
  ShardingRule::Factors factors(op.operands[0]->dims.size(), kNoFactor);
  factors[0] = 0;
  factors[1] = 1;
  return {.operands = {factors, factors}, .results = {factors}};
}

// Calls f(element of the pooled image, element of the whole one).
template <typename F>
absl::Status ForEachPosition(const Tensor& positions, const Dims& image, F f) {
  const int64_t pixels = SplitAround(image, 1).inner,
                pooled = SplitAround(positions.dims(), 1).inner;
  for (int64_t i = 0; i < positions.size(); ++i) {
    const int64_t position = positions.ints()[static_cast<size_t>(i)];
    if (position < 0 || pixels == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("position ", position, " is none of the image"));
    }
    f(i, i / pooled * pixels + position % pixels);
  }
  return absl::OkStatus();
}

absl::Status EvaluateMaxUnpool(Evaluation& e) {
  Tensor& y = e.results[0];
  return ForEachPosition(e.operand(1), y.dims(),
                         [&](int64_t i, int64_t at) { y.CopyElement(at, e.operand(0), i); });
}

absl::Status EvaluateMaxUnpoolGrad(Evaluation& e) {
  const Tensor& dy = e.operand(1);
  return ForEachPosition(e.operand(0), dy.dims(),
                         [&](int64_t i, int64_t at) { e.results[0].CopyElement(i, dy, at); });
}

absl::Status MaxUnpoolGradient(GradientContext& c) {
  c.SetOperandGradient(0, c.builder().Op(OpKind::kMaxUnpoolGrad,
                                         {c.operand(1), c.result_gradient()}, c.GradientName(0)));
  return c.builder().status();
}

}  // namespace
}  // namespace unpool_cc

extern const OpInfo kMaxUnpoolOp = {
    .name = "MaxUnpool",
    .summary =
        "x [batch,channels,..] at the positions that MaxPool gave, in an image of the dims "
        "`spatial`; all else 0",
    .operands = 2,
    .infer = unpool_cc::InferMaxUnpool,
    .sharding = unpool_cc::UnpoolSharding,
    .evaluate = unpool_cc::EvaluateMaxUnpool,
    .gradient = unpool_cc::MaxUnpoolGradient,
    .no_gradient = 0b10,
};

extern const OpInfo kMaxUnpoolGradOp = {
    .name = "MaxUnpoolGrad",
    .summary = "gradient of x of MaxUnpool from the positions and the gradient of the image",
    .operands = 2,
    .infer = unpool_cc::InferMaxUnpoolGrad,
    .sharding = unpool_cc::UnpoolSharding,
    .evaluate = unpool_cc::EvaluateMaxUnpoolGrad,
};

}  // namespace orrery::ir
