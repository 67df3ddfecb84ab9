#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/execution/execute.h"
#include "ir/op_info.h"
#include "tests/ir_text/examples.h"

// The gradient rule of every op kind against finite differences of its `evaluate`, on the examples.

namespace orrery::ir {
namespace op_gradient_test_cc {
namespace {

using examples::Example;
using Numbers = std::set<size_t>;  // of operands or results
using Tensors = std::vector<Tensor>;

// Results of floating point that gradients never come back through: they are there for the gradient
// op, or nobody trains by them. A rule says so by an error or by setting nothing.
const std::map<std::string, Numbers>& ResultsWithoutGradient() {
  static const auto& results = *new std::map<std::string, Numbers>{
      {"Attention", {1, 3}},        // statistics of the rows, and what dropout left
      {"BatchNorm", {1, 2, 3, 4}},  // saved and running statistics
      {"GroupNorm", {1, 2}},        // mean and reciprocal deviation
      {"Gru", {2}},                 // gates
      {"LayerNorm", {1, 2}},
      {"Linear", {1}},              // the value before the activation
      {"Lstm", {3, 4}},             // gates and cells
      {"NegativeLikelihood", {1}},  // weights
      {"RmsNorm", {1}},             // reciprocal root
  };
  return results;
}

// Their rules want the gradients of all results: they are only made where all results are used.
const std::set<std::string>& KindsOfAllResults() {
  static const auto& kinds = *new std::set<std::string>{"LinearGroup"};
  return kinds;
}

bool LacksGradient(const Example& example, size_t result) {
  const auto found = ResultsWithoutGradient().find(std::string(example.info().name));
  return found != ResultsWithoutGradient().end() && found->second.contains(result);
}

Numbers FloatOperands(const Example& example) {
  Numbers operands;
  for (size_t i = 0; i < example.operands.size(); ++i) {
    const bool never = i < 32 && (example.info().no_gradient >> i & 1) != 0;
    if (IsFloat(example.operands[i].dtype) && !never) operands.insert(i);
  }
  return operands;
}

Numbers FloatResults(const Tensors& results) {
  Numbers numbers;
  for (size_t j = 0; j < results.size(); ++j) {
    if (results[j].is_float()) numbers.insert(j);
  }
  return numbers;
}

// A function of the operands and of the gradients of the results `seeded`, which returns gradients.
struct Differentiated {
  Function function;
  std::vector<size_t> operands;  // whose gradients it returns
};

absl::StatusOr<Differentiated> Differentiate(const Example& example, const Numbers& seeded,
                                             const Numbers& wanted) {
  Builder b("gradient");
  std::vector<ValueId> operands, seeds;
  for (size_t i = 0; i < example.operands.size(); ++i) {
    operands.push_back(
        b.AddInput(absl::StrCat("x", i), example.operands[i], InputRole::kParameter));
  }
  const OpId op = b.Ops(example.kind, operands, {}, example.attributes);
  ORRERY_CHECK(op.valid()) << b.status().ToString();
  for (int32_t j = 0; j < b.function().result_count(op); ++j) {
    const bool is_seeded = seeded.contains(static_cast<size_t>(j));
    const TensorType type = b.type(b.function().result(op, j));
    seeds.push_back(is_seeded ? b.Data(absl::StrCat("dy", j), type) : ValueId());
  }
  IdTable<ValueId, char> needed(b.function().value_limit(), 0);
  for (const size_t i : wanted) needed[operands[i]] = 1;
  GradientContext context(b, op, seeds, needed);
  absl::Status status = example.info().gradient(context);
  if (!status.ok()) return status;
  std::vector<size_t> found;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ValueId gradient = context.operand_gradients()[i];
    if (!gradient.valid() || !wanted.contains(i)) continue;
    const TensorType type = b.type(gradient), of = example.operands[i];
    EXPECT_EQ(ToString(type, Mesh()), ToString(of, Mesh())) << "gradient of operand " << i;
    b.ReturnGradient(gradient, operands[i]);
    found.push_back(i);
  }
  absl::StatusOr<Function> function = std::move(b).Finalize();
  if (!function.ok()) return function.status();
  return Differentiated{*std::move(function), std::move(found)};
}

// The gradients on `operands` when those of the results are `seeds`.
std::map<size_t, Tensor> Gradients(const Differentiated& differentiated, const Tensors& operands,
                                   const std::map<size_t, Tensor>& seeds) {
  NamedTensors inputs;
  for (size_t i = 0; i < operands.size(); ++i) inputs[absl::StrCat("x", i)] = operands[i];
  for (const auto& [j, seed] : seeds) inputs[absl::StrCat("dy", j)] = seed;
  const auto execution = Execute(differentiated.function, inputs, {.round = false});
  std::map<size_t, Tensor> gradients;
  EXPECT_TRUE(execution.ok()) << execution.status() << "\n" << Print(differentiated.function);
  if (!execution.ok()) return gradients;
  for (size_t n = 0; n < differentiated.operands.size(); ++n) {
    gradients[differentiated.operands[n]] = execution->outputs[n];
  }
  return gradients;
}

// The sum over all results of what they hold times their seeds.
double Loss(const Example& example, const Tensors& operands,
            const std::map<size_t, Tensor>& seeds) {
  const Tensors results = examples::EvaluateExactly(example, operands).value();
  double loss = 0;
  for (const auto& [j, seed] : seeds) {
    for (size_t at = 0; at < seed.floats().size(); ++at) {
      loss += seed.floats()[at] * results[j].floats()[at];
    }
  }
  return loss;
}

// The derivative of the loss by one number: central, and nothing where the two sides differ, which
// they do where a ReLU bends.
struct Derivative {
  double value = 0;
  bool smooth = false;
};
Derivative DerivativeBy(const Example& example, Tensors operands,
                        const std::map<size_t, Tensor>& seeds, size_t operand, size_t element) {
  constexpr double kStep = 1e-5;
  const double here = Loss(example, operands, seeds);
  double& number = operands[operand].floats()[element];
  number += kStep;
  const double above = Loss(example, operands, seeds);
  number -= 2 * kStep;
  const double below = Loss(example, operands, seeds);
  const double left = (here - below) / kStep, right = (above - here) / kStep;
  const double scale = 1 + std::abs(left) + std::abs(right);
  return {.value = (above - below) / (2 * kStep), .smooth = std::abs(left - right) < 1e-2 * scale};
}

struct Tally {
  int compared = 0, bends = 0;
  std::map<std::string, int> by_kind = {};  // how many derivatives were compared
};

class GradientCheck {
 public:
  GradientCheck(const Example& example, Tally& tally) : example_(example), tally_(tally) {
    operands_ = examples::Operands(example, random_);
    results_ = examples::EvaluateExactly(example, operands_).value();
  }

