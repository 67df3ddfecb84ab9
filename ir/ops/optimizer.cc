#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "ir/tensor.h"

namespace orrery::ir {
namespace optimizer_cc {
namespace {

absl::Status InferOptimizer(const OpTypes& op, TypeList& results) {
  const int64_t parameters = op.attributes.Int(kParameterCount, 0);
  const auto count = static_cast<int64_t>(op.operands.size());
  if (parameters <= 0 || count % parameters != 0 || count / parameters < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", count, " operands and parameters=", parameters,
        "; wanted as many gradients as parameters, and whole groups of state between"));
  }
  const auto n = static_cast<size_t>(parameters);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i]->dims != op.operands[i % n]->dims) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " differs in shape from its parameter, operand ", i % n));
    }
  }
  for (size_t i = 0; i < op.operands.size() - n; ++i) {
    results.push_back(
        {.dtype = op.operands[i]->dtype, .dims = op.operands[i]->dims, .sharding = {}});
  }
  return absl::OkStatus();
}

absl::Status ShardOptimizer(const OpTypes& op, TypeList& results) {
  const size_t n = ParameterCount(op.attributes);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Sharding& sharding = op.operands[i]->sharding;
    if (!sharding.partial.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", i, " is partial over ",
                                                     op.mesh.Names(sharding.partial),
                                                     "; it must be reduced first"));
    }
    if (sharding != op.operands[i % n]->sharding) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " is not split as its parameter, operand ", i % n, ", is"));
    }
    if (i < results.size()) results[i].sharding = sharding;
  }
  return absl::OkStatus();
}

template <int kFlopsAnElement>
double OptimizerFlops(const OpTypes& op, const TypeList& results) {
  const size_t n = ParameterCount(op.attributes);
  double elements = 0;
  for (size_t i = 0; i < n; ++i) elements += static_cast<double>(ElementCount(results[i].dims));
  return kFlopsAnElement * elements;
}

using Moments = std::array<double, 2>;

// Applies `step` to every element of every parameter: from its gradient and its moments, which it
// renews, it makes what is taken off. Where there are master copies they are what is updated.
template <typename Step>
absl::Status EvaluateOptimizer(Evaluation& e, size_t moments, Step step) {
  const size_t n = ParameterCount(e.attributes);
  const size_t groups = e.operands.size() / n;
  const bool masters = groups == moments + 3;
  if (!masters && groups != moments + 2) {
    return absl::InvalidArgumentError(absl::StrCat("got ", groups, " tensors a parameter; wanted ",
                                                   moments + 2, " or, with a master copy, ",
                                                   moments + 3));
  }
  const size_t first_moment = masters ? 2 : 1;
  for (size_t i = 0; i < n; ++i) {
    const Tensor &weights = e.operand(masters ? n + i : i),
                 &gradient = e.operand((groups - 1) * n + i);
    for (int64_t at = 0; at < weights.size(); ++at) {
      Moments state = {};
      for (size_t j = 0; j < moments; ++j) {
        state[j] = e.operand((first_moment + j) * n + i).Number(at);
      }
      const double updated = weights.Number(at) - step(gradient.Number(at), state);
      for (size_t copy = 0; copy < first_moment; ++copy)
        e.results[copy * n + i].SetNumber(at, updated);
      for (size_t j = 0; j < moments; ++j) {
        e.results[(first_moment + j) * n + i].SetNumber(at, state[j]);
      }
    }
  }
  return absl::OkStatus();
}

constexpr double kLearningRate = 0.001;

absl::Status EvaluateSgd(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  return EvaluateOptimizer(e, 0, [rate](double gradient, Moments&) { return rate * gradient; });
}

absl::Status EvaluateMomentum(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  const double mu = e.attributes.Number("mu", 0.9);
  return EvaluateOptimizer(e, 1, [rate, mu](double gradient, Moments& state) {
    state[0] = mu * state[0] + gradient;
    return rate * state[0];
  });
}

absl::Status EvaluateAdam(Evaluation& e) {
  const double rate = e.attributes.Number("lr", kLearningRate);
  const double beta1 = e.attributes.Number("beta1", 0.9);
  const double beta2 = e.attributes.Number("beta2", 0.999);
  const double epsilon = e.attributes.Number("epsilon", 1e-8);
  const double step = e.attributes.Number("step", 1);
  const double correct1 = 1 - std::pow(beta1, step), correct2 = 1 - std::pow(beta2, step);
  return EvaluateOptimizer(e, 2, [=](double gradient, Moments& state) {
    state[0] = beta1 * state[0] + (1 - beta1) * gradient;
    state[1] = beta2 * state[1] + (1 - beta2) * gradient * gradient;
    return rate * (state[0] / correct1) / (std::sqrt(state[1] / correct2) + epsilon);
  });
}

constexpr OpInfo Optimizer(absl::string_view name, absl::string_view summary,
                           double (*flops)(const OpTypes&, const TypeList&),
                           absl::Status (*evaluate)(Evaluation&)) {
  return {.name = name,
          .summary = summary,
          .op_class = OpClass::kOptimizer,
          .operands = OpInfo::kVariadic,
          .results = OpInfo::kVariadic,
          .infer = InferOptimizer,
          .flops = flops,
          .infer_sharding = ShardOptimizer,
          .evaluate = evaluate,
          .in_place_from = 0};
}

}  // namespace
}  // namespace optimizer_cc

// Multiply-adds an element: w -= lr g; v = mu v + g, w -= lr v; Adam's two moments, the two bias
// corrections, the root, the quotient and the step (Kingma & Ba 2015, Algorithm 1).
extern const OpInfo kSgdOp = optimizer_cc::Optimizer(
    "Sgd", "w - lr g", optimizer_cc::OptimizerFlops<2>, optimizer_cc::EvaluateSgd);
extern const OpInfo kMomentumOp =
    optimizer_cc::Optimizer("Momentum", "v = mu v + g; w - lr v", optimizer_cc::OptimizerFlops<4>,
                            optimizer_cc::EvaluateMomentum);
extern const OpInfo kAdamOp =
    optimizer_cc::Optimizer("Adam", "Adam, two moments; biases corrected as in step number `step`",
                            optimizer_cc::OptimizerFlops<12>, optimizer_cc::EvaluateAdam);

}  // namespace orrery::ir
