#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_CHOICES_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_CHOICES_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "support/id_table.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/op_strategies.h"
#include "transforms/sharding/shard_plan.h"
#include "transforms/sharding/sharding_nodes.h"

// What may become of each node, and what has.

namespace orrery::transforms {

/// The layout in which consumers must get each value; kReducedLayout of what is returned, and
/// kNoLayout where that is free.
using PinnedLayouts = IdTable<ir::ValueId, AxisLayout>;

/// What the user's pins on that axis and the roles of the outputs ask for.
absl::StatusOr<PinnedLayouts> PinLayouts(const ir::Function& function, const ir::Mesh& mesh,
                                         ir::AxisIndex axis, const std::vector<ShardingPin>& pins);

/// Pins data inputs as the axis splits them by its nature: "ep" the batch, "cp" the positions of
/// each sequence; `batched[i]` says whether input i has the batch as its dimension 0. Infeasible
/// where they do not divide, or there are none.
absl::Status PinData(const AxisProblem& problem, const std::vector<bool>& batched,
                     PinnedLayouts& pins);

/// One of the things that may become of a node.
struct ShardingChoice {
  int32_t strategy = 0;
  AxisLayout extra = kNoLayout;  // in which several consumers want its first result, too
};

/// What besides pins rules out strategies.
struct ChoiceRules {
  /// Matrix products take weights as they are pinned, where they can.
  bool weights_stay = false;
  /// Rows of tokens are made and read where the tokens are, and go to experts and back from there,
  /// where they can: no rank takes the tokens of others in, to pick those of its experts.
  bool tokens_stay = false;
  /// Of a pattern: what its ops make is split as it has it, and nothing else is. Where no strategy
  /// does that, and of what it leaves open, all may be. Null: there is none.
  const TensorSplits* pattern = nullptr;
  /// What that has whole, such as the residual stream, may be split all the same.
  bool opens_whole = false;
  /// Inputs that are split where anything of them divides; null: none.
  const IdTable<ir::ValueId, char>* never_whole = nullptr;
};

/// The choices of all nodes.
class ShardingChoices {
 public:
  /// `nodes` and `ways` live longer.
  ShardingChoices(const AxisProblem& problem, const ShardingNodes& nodes, LayoutWays& ways,
                  PinnedLayouts pins);

  /// Finds the choices; an error where a pin cannot be kept.
  absl::Status Make(const ChoiceRules& rules);

  const ShardingNodes& nodes() const { return nodes_; }
  const std::vector<ShardingChoice>& Of(int32_t node) const {
    return choices_[static_cast<size_t>(node)];
  }
  const OpStrategy& StrategyOf(int32_t node, const ShardingChoice& choice) const {
    return (*nodes_[node].strategies)[static_cast<size_t>(choice.strategy)];
  }

  /// How the producer of `value` leaves it by its `choice`, and how consumers get it: those differ
  /// where it is pinned.
  AxisLayout LeftBy(ir::ValueId value, const ShardingChoice& choice) const {
    return StrategyOf(nodes_.MakerOf(value), choice).results[nodes_.PositionOf(value)];
  }
  AxisLayout GivenBy(ir::ValueId value, const ShardingChoice& choice) const {
    const AxisLayout left = LeftBy(value, choice), pin = pins_[value];
    if (pin == kNoLayout) return left;
    if (pin == kReducedLayout) return left == kPartialLayout ? kWholeLayout : left;
    return pin;
  }
  /// Another layout that several of its consumers want; kNoLayout without one.
  AxisLayout ExtraBy(ir::ValueId value, const ShardingChoice& choice) const {
    return nodes_[nodes_.MakerOf(value)].values[0] == value ? choice.extra : kNoLayout;
  }
  /// How the node of `use` wants its value by its `choice`.
  AxisLayout WantedBy(const ShardingUse& use, const ShardingChoice& choice) const {
    const OpStrategy& strategy = StrategyOf(use.node, choice);
    return use.operand < 0 ? strategy.results[use.position]
                           : strategy.operands[static_cast<size_t>(use.operand)];
  }

  /// Whether that cuts its part for each product out of a frozen weight that every rank has whole.
  /// Nobody updates it, so that it would cost nothing but memory: tensor parallelism shares it.
  bool CutsFrozen(ir::ValueId value, AxisLayout given, AxisLayout wanted) const {
    return is_frozen_[value] != 0 && given == kWholeLayout && wanted >= 0;
  }

 private:
  void FindSamples();
  void FindSamplesOfSequences();
  void FindWeights();
  bool PartsSamples(ir::ValueId value, AxisLayout layout) const {
    return samples_[value] >= 0 && samples_[value] == layout;
  }
  absl::StatusOr<std::vector<size_t>> AllowedBy(const ShardingNode& node) const;
  void KeepSplit(const ShardingNode& node, const IdTable<ir::ValueId, char>& never_whole,
                 std::vector<size_t>& allowed) const;
  void KeepWeights(const ShardingNode& node, std::vector<size_t>& allowed) const;
  void KeepTokens(const ShardingNode& node, std::vector<size_t>& allowed) const;
  void KeepPattern(const ShardingNode& node, const ChoiceRules& rules,
                   std::vector<size_t>& allowed) const;
  bool MovesWeights(const ShardingNode& node, const OpStrategy& strategy) const;
  bool LeavesWeightsWhole(const ShardingNode& node, const OpStrategy& strategy) const;
  bool SplitsSamples(const ShardingNode& node, const OpStrategy& strategy) const;
  void AddExtras(const ShardingNode& node, ShardingChoice plain,
                 std::vector<ShardingChoice>& choices) const;

  const AxisProblem problem_;
  const ShardingNodes& nodes_;
  LayoutWays& ways_;
  const PinnedLayouts pins_;
  IdTable<ir::ValueId, int32_t> use_count_;
  // The dimension that has samples, where the axis must not part them; negative: it may part all.
  IdTable<ir::ValueId, int8_t> samples_;
  bool tensor_parallel_ = false;  // products share their weights
  // Of several dimensions, where it is: weights and what they are cast or gathered to; those that
  // are frozen, and not pinned.
  IdTable<ir::ValueId, char> is_weight_, is_frozen_;
  std::vector<std::vector<ShardingChoice>> choices_;  // [node]
};

/// The choice of the solver: one of each node, by number.
class ChosenShardings {
 public:
  /// `choices` lives longer.
  ChosenShardings(const ShardingChoices& choices, std::vector<int32_t> assignment)
      : choices_(choices), assignment_(std::move(assignment)) {}

  /// As ShardingChoices says it.
  AxisLayout Left(ir::ValueId value) const { return choices_.LeftBy(value, MakerOf(value)); }
  AxisLayout Given(ir::ValueId value) const { return choices_.GivenBy(value, MakerOf(value)); }
  AxisLayout Extra(ir::ValueId value) const { return choices_.ExtraBy(value, MakerOf(value)); }
  /// How `op` is carried out.
  OpStrategy::How HowOf(ir::OpId op) const;
  /// The layout in which `op` wants operand `i`.
  AxisLayout Wanted(ir::OpId op, size_t i) const;

 private:
  const ShardingChoice& Of(int32_t node) const {
    return choices_.Of(node)[static_cast<size_t>(assignment_[static_cast<size_t>(node)])];
  }
  const ShardingChoice& MakerOf(ir::ValueId value) const {
    return Of(choices_.nodes().MakerOf(value));
  }

  const ShardingChoices& choices_;
  const std::vector<int32_t> assignment_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_CHOICES_H_
