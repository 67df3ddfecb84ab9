#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_NODES_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_NODES_H_

#include <deque>
#include <string>
#include <vector>

#include "ir/function.h"
#include "support/id_table.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/op_strategies.h"
#include "transforms/training/step_phases.h"

// What is sharded alike, and who wants what of whom: the graph of choices before anything is chosen
// or priced.

namespace orrery::transforms {

/// An op; or inputs that are sharded alike: a parameter, its state, and what the optimizer makes of
/// them.
struct ShardingNode {
  std::string name;
  /// Their results are those of the op; of a group the layouts of its shapes: see PositionOf.
  const std::vector<OpStrategy>* strategies = nullptr;
  std::vector<ir::ValueId> values;  // results, or inputs that are sharded alike
  bool is_group = false;            // of inputs
  bool once_a_step = false;         // its seconds: not for each microbatch
};

/// A node whose strategies want a value: as operand `operand`, or, of -1, as its own values of
/// shape `position` are.
struct ShardingUse {
  ir::ValueId value;
  int32_t node = 0;
  int operand = -1;
  size_t position = 0;
};

/// The nodes of a function and their uses of values.
class ShardingNodes {
 public:
  /// `strategies` lives longer.
  ShardingNodes(const AxisProblem& problem, OpStrategies& strategies,
                const IdTable<ir::OpId, StepPhase>& phase);
  ShardingNodes(const ShardingNodes&) = delete;
  ShardingNodes& operator=(const ShardingNodes&) = delete;

  /// Groups stand before ops.
  const std::vector<ShardingNode>& all() const { return nodes_; }
  const ShardingNode& operator[](int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  const std::vector<ShardingUse>& uses() const { return uses_; }

  /// The node that makes the value, and where among its results. In a group the number of its
  /// shape: 0 is that of the parameter, others lack dimensions over which state is a mean.
  int32_t MakerOf(ir::ValueId value) const { return node_of_[value]; }
  size_t PositionOf(ir::ValueId value) const { return static_cast<size_t>(position_[value]); }
  /// The node of an op; of an optimizer, which has one for each parameter, the first.
  int32_t NodeOf(ir::OpId op) const { return node_of_op_[op]; }
  /// How `op` uses its operand `i`.
  ShardingUse UseOf(ir::OpId op, size_t i) const;

 private:
  size_t AddNode(std::string name, bool is_group);
  void AddValue(size_t node, ir::ValueId value);
  size_t ShapeIn(size_t node, const ir::Dims& dims);
  AxisLayout LayoutIn(size_t node, size_t shape, AxisLayout layout) const;
  void AddGroupStrategies(size_t node);
  void AddGroupSeconds(ir::OpId op);
  void AddInputs();
  void AddOptimizer(ir::OpId op);
  void AddOp(ir::OpId op, const std::vector<OpStrategy>& strategies);
  void AddOutputs();

  const AxisProblem problem_;
  std::vector<ShardingNode> nodes_;
  std::deque<std::vector<OpStrategy>> of_groups_;  // strategies of groups
  std::vector<std::vector<ir::Dims>> shapes_;      // of groups; the first is the parameter's
  IdTable<ir::ValueId, int32_t> node_of_;
  IdTable<ir::ValueId, int8_t> position_;
  IdTable<ir::OpId, int32_t> node_of_op_;  // of an optimizer the first
  std::vector<ShardingUse> uses_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_NODES_H_
