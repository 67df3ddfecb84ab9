#include <cmath>

#include "ir/ops/optimizer.h"

// Adam (Kingma & Ba 2015, Algorithm 1): two moments, their two corrections, the root, the quotient
// and the step. With a `decay` it is AdamW, whose decay stands beside the moments (Loshchilov &
// Hutter 2019, Algorithm 2); the memory that a kernel moves is the same.

namespace orrery::ir {
namespace adam_cc {
namespace {

absl::Status Evaluate(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  const double beta1 = e.attributes.Number("beta1", 0.9);
  const double beta2 = e.attributes.Number("beta2", 0.999);
  const double epsilon = e.attributes.Number("epsilon", 1e-8);
  const double step = e.attributes.Number("step", 1);
  const double correct1 = 1 - std::pow(beta1, step), correct2 = 1 - std::pow(beta2, step);
  const double decay = e.attributes.Number("decay", 0);
  return UpdateElements(e, 2, [=](double weight, double g, UpdatedMoments& state) {
    state[0] = beta1 * state[0] + (1 - beta1) * g;
    state[1] = beta2 * state[1] + (1 - beta2) * g * g;
    const double step = (state[0] / correct1) / (std::sqrt(state[1] / correct2) + epsilon);
    return rate * (step + decay * weight);
  });
}

}  // namespace
}  // namespace adam_cc

extern const OpInfo kAdamOp =
    Chosen("adam", "m,v",
           OptimizerRecord(
               "Adam",
               "Adam, two moments; biases corrected as in step number `step`; AdamW with a `decay`",
               OptimizerFlops<12>, adam_cc::Evaluate));

}  // namespace orrery::ir
