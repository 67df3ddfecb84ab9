#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMORY_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMORY_H_

#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "support/id_table.h"
#include "transforms/sharding/facts/kept_bytes.h"
#include "transforms/sharding/sharding_choices.h"
#include "transforms/training/step_phases.h"

// What choices of shardings keep, in bytes of a rank. What backward reads of forward is kept as
// backward wants it: forward changes the layout for its own ops, and what they are given stays. So
// memory is of nodes and, where a value is wanted otherwise than it is given, of pairs.

namespace orrery::transforms {

/// Whether what is gathered of activations is kept whole, or in parts and gathered again.
enum class KeptGathered : uint8_t { kWhole, kInParts };

/// The bytes that the choices of nodes keep for backward and for the update. Too few only where
/// several read a value in layouts that forward makes for nobody else; too many where backward
/// alone wants a layout.
class ShardingMemory {
 public:
  /// `phase` is that of the ops; of `options`, in_flight and held are read. All live longer.
  ShardingMemory(const AxisProblem& problem, const IdTable<ir::OpId, StepPhase>& phase,
                 const AutoShardOptions& options, const ShardingChoices& choices);

  /// Of a node by its choice: what it makes, and what it alone reads for backward.
  double Of(int32_t node, const ShardingChoice& choice, KeptGathered gathered);

  /// Whether the layout in which a use wants its value may take more.
  bool MayCopy(const ShardingUse& use, KeptGathered gathered) const;
  /// How much, by the choices of the node that makes the value and of the one that takes it.
  double OfCopy(const ShardingUse& use, const ShardingChoice& made, const ShardingChoice& taken,
                KeptGathered gathered);

  /// Of all, by the number of the choice of each node: what there is to add up.
  KeptMemory OfAll(const std::vector<int32_t>& assignment) {
    return {.whole = OfAll(assignment, KeptGathered::kWhole),
            .in_parts = OfAll(assignment, KeptGathered::kInParts)};
  }

  /// Whether backward adds the value up over microbatches, for the update.
  bool IsSummed(ir::ValueId value) const { return summed_[value] != 0; }

 private:
  // What a value is made from, as far as it matters: from weights alone, or from data.
  enum class Source : uint8_t { kNone, kWeights, kData };

  KeptBytes OfAll(const std::vector<int32_t>& assignment, KeptGathered gathered);
  void FindReaders(const IdTable<ir::OpId, StepPhase>& phase);
  void FindSources(const IdTable<ir::OpId, StepPhase>& phase);
  void FindSummed(const IdTable<ir::OpId, StepPhase>& phase);
  void FindHeld();
  bool IsView(ir::OpId op) const;
  // Whether an op of forward makes it, and not one whose operand is kept in its place.
  bool IsMade(ir::ValueId value) const;
  bool GoesToOneReader(ir::ValueId value, KeptGathered gathered) const {
    return gathered == KeptGathered::kWhole && readers_[value] == 1 && read_forward_[value] != 0 &&
           IsMade(value);
  }
  bool GathersAgain(ir::ValueId value, KeptGathered gathered) const {
    return gathered == KeptGathered::kInParts && source_[value] == Source::kData;
  }
  // Calls add(KeptAs, bytes) for what a node keeps by its choice, one after the other.
  template <typename Add>
  void ForEach(int32_t node, const ShardingChoice& choice, KeptGathered gathered, const Add& add);
  double OfMade(ir::ValueId value, const ShardingChoice& choice, KeptGathered gathered);
  double BytesOfCopy(const ShardingUse& use, const ShardingChoice& made,
                     const ShardingChoice& taken, KeptGathered gathered);
  double BytesIn(ir::ValueId value, AxisLayout layout);

  const AxisProblem problem_;
  const ShardingChoices& choices_;
  const KeptFactors factors_;
  IdTable<ir::OpId, char> reads_;            // for backward: its ops, and views that it looks at
  IdTable<ir::ValueId, int32_t> readers_;    // uses by those
  IdTable<ir::ValueId, char> read_forward_;  // by ops of forward
  IdTable<ir::ValueId, Source> source_;
  IdTable<ir::ValueId, char> summed_;
  IdTable<ir::ValueId, KeptAs> held_;       // for the update
  std::vector<ir::OpId> op_;                // by node
  std::vector<std::vector<double>> bytes_;  // by type and layout; negative: not known yet
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMORY_H_
