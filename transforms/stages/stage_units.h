#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_UNITS_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_UNITS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "transforms/training/step_phases.h"

// What stages are made of: the forward ops in a row, and the positions at which a row may be cut.

namespace orrery::transforms {

/// The forward ops that are made from data. Everything else of a step follows them.
struct ForwardChain {
  std::vector<ir::OpId> ops;             // in order
  IdTable<ir::ValueId, char> from_data;  // of all values: depends on a data input
  std::vector<size_t> products;          // positions of matrix products with a parameter
  // Of forward's ops: forward reads something that it makes, or returns it. What backward alone
  // reads, such as where a maximum was, no stage behind waits for.
  IdTable<ir::OpId, char> read_forward;
};

/// Whether the op has its operand as its result, on other ranks: a collective of one value, or a
/// slice of it.
bool Reshards(const ir::Function& function, ir::OpId op);

/// The chain of a step whose phases are `phase`.
ForwardChain FindChain(const ir::Function& function, const IdTable<ir::OpId, StepPhase>& phase);

/// A part of the chain that is not cut: up to the next one.
struct StageUnit {
  size_t begin = 0;   // position in the chain
  bool layer = true;  // not: what comes before all layers or after them, a classifier say

  friend bool operator==(const StageUnit&, const StageUnit&) = default;
};

/// From what repeats as a whole to the least that makes sense.
enum class UnitSize : uint8_t { kLayers, kParts, kProducts };

/// The units of a chain: the first begins at position 0, and each has a product unless there is
/// none.
///
/// kProducts: one for each product. kParts: cut only where few values cross: fewer than on both
/// sides; in a chain of one value at a time before each product. Values that cross most positions
/// do not count. What has no product goes with what follows. kLayers: parts whose products repeat,
/// a layer being one period of the longest repetition, and then of the longest in the rest. Where
/// repetitions of three and more make up most of the parts, what lies outside all repetitions is no
/// layer.
std::vector<StageUnit> FindUnits(const ir::Function& function, const ForwardChain& chain,
                                 UnitSize size);

/// Whole layers that begin in each stage, where all stages but the first begin at `cuts`.
std::vector<int64_t> CountLayers(const ir::Function& function, const ForwardChain& chain,
                                 const std::vector<size_t>& cuts);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_UNITS_H_
