#include "ir/ops/optimizer.h"

// Gradient descent with a heavy ball (Polyak 1964).

namespace orrery::ir {
namespace momentum_cc {
namespace {

absl::Status Evaluate(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  const double mu = e.attributes.Number("mu", 0.9);
  return UpdateElements(e, 1, [rate, mu](double, double g, UpdatedMoments& state) {
    state[0] = mu * state[0] + g;
    return rate * state[0];
  });
}

}  // namespace
}  // namespace momentum_cc

extern const OpInfo kMomentumOp = Chosen("momentum", "m",
                                         OptimizerRecord("Momentum", "v = mu v + g; w - lr v",
                                                         OptimizerFlops<4>, momentum_cc::Evaluate));

}  // namespace orrery::ir
