#include <cmath>

#include "ir/ops/optimizer.h"

// Adagrad (Duchi, Hazan & Singer 2011, with a diagonal matrix): each weight has a rate of its own,
// which falls with the sum of the squares of its gradients.

namespace orrery::ir {
namespace adagrad_cc {
namespace {

absl::Status Evaluate(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  const double epsilon = e.attributes.Number("epsilon", 1e-10);
  return UpdateElements(e, 1, [rate, epsilon](double, double g, UpdatedMoments& state) {
    state[0] += g * g;
    return rate * g / (std::sqrt(state[0]) + epsilon);
  });
}

}  // namespace
}  // namespace adagrad_cc

// The square and its sum, root, epsilon, quotient, rate, step.
extern const OpInfo kAdagradOp =
    Chosen("adagrad", "v",
           OptimizerRecord("Adagrad", "v = v + g²; w - lr g / (√v + epsilon)", OptimizerFlops<7>,
                           adagrad_cc::Evaluate));

}  // namespace orrery::ir
