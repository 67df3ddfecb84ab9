#include "ir/ops/optimizer.h"

// Stochastic gradient descent: no state.

namespace orrery::ir {
namespace sgd_cc {
namespace {

absl::Status Evaluate(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  return UpdateElements(e, 0, [rate](double, double g, UpdatedMoments&) { return rate * g; });
}

}  // namespace
}  // namespace sgd_cc

extern const OpInfo kSgdOp =
    Chosen("sgd", "", OptimizerRecord("Sgd", "w - lr g", OptimizerFlops<2>, sgd_cc::Evaluate));

}  // namespace orrery::ir
