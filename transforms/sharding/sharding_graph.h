#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_

#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "support/id_table.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/op_strategies.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {

/// The layout in which consumers must get each value; kReducedLayout of what is returned, and
/// kNoLayout where that is free.
using PinnedLayouts = IdTable<ir::ValueId, AxisLayout>;

/// What the user's pins on that axis and the roles of the outputs ask for.
absl::StatusOr<PinnedLayouts> PinLayouts(const ir::Function& function, const ir::Mesh& mesh,
                                         ir::AxisIndex axis, const std::vector<ShardingPin>& pins);

/// Which strategy to take where, as a graph of costs. A node is an op; or inputs that are sharded
/// alike: a parameter, its state, and what the optimizer makes of them.
class ShardingGraph {
 public:
  /// Of `options`: microbatches and in_flight.
  ShardingGraph(const ir::Function& function, const ir::Mesh& mesh, ir::AxisIndex axis,
                const ShardingPrices& prices, OpStrategies& strategies, LayoutWays& ways,
                PinnedLayouts pins, const AutoShardOptions& options);

  /// Fills the graph; an error where a pin cannot be kept.
  absl::Status Build();

  const strategies::StrategyGraph& graph() const { return graph_; }
  /// Bytes that each strategy of each node keeps, as AutoShardOptions::memory_limit counts them.
  const std::vector<std::vector<double>>& memory() const { return memory_; }
  /// The choice of the solver, which the functions below read.
  void Choose(std::vector<int32_t> assignment) { assignment_ = std::move(assignment); }

  /// How its producer leaves `value`, and how consumers get it: those differ where it is pinned.
  AxisLayout Left(ir::ValueId value) const { return LeftBy(value, ChoiceOf(node_of_[value])); }
  AxisLayout Given(ir::ValueId value) const { return GivenBy(value, ChoiceOf(node_of_[value])); }
  /// Another layout that several of its consumers want; kNoLayout without one.
  AxisLayout Extra(ir::ValueId value) const { return ExtraBy(value, ChoiceOf(node_of_[value])); }
  /// How `op` is carried out.
  OpStrategy::How HowOf(ir::OpId op) const;
  /// The layout in which `op` wants operand `i`.
  AxisLayout Wanted(ir::OpId op, size_t i) const;

 private:
  struct Choice {
    int32_t strategy = 0;
    AxisLayout extra = kNoLayout;  // of the first result
  };
  struct Node {
    std::string name;
    const std::vector<OpStrategy>* strategies = nullptr;
    std::vector<Choice> choices;
    std::vector<ir::ValueId> values;  // results, or inputs that are sharded alike
    bool is_group = false;            // of inputs
    double share = 1;                 // of its seconds that count
  };
  // A node whose strategies want a value: as operand `operand`, or as its own values are.
  struct Use {
    ir::ValueId value;
    int32_t node = 0;
    int operand = -1;
  };

  size_t AddNode(std::string name, bool is_group);
  void AddValue(size_t node, ir::ValueId value);
  void AddGroupStrategies(size_t node);
  void AddInputs();
  void AddOptimizer(ir::OpId op);
  void AddOp(ir::OpId op);
  void AddOutputs();
  absl::Status PinGroup(size_t node);
  void AddGroupSeconds(ir::OpId op);
  void MakeChoices(size_t node);
  void FindSamples();
  bool MovesWeights(size_t number, const OpStrategy& strategy) const;
  bool SplitsSamples(size_t node, const OpStrategy& strategy) const;
  absl::Status MakeCosts(size_t node);
  double SumSeconds(ir::ValueId value, AxisLayout layout) const;
  void FindKept(const IdTable<ir::OpId, StepPhase>& phase);
  void FindSummed(const IdTable<ir::OpId, StepPhase>& phase);
  void MakeMemory(size_t node);
  void MakeEdge(const Use& use);

  const Choice& ChoiceOf(int32_t node) const {
    return nodes_[static_cast<size_t>(node)]
        .choices[static_cast<size_t>(assignment_[static_cast<size_t>(node)])];
  }
  AxisLayout LeftBy(ir::ValueId value, const Choice& choice) const;
  AxisLayout GivenBy(ir::ValueId value, const Choice& choice) const;
  AxisLayout ExtraBy(ir::ValueId value, const Choice& choice) const;
  AxisLayout WantedBy(const Use& use, const Choice& choice) const;

  const ir::Function& function_;
  const ir::Mesh& mesh_;
  const ir::AxisIndex axis_;
  const ShardingPrices& prices_;
  OpStrategies& strategies_;
  LayoutWays& ways_;
  PinnedLayouts pins_;
  const bool weights_stay_;    // where pins have them, in matrix products
  const double update_share_;  // of the seconds of an update, to count for a microbatch
  const double in_flight_;     // microbatches
  std::vector<Node> nodes_;
  std::deque<std::vector<OpStrategy>> of_groups_;  // strategies of groups
  IdTable<ir::ValueId, int32_t> node_of_;          // that makes the value
  IdTable<ir::ValueId, int8_t> position_;          // among the results of the node
  IdTable<ir::ValueId, int32_t> use_count_;
  IdTable<ir::ValueId, char> kept_;     // by forward, for backward
  IdTable<ir::ValueId, char> summed_;   // over microbatches, for the update
  IdTable<ir::ValueId, double> held_;   // the part of it that a rank keeps for the update
  IdTable<ir::ValueId, char> samples_;  // along dimension 0; marked for axis "cp" only
  IdTable<ir::OpId, int32_t> node_of_op_;
  std::vector<Use> uses_;
  strategies::StrategyGraph graph_;
  std::vector<std::vector<double>> memory_;
  std::vector<int32_t> assignment_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_GRAPH_H_
