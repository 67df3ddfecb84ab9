#ifndef ORRERY_IR_OPTIMIZER_OPERANDS_H_
#define ORRERY_IR_OPTIMIZER_OPERANDS_H_

#include <cstddef>
#include <span>

#include "ir/attributes.h"
#include "ir/function.h"
#include "ir/type.h"

// An optimizer updates all parameters of a rank in one op, as the fused optimizers of the
// frameworks do. Its operands come in groups of as many tensors as there are parameters: the
// parameters, then each kind of state (fp32 master copies, moments), then the gradients. Its
// results are the parameters and the states, in the same places, written in place. State has the
// dimensions of its parameter, some of which may be of one element: means over them.

namespace orrery::ir {

/// The attribute that says how many parameters an optimizer has.
inline constexpr char kParameterCount[] = "parameters";

/// How many parameters an optimizer with these attributes has. Its op verifies: 1 or more.
inline size_t ParameterCount(const AttributeSet& attributes) {
  return static_cast<size_t>(attributes.Int(kParameterCount, 1));
}

/// What Muon multiplies an orthogonal matrix of these dims with, its last two: 0.2 times the root
/// of the larger one.
double MuonScale(const Dims& dims);

/// Whether dimension `dim` of a tensor of dims `dims`, which an optimizer has beside a parameter,
/// is that of the parameter, and split as it is: not a mean over it.
bool HasDimension(const Dims& parameter, const Dims& dims, size_t dim);

/// How that tensor is split: as the parameter, in the dimensions that it has of it.
Sharding SplitBeside(const TensorType& parameter, const Dims& dims);

/// The operands of one optimizer, good while its function stays as it is.
class OptimizerOperands {
 public:
  /// Requires an op of class kOptimizer that verifies.
  OptimizerOperands(const Function& function, OpId op)
      : all_(function.operands(op)), count_(ParameterCount(function.attributes(op))) {}

  /// How many parameters there are; how many tensors for each, itself and its gradient included.
  size_t count() const { return count_; }
  size_t groups() const { return all_.size() / count_; }
  std::span<const ValueId> all() const { return all_; }

  std::span<const ValueId> parameters() const { return all_.first(count_); }
  std::span<const ValueId> gradients() const { return all_.last(count_); }
  /// The first of the gradients, as a position among all operands; as many results there are.
  size_t first_gradient() const { return all_.size() - count_; }

  /// Which parameter operand or result `i` belongs to, as a position among them.
  size_t ParameterOf(size_t i) const { return i % count_; }
  /// The position of what group `group` has for parameter `i`; group 0 has itself.
  size_t Position(size_t group, size_t i) const { return group * count_ + i; }

 private:
  std::span<const ValueId> all_;
  size_t count_;
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPTIMIZER_OPERANDS_H_
