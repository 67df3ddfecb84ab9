#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_CUTS_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_CUTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.h"

namespace orrery::transforms {

/// Floating-point operations of one op, from the dims of the whole tensors.
double FlopsOf(const ir::Function& function, ir::OpId op);

/// Of each position in `ops`, and the one behind them: bytes of one rank that are made before it
/// and used at it or after it. `chain[value]` tells which values count.
std::vector<double> CrossingBytes(const ir::Function& function, std::span<const ir::OpId> ops,
                                  const IdTable<ir::ValueId, char>& chain);

/// Cuts a run of ops into `stages` parts: for each part but the first the position in `ops` at
/// which it begins, ascending. The parts do about the same number of flops, and the cuts are where
/// little crosses them: within half a part of the even position, among the positions that no more
/// than a quarter more bytes cross than the narrowest, the nearest. `chain[value]` tells which
/// values count as crossing. Fewer cuts come back when there are not so many positions.
std::vector<size_t> FindCuts(const ir::Function& function, std::span<const ir::OpId> ops,
                             const IdTable<ir::ValueId, char>& chain, int64_t stages);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_CUTS_H_
