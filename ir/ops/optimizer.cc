#include "absl/strings/str_cat.h"
#include "ir/op_info.h"

// Optimizers update all parameters of a rank in one op, as the fused optimizers of the frameworks
// do. Operands come in groups of `parameters` tensors: the parameters, then each kind of state,
// then the gradients. The results are the parameters and the state, written in place.

namespace orrery::ir {
namespace {

absl::Status InferOptimizer(const OpTypes& op, TypeList& results) {
  const int64_t parameters = op.attributes.Int("parameters", 0);
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
  const auto n = static_cast<size_t>(op.attributes.Int("parameters", 1));
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
  const auto n = static_cast<size_t>(op.attributes.Int("parameters", 1));
  double elements = 0;
  for (size_t i = 0; i < n; ++i) elements += static_cast<double>(ElementCount(results[i].dims));
  return kFlopsAnElement * elements;
}

constexpr OpInfo Optimizer(absl::string_view name, absl::string_view summary,
                           double (*flops)(const OpTypes&, const TypeList&)) {
  return {.name = name,
          .summary = summary,
          .op_class = OpClass::kOptimizer,
          .operands = OpInfo::kVariadic,
          .results = OpInfo::kVariadic,
          .infer = InferOptimizer,
          .flops = flops,
          .infer_sharding = ShardOptimizer,
          .in_place_from = 0};
}

}  // namespace

// Multiply-adds an element: w -= lr g; v = mu v + g, w -= lr v; Adam's two moments, the two bias
// corrections, the root, the quotient and the step (Kingma & Ba 2015, Algorithm 1).
extern const OpInfo kSgdOp = Optimizer("Sgd", "w - lr g", OptimizerFlops<2>);
extern const OpInfo kMomentumOp =
    Optimizer("Momentum", "v = mu v + g; w - lr v", OptimizerFlops<4>);
extern const OpInfo kAdamOp = Optimizer("Adam", "Adam, two moments", OptimizerFlops<12>);

}  // namespace orrery::ir
