#ifndef ORRERY_TRANSFORMS_SHARDING_AXIS_FRAME_H_
#define ORRERY_TRANSFORMS_SHARDING_AXIS_FRAME_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/function.h"
#include "support/id_table.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/axis_layout.h"
#include "transforms/sharding/op_strategies.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/sharding/sharding_graph.h"
#include "transforms/sharding/sharding_memory.h"
#include "transforms/sharding/sharding_nodes.h"
#include "transforms/strategies/short_graph.h"
#include "transforms/strategies/strategy_graph.h"
#include "transforms/training/step_phases.h"

// What questions have in common that ask for the sharding of one step over one axis, and differ in
// what memory is worth or in a pattern: it is most of what a question takes.

namespace orrery::transforms {

/// One way to use an axis: what may become of each node by pins and rules, and what it costs.
class PricedChoices {
 public:
  /// All that is given lives longer, but for `seconds`.
  PricedChoices(std::unique_ptr<ShardingChoices> choices, std::unique_ptr<ShardingMemory> memory,
                strategies::StrategyGraph seconds);

  const ShardingChoices& choices() const { return *choices_; }
  /// What they cost, PriceChoices.
  const strategies::StrategyGraph& seconds() const { return seconds_; }
  /// What they keep, WeighChoices.
  const strategies::StrategyGraph& bytes(KeptGathered gathered);
  KeptMemory KeptBy(const std::vector<int32_t>& assignment) { return memory_->OfAll(assignment); }

  /// The choice that is cheapest where each byte costs `price` seconds; its cost is without them.
  /// Equal layers are solved once.
  absl::StatusOr<strategies::StrategyChoice> Solve(double price, KeptGathered gathered,
                                                   const strategies::SolveOptions& options);

 private:
  // What is asked of the solver, written with fewer layers.
  struct Shorter {
    strategies::ShortGraph graph;
    strategies::StrategyGraph seconds;
    std::array<std::optional<strategies::StrategyGraph>, 2> bytes;
  };

  std::optional<strategies::StrategyGraph> ShorterAt(double price, KeptGathered gathered);
  absl::StatusOr<strategies::StrategyChoice> SolveShorter(double price, KeptGathered gathered,
                                                          strategies::SolveOptions options);
  absl::StatusOr<strategies::StrategyChoice> SolveWhole(double price, KeptGathered gathered,
                                                        strategies::SolveOptions options);

  std::unique_ptr<ShardingChoices> choices_;
  std::unique_ptr<ShardingMemory> memory_;
  strategies::StrategyGraph seconds_;
  std::vector<strategies::RepeatedBlocks> repeats_;                // in `seconds_`
  std::optional<Shorter> shorter_;                                 // where that can be
  std::array<std::optional<strategies::StrategyGraph>, 2> bytes_;  // by KeptGathered
};

/// A step that is to be sharded over one axis, with all that no question changes. Of options it
/// reads what questions of one plan have in common, but where it says so. So many parameters: those
/// of AutoShard.
class AxisFrame {
 public:
  /// `base`: a function that does nothing on `axis` yet, and the mesh with that axis at its size;
  /// `batched` as in AutoShard. `prices` live longer.
  AxisFrame(std::pair<ir::Function, ir::Mesh> base, ir::AxisIndex axis,
            const ShardingPrices& prices, std::vector<bool> batched,
            const AutoShardOptions& options);
  AxisFrame(const AxisFrame&) = delete;
  AxisFrame& operator=(const AxisFrame&) = delete;

  const AxisProblem& problem() const { return problem_; }
  const ShardingNodes& nodes() const { return nodes_; }
  LayoutWays& ways() { return ways_; }
  bool attends_as_wanted() const { return strategies_.attends_as_wanted(); }

  /// The ways to use the axis for such a pattern, or for none: of them the cheapest counts, of
  /// equal ones the last. Errors of pins that cannot be kept.
  absl::StatusOr<std::vector<PricedChoices>*> WaysToUse(const AutoShardOptions& options);

 private:
  // The same problem with other pins.
  struct Variant {
    PinnedLayouts pins;
    bool opens_whole = false;  // as in ChoiceRules
  };
  // What the axis is to be used for.
  struct Wanted {
    std::vector<Variant> variants;
    std::optional<TensorSplits> splits;
    IdTable<ir::ValueId, char> never_whole;
    bool weights_stay = false;
    bool tokens_stay = false;
  };
  // What of options decides about that, and how bytes count.
  struct Question {
    std::optional<SequenceParallel> pattern;
    bool limited = false;
    KeptFactors factors = {};
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Answered {
    Question question;
    std::vector<PricedChoices> ways;
  };

  absl::StatusOr<Wanted> WantedOf(const AutoShardOptions& options) const;
  absl::StatusOr<PricedChoices> Price(Variant variant, const Wanted& wanted,
                                      const AutoShardOptions& options);

  const ir::Function base_;
  const ir::Mesh mesh_;
  const LinkPrices prices_;
  const std::vector<bool> batched_;
  const AxisProblem problem_;
  OpStrategies strategies_;
  LayoutWays ways_;
  const IdTable<ir::OpId, StepPhase> phase_;
  const ShardingNodes nodes_;
  std::deque<Answered> answered_;
};

/// Frames of one step, for questions that follow each other: the last ones only, as each takes as
/// much memory as some copies of the step.
class AxisFrames {
 public:
  struct Key {
    bool loss_in_parts = false;
    ir::AxisIndex axis = 0;
    double link_price = 1;
    ContextAttention attention = ContextAttention::kAuto;
    UnevenShards uneven = UnevenShards::kWhole;
    friend bool operator==(const Key&, const Key&) = default;
  };

  /// Null: there is none.
  AxisFrame* Find(const Key& key) const;
  AxisFrame& Add(const Key& key, std::unique_ptr<AxisFrame> frame);

 private:
  std::deque<std::pair<Key, std::unique_ptr<AxisFrame>>> frames_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_AXIS_FRAME_H_
