#ifndef ORRERY_TRANSFORMS_SHARDING_AXIS_LAYOUT_H_
#define ORRERY_TRANSFORMS_SHARDING_AXIS_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/function.h"
#include "transforms/sharding/auto_shard.h"

// Layouts on one axis of the mesh, and the cheapest ways between them.

namespace orrery::transforms {

/// What the axis does to a value: splits the dimension of that number, inside of what splits it
/// already, or nothing, or it leaves the value a sum over its ranks.
using AxisLayout = int8_t;
inline constexpr AxisLayout kWholeLayout = -1;
inline constexpr AxisLayout kPartialLayout = -2;
inline constexpr AxisLayout kNoLayout = -3;  // of what is not there
/// Where a layout is asked for: any but partial.
inline constexpr AxisLayout kReducedLayout = -4;

/// `type`, on which `axis` does nothing yet, in that layout.
ir::TensorType InLayout(ir::TensorType type, AxisLayout layout, ir::AxisIndex axis);

AxisLayout LayoutOf(const ir::Sharding& sharding, ir::AxisIndex axis);

/// Whether every rank gets as much of dimension `dim`, and something at all.
bool CanSplit(const ir::TensorType& type, size_t dim, ir::AxisIndex axis, const ir::Mesh& mesh);

/// A function on which one axis does nothing yet, to be sharded along it by those prices. What it
/// refers to lives longer than what is made of it.
struct AxisProblem {
  const ir::Function& function;
  const ir::Mesh& mesh;  // of the function, with `axis` at its size
  ir::AxisIndex axis;
  const ShardingPrices& prices;
  bool splits_batch = false;  // whether "hp" may split it
  bool uneven = false;        // whether ranks may get parts of different sizes
};

/// Whether the axis of the problem may split dimension `dim` of `type`: what does not divide only
/// where parts may be uneven, and there are as many elements as parts.
bool CanSplit(const ir::TensorType& type, size_t dim, const AxisProblem& problem);

/// The value that `value` is made of by ops of one operand that keep its dimensions: what other
/// types or other ranks make of a weight stands for it.
ir::ValueId WeightUnder(const ir::Function& function, ir::ValueId value);

/// From one layout to another.
struct LayoutStep {
  redistribution::MoveKind kind;
  AxisLayout before, after;
};
struct LayoutWay {
  double seconds = strategies::kImpossible;
  absl::InlinedVector<LayoutStep, 2> steps;
};

/// The cheapest ways between the layouts of values: of one step, or of two.
class LayoutWays {
 public:
  explicit LayoutWays(const AxisProblem& problem) : problem_(problem) {}

  /// Values are made partial by ops only: no way leads there.
  const LayoutWay& Find(ir::ValueId value, AxisLayout from, AxisLayout to);

 private:
  std::vector<LayoutWay> All(const ir::TensorType& type) const;
  LayoutWay Direct(const ir::TensorType& type, AxisLayout from, AxisLayout to) const;

  const AxisProblem problem_;
  std::vector<std::vector<LayoutWay>> ways_;  // by type, then [from][to]
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_AXIS_LAYOUT_H_
