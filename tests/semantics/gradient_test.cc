#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/text.h"
#include "support/sanitized_test_util.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/training/training_step.h"

// Gradients against finite differences of the loss.

namespace orrery::semantics {
namespace gradient_test_cc {
namespace {

double Loss(const ir::Function& function, const Named& inputs) {
  double sum = 0;
  const Named outputs = RunAll(function, inputs).outputs;
  for (const double value : outputs.at("loss").floats()) sum += value;
  return sum;
}

// The derivative of the loss by one number: central, and nothing where the two sides differ, which
// they do where a ReLU bends.
struct Derivative {
  double value = 0;
  bool smooth = false;
};
Derivative Differentiate(const ir::Function& function, Named inputs, const std::string& name,
                         size_t element) {
  constexpr double kStep = 1e-5;
  const double here = Loss(function, inputs);
  double& number = inputs.at(name).floats()[element];
  number += kStep;
  const double above = Loss(function, inputs);
  number -= 2 * kStep;
  const double below = Loss(function, inputs);
  const double left = (here - below) / kStep, right = (above - here) / kStep;
  const double scale = 1 + std::abs(left) + std::abs(right);
  return {.value = (above - below) / (2 * kStep), .smooth = std::abs(left - right) < 1e-3 * scale};
}

TEST(Gradients, AreTheDerivativesOfTheLoss) {
  int compared = 0, bends = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(60u); ++seed) {
    const ir::Function step = RandomStep({.seed = seed,
                                          .layers = 1 + static_cast<int>(seed % 3),
                                          .batch = 2,
                                          .width_unit = 2,
                                          .tied = seed % 2 == 0},
                                         "none");
    const Named inputs = RandomInputs(step, seed), outputs = RunAll(step, inputs).outputs;
    for (const ir::Output& output : step.outputs()) {
      if (output.role != ir::OutputRole::kGradient) continue;
      const std::string name(step.value_name(output.of));
      const Tensor& gradient = outputs.at(std::string(step.value_name(output.value)));
      for (size_t i = 0; i < gradient.floats().size(); i += 1 + seed % 3) {
        const Derivative derivative = Differentiate(step, inputs, name, i);
        if (!derivative.smooth) {
          ++bends;
          continue;
        }
        ++compared;
        ASSERT_NEAR(gradient.floats()[i], derivative.value, 1e-5 * (1 + std::abs(derivative.value)))
            << "seed " << seed << ", " << name << "[" << i << "]\n"
            << ir::Print(step);
      }
    }
  }
  EXPECT_GT(compared, CasesToWalk(1000));
  EXPECT_LT(bends, compared / 20);
}

TEST(Gradients, ThereIsOneForEveryParameterThatTheLossDependsOn) {
  for (uint32_t seed = 0; seed < CasesToWalk(40u); ++seed) {
    const ir::Function step = RandomStep({.seed = seed, .layers = 4}, "none");
    size_t parameters = 0, gradients = 0;
    for (const ir::Input& input : step.inputs()) {
      parameters += input.role == ir::InputRole::kParameter;
    }
    for (const ir::Output& output : step.outputs()) {
      gradients += output.role == ir::OutputRole::kGradient;
    }
    EXPECT_EQ(gradients, parameters) << ir::Print(step);
  }
}

}  // namespace
}  // namespace gradient_test_cc
}  // namespace orrery::semantics
