#include "ir/ops/optimizer.h"

#include "absl/strings/str_cat.h"
#include "ir/ops/kernels.h"

namespace orrery::ir {

namespace optimizer_cc {
namespace {

// The dims that operand `i` has to have beside its parameter.
Dims WantedDims(const OpTypes& op, size_t i, size_t states,
                Dims (*state_dims)(const Dims& parameter, size_t state)) {
  const size_t n = ParameterCount(op.attributes), groups = op.operands.size() / n, group = i / n;
  const Dims& parameter = op.operands[i % n]->dims;
  const size_t first = groups - 1 - states;
  const bool state = state_dims != nullptr && group >= first && group + 1 < groups;
  return state ? state_dims(parameter, group - first) : parameter;
}

}  // namespace
}  // namespace optimizer_cc

bool HasDimension(const Dims& parameter, const Dims& dims, size_t dim) {
  return dims.size() == parameter.size() && dims[dim] == parameter[dim];
}

Sharding SplitBeside(const TensorType& parameter, const Dims& dims) {
  if (dims == parameter.dims) return parameter.sharding;
  Sharding split;
  for (size_t d = 0; d < parameter.dims.size(); ++d) {
    if (!HasDimension(parameter.dims, dims, d)) continue;
    split.Set(d, dims.size(), parameter.sharding.at(d), parameter.sharding.block(d));
  }
  return split;
}

absl::Status InferOptimizer(const OpTypes& op, TypeList& results) {
  return InferOptimizer(op, 0, nullptr, results);
}

absl::Status InferOptimizer(const OpTypes& op, size_t states,
                            Dims (*state_dims)(const Dims& parameter, size_t state),
                            TypeList& results) {
  const int64_t parameters = op.attributes.Int(kParameterCount, 0);
  const auto count = static_cast<int64_t>(op.operands.size());
  if (parameters <= 0 || count % parameters != 0 ||
      count / parameters < 2 + static_cast<int64_t>(states)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", count, " operands and parameters=", parameters,
        "; wanted as many gradients as parameters, and ",
        states == 0 ? "" : absl::StrCat(states, " or more "), "whole groups of state between"));
  }
  const auto n = static_cast<size_t>(parameters);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Dims wanted = optimizer_cc::WantedDims(op, i, states, state_dims);
    if (op.operands[i]->dims == wanted) continue;
    if (wanted == op.operands[i % n]->dims) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " differs in shape from its parameter, operand ", i % n));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("operand ", i, " has shape ", Show(op.operands[i]->dims), "; wanted ",
                     Show(wanted), ", means of its parameter, operand ", i % n));
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
    if (sharding != SplitBeside(*op.operands[i % n], op.operands[i]->dims)) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " is not split as its parameter, operand ", i % n, ", is"));
    }
    if (i < results.size()) results[i].sharding = sharding;
  }
  return absl::OkStatus();
}

double ElementsUpdated(const OpTypes& op, const TypeList& results) {
  double elements = 0;
  for (size_t i = 0; i < ParameterCount(op.attributes); ++i) {
    elements += static_cast<double>(ElementCount(results[i].dims));
  }
  return elements;
}

absl::Status FindGroups(const Evaluation& e, size_t moments, OptimizerGroups& groups) {
  groups.count = ParameterCount(e.attributes);
  groups.groups = e.operands.size() / groups.count;
  if (groups.groups != moments + 2 && groups.groups != moments + 3) {
    return absl::InvalidArgumentError(absl::StrCat("got ", groups.groups,
                                                   " tensors a parameter; wanted ", moments + 2,
                                                   " or, with a master copy, ", moments + 3));
  }
  groups.first_moment = groups.groups - moments - 1;
  return absl::OkStatus();
}

absl::Status UpdateElements(Evaluation& e, size_t moments, UpdateRule rule) {
  OptimizerGroups groups;
  if (absl::Status status = FindGroups(e, moments, groups); !status.ok()) return status;
  const size_t first = groups.first_moment;
  for (size_t i = 0; i < groups.count; ++i) {
    const Tensor& weights = e.operand(groups.At(groups.weights(), i));
    const Tensor& gradient = e.operand(groups.Gradient(i));
    for (int64_t at = 0; at < weights.size(); ++at) {
      UpdatedMoments state = {};
      for (size_t j = 0; j < moments; ++j) {
        state[j] = e.operand(groups.At(first + j, i)).Number(at);
      }
      const double weight = weights.Number(at);
      const double updated = weight - rule(weight, gradient.Number(at), state);
      for (size_t copy = 0; copy < first; ++copy) {
        e.results[groups.At(copy, i)].SetNumber(at, updated);
      }
      for (size_t j = 0; j < moments; ++j) {
        e.results[groups.At(first + j, i)].SetNumber(at, state[j]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::ir
