#ifndef ORRERY_IR_OPS_NORMALIZATION_H_
#define ORRERY_IR_OPS_NORMALIZATION_H_

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/tensor.h"

// What LayerNorm and GroupNorm have in common. Both cut x into runs of elements that follow each
// other, and make mean 0 and variance 1 of each run. Operands are x, scale and bias; results y, and
// the mean and 1 / standard deviation of each run. The gradient op has the operands x, scale, mean,
// 1 / standard deviation and dy, and the results dx, dscale and dbias. They differ in where the
// scale and the bias of an element stand.

namespace orrery::ir {

/// Flops an element: 4 for the statistics, 2 to normalize, 2 to scale.
inline constexpr double kNormFlops = 8;
inline constexpr double kNormGradFlops = 14;

/// Elements of operand 0.
inline double ElementsOfFirst(const OpTypes& op) {
  return static_cast<double>(ElementCount(op.operands[0]->dims));
}

/// Appends y as x, and statistics of these dims.
void AddNormResults(const TensorType& x, const Dims& statistics, TypeList& results);
/// Checks operands 2 to 4 of the gradient op, and appends its results.
absl::Status InferNormGrad(const OpTypes& op, const Dims& statistics, TypeList& results);
/// One gradient op of that kind for all operands. An error where a gradient of the statistics is
/// asked for.
absl::Status NormGradient(GradientContext& c, OpKind grad, const AttributeSet& attributes);

/// The elements of x that are normalized together: run `index` of several of one size.
struct NormRun {
  int64_t index, size;

  int64_t start() const { return index * size; }
};

/// The mean of a run, and 1 / its standard deviation.
struct Moments {
  double mean, rstd;
};
Moments MomentsOf(const Tensor& x, const NormRun& run, double epsilon);

/// Computes the results for one run. `position(i, n)` is where the scale, or the bias, of element i
/// of the run stands among n.
template <typename Position>
void NormalizeRun(Evaluation& e, const NormRun& run, Position position) {
  const Tensor &x = e.operand(0), &scale = e.operand(1);
  const Moments moments = MomentsOf(x, run, e.attributes.Number("epsilon", 1e-5));
  e.results[1].SetNumber(run.index, moments.mean);
  e.results[2].SetNumber(run.index, moments.rstd);
  for (int64_t i = 0; i < run.size; ++i) {
    const double normal = (x.Number(run.start() + i) - moments.mean) * moments.rstd;
    const double bias =
        e.has_operand(2) ? e.operand(2).Number(position(i, e.operand(2).size())) : 0;
    e.results[0].SetNumber(run.start() + i,
                           normal * scale.Number(position(i, scale.size())) + bias);
  }
}

/// The gradients from one run. With n the normalized x and g = dy scale:
/// dx = rstd (g - mean(g) - n mean(g n)).
template <typename Position>
void NormalizeRunBack(Evaluation& e, const NormRun& run, Position position) {
  const Tensor &x = e.operand(0), &scale = e.operand(1), &dy = e.operand(4);
  const Moments moments = {e.operand(2).Number(run.index), e.operand(3).Number(run.index)};
  const auto normal = [&](int64_t i) {
    return (x.Number(run.start() + i) - moments.mean) * moments.rstd;
  };
  auto &dscale = e.results[1].floats(), &dbias = e.results[2].floats();
  const auto n = static_cast<double>(run.size);
  double sum = 0, product = 0;
  for (int64_t i = 0; i < run.size; ++i) {
    const auto at = static_cast<size_t>(position(i, scale.size()));
    const double gradient = dy.Number(run.start() + i);
    dbias[at] += gradient;
    dscale[at] += gradient * normal(i);
    sum += gradient * scale.floats()[at] / n;
    product += gradient * scale.floats()[at] * normal(i) / n;
  }
  for (int64_t i = 0; i < run.size; ++i) {
    const double scaled = dy.Number(run.start() + i) * scale.Number(position(i, scale.size()));
    e.results[0].SetNumber(run.start() + i, moments.rstd * (scaled - sum - normal(i) * product));
  }
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_NORMALIZATION_H_
