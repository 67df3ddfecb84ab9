#include "ir/ops/optimizer.h"

// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, Program 1): the
// sign of one mean of gradients is the step, another mean is kept. One moment, where Adam has two.

namespace orrery::ir {
namespace lion_cc {
namespace {

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

absl::Status Evaluate(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  const double beta1 = e.attributes.Number("beta1", 0.9);
  const double beta2 = e.attributes.Number("beta2", 0.99);
  const double decay = e.attributes.Number("decay", 0);
  return UpdateElements(e, 1, [=](double weight, double g, UpdatedMoments& state) {
    const double step = Sign(beta1 * state[0] + (1 - beta1) * g) + decay * weight;
    state[0] = beta2 * state[0] + (1 - beta2) * g;
    return rate * step;
  });
}

}  // namespace
}  // namespace lion_cc

// Two means of three each, the sign, decay, rate and step.
extern const OpInfo kLionOp = Chosen(
    "lion", "m",
    OptimizerRecord("Lion", "w - lr (sign(beta1 m + (1 - beta1) g) + decay w); m a mean of g",
                    OptimizerFlops<11>, lion_cc::Evaluate));

}  // namespace orrery::ir
