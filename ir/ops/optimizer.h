#ifndef ORRERY_IR_OPS_OPTIMIZER_H_
#define ORRERY_IR_OPS_OPTIMIZER_H_

#include <array>
#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "ir/tensor.h"

// What optimizers have in common: operands in groups (ir/optimizer_operands.h), fp32 state, results
// in place.

namespace orrery::ir {

/// The learning rate where an op does not say one.
inline constexpr double kLearningRate = 0.001;

/// The types of the results of any optimizer: those of its parameters and states.
absl::Status InferOptimizer(const OpTypes& op, TypeList& results);
/// The same of one whose state is of other dims than the parameter, as OpInfo::state_dims says of
/// each of so many kinds.
absl::Status InferOptimizer(const OpTypes& op, size_t states,
                            Dims (*state_dims)(const Dims& parameter, size_t state),
                            TypeList& results);
/// Its shardings: all that belongs to a parameter is split as that is, in the dimensions that it
/// has of it.
absl::Status ShardOptimizer(const OpTypes& op, TypeList& results);

/// The elements of all parameters of an optimizer.
double ElementsUpdated(const OpTypes& op, const TypeList& results);

/// So many floating-point operations an element.
template <int kFlopsAnElement>
double OptimizerFlops(const OpTypes& op, const TypeList& results) {
  return kFlopsAnElement * ElementsUpdated(op, results);
}

/// The moments of one element, as many as the optimizer has.
using UpdatedMoments = std::array<double, 2>;
/// From one element of a weight, its gradient and its moments, which it renews: what is taken off.
using UpdateRule =
    absl::FunctionRef<double(double weight, double gradient, UpdatedMoments& moments)>;

/// Where the tensors of an optimizer with so many moments stand among its operands.
struct OptimizerGroups {
  size_t count = 0;         // of parameters
  size_t groups = 0;        // of operands
  size_t first_moment = 1;  // group; 2 behind master copies

  /// The group of what is updated: the master copies where there are any.
  size_t weights() const { return first_moment - 1; }
  /// The position of what group `group` has for parameter `i`.
  size_t At(size_t group, size_t i) const { return group * count + i; }
  /// The position of the gradient of parameter `i`.
  size_t Gradient(size_t i) const { return At(groups - 1, i); }
};
/// An error where there are tensors too many or too few a parameter.
absl::Status FindGroups(const Evaluation& e, size_t moments, OptimizerGroups& groups);

/// Applies `rule` to every element of every parameter.
absl::Status UpdateElements(Evaluation& e, size_t moments, UpdateRule rule);

/// The record of an optimizer, without what it is called where one is chosen.
constexpr OpInfo OptimizerRecord(absl::string_view name, absl::string_view summary,
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

/// The same of one that may be chosen.
constexpr OpInfo Chosen(absl::string_view as, absl::string_view states, OpInfo record) {
  record.chosen_as = as;
  record.states = states;
  return record;
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_OPTIMIZER_H_