  void Run() {
    const Numbers wanted = FloatOperands(example_);
    Numbers seeded;
    if (example_.info().is_loss) {  // of its own accord: the gradient of the sum is 1
      Check(wanted, {}, {0});
    } else if (KindsOfAllResults().contains(std::string(example_.info().name))) {
      seeded = FloatResults(results_);
      Check(wanted, seeded, seeded);
    } else {
      for (const size_t j : FloatResults(results_)) {
        if (Passes(j, wanted)) seeded.insert(j);
      }
      if (seeded.empty()) return;  // a Cast to whole numbers
      if (seeded.size() > 1) {
        for (const size_t j : seeded) Check(wanted, {j}, {j});
      }
      Check(wanted, seeded, seeded);
    }
    if (wanted.size() < 2) return;
    for (const size_t i : wanted) {  // a rule may do otherwise when only one gradient is asked for
      Check({i}, seeded, example_.info().is_loss ? Numbers{0} : seeded);
    }
  }

 private:
  // Whether gradients come back through result j; it must be as the list has it.
  bool Passes(size_t j, const Numbers& wanted) {
    const auto differentiated = Differentiate(example_, {j}, wanted);
    const bool passes = differentiated.ok() && !differentiated->operands.empty();
    EXPECT_EQ(passes, !LacksGradient(example_, j))
        << example_.name << ": result " << j << " "
        << (passes ? "has a gradient; take it out of ResultsWithoutGradient"
                   : "has no gradient and is not among ResultsWithoutGradient")
        << "; " << differentiated.status();
    return passes;
  }

  // Compares the gradients of `wanted` when the rule is handed those of `seeded`, with the
  // differences of the sum over results `summed`.
  void Check(const Numbers& wanted, const Numbers& seeded, const Numbers& summed) {
    const auto differentiated = Differentiate(example_, seeded, wanted);
    ASSERT_TRUE(differentiated.ok()) << example_.name << ": " << differentiated.status();
    EXPECT_EQ(Numbers(differentiated->operands.begin(), differentiated->operands.end()), wanted)
        << example_.name << ": operands that have a gradient";
    const std::map<size_t, Tensor> seeds = Seeds(summed);
    for (const auto& [i, gradient] : Gradients(*differentiated, operands_, seeds)) {
      Compare(i, gradient, seeds, Print(differentiated->function));
    }
  }

  std::map<size_t, Tensor> Seeds(const Numbers& summed) {
    std::map<size_t, Tensor> seeds;
    for (const size_t j : summed) {
      const examples::Range range = {0.2, 1, true}, one = {1, 1, false};
      std::mt19937 random(static_cast<uint32_t>(j) + 23);
      seeds[j] = examples::RandomTensor(results_[j].type(), example_.info().is_loss ? one : range,
                                        1, random);
    }
    return seeds;
  }

  void Compare(size_t i, const Tensor& gradient, const std::map<size_t, Tensor>& seeds,
               const std::string& text) {
    const size_t count = gradient.floats().size(), stride = 1 + count / 40;
    for (size_t at = 0; at < count; at += stride) {
      const Derivative derivative = DerivativeBy(example_, operands_, seeds, i, at);
      if (!derivative.smooth) {
        ++tally_.bends;
        continue;
      }
      ++tally_.compared;
      ++tally_.by_kind[std::string(example_.info().name)];
      ASSERT_NEAR(gradient.floats()[at], derivative.value, 1e-5 * (1 + std::abs(derivative.value)))
          << example_.name << ": operand " << i << " element " << at << "\n"
          << text;
    }
  }

  const Example& example_;
  Tally& tally_;
  std::mt19937 random_{29};
  Tensors operands_, results_;
};

TEST(OpGradients, AreTheDerivatives) {
  Tally tally;
  for (const Example& example : examples::All()) {
    if (example.info().gradient == nullptr || FloatOperands(example).empty()) continue;
    SCOPED_TRACE(example.name);
    tally.by_kind.emplace(example.info().name, 0);
    GradientCheck(example, tally).Run();
  }
  for (const auto& [kind, compared] : tally.by_kind) {
    EXPECT_GT(compared, 0) << kind << ": its examples have no derivative to compare";
  }
  EXPECT_GT(tally.compared, 100);
  EXPECT_LT(tally.bends, tally.compared / 20);
}

}  // namespace
}  // namespace op_gradient_test_cc
}  // namespace orrery::ir
