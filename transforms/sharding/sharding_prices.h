#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_PRICES_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_PRICES_H_

#include <cmath>
#include <span>

#include "ir/function.h"
#include "support/units.h"
#include "transforms/redistribution/step.h"

// What the choice of shardings and of stages asks of a cost model.

namespace orrery::transforms {

/// One op as one rank carries it out: all types are of the part that the fullest rank holds.
struct LocalOp {
  ir::OpKind kind;
  const ir::AttributeSet& attributes;
  std::span<const ir::TensorType* const> operands;
  std::span<const ir::TensorType* const> results;
};

/// How long things take. Pure: the same question has the same answer.
class ShardingPrices {
 public:
  virtual ~ShardingPrices() = default;

  /// Of the kernels of an op that is neither a view nor a collective.
  virtual double OpSeconds(const LocalOp& op) const = 0;
  /// Of a collective of all groups along `axes`, ascending; kImpossible for one that nobody can
  /// carry out. `size` is what a rank brings; of an all-gather what it ends up with.
  virtual double StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                             Bytes size) const = 0;
};

/// Prices of which those of collectives count so many times.
class LinkPrices final : public ShardingPrices {
 public:
  /// `prices` live longer.
  LinkPrices(const ShardingPrices& prices, double times) : prices_(prices), times_(times) {}

  double OpSeconds(const LocalOp& op) const override { return prices_.OpSeconds(op); }
  double StepSeconds(redistribution::MoveKind kind, const ir::AxisList& axes,
                     Bytes size) const override {
    const double seconds = prices_.StepSeconds(kind, axes, size);
    return std::isfinite(seconds) ? times_ * seconds : seconds;  // free links cannot do it, either
  }

 private:
  const ShardingPrices& prices_;
  const double times_;
};

/// How long a rank takes for all ops of `function`, which is sharded over its mesh, one after
/// another; and for one of them.
double SerialSeconds(const ir::Function& function, const ShardingPrices& prices);
double SerialSeconds(const ir::Function& function, ir::OpId op, const ShardingPrices& prices);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_PRICES_H_
