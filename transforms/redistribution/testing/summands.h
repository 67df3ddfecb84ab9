#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_SUMMANDS_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_SUMMANDS_H_

#include <cstdint>
#include <span>

#include "ir/mesh.h"
#include "ir/type.h"

// Numbers that say whether a redistribution did its sums right. They are the integers modulo the
// prime 2^61 - 1: sums, averages and products are exact in any order, and what is wrong comes out
// right once in 2^61 times.

namespace orrery::transforms::redistribution {

/// From 0 up to but not including 2^61 - 1.
using Number = uint64_t;

/// The value of element number `element` of every tensor that is redistributed here.
Number TruthOf(int64_t element);

/// How the values of the ranks along some axes become one: one reduction, or sums and averages.
struct Folding {
  ir::Reduction reduction = ir::Reduction::kSum;
  int64_t parts = 1;    // ranks whose values make one
  int64_t divisor = 1;  // of a sum: the ranks along the axes that are averaged over
};

/// The folding over `axes`, which are partial in `sharding`.
Folding FoldingOver(const ir::AxisList& axes, const ir::Sharding& sharding, const ir::Mesh& mesh);

/// What part number `part` starts with, so that all parts fold to the truth.
Number SummandOf(int64_t element, int64_t part, const Folding& folding);

/// One value of the values of all parts.
Number Fold(std::span<const Number> values, const Folding& folding);

/// What a rank other than the first holds when a replica of `value` becomes partial.
Number MadePartial(Number value, ir::Reduction reduction);

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TESTING_SUMMANDS_H_
