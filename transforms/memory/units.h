#ifndef ORRERY_TRANSFORMS_MEMORY_UNITS_H_
#define ORRERY_TRANSFORMS_MEMORY_UNITS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ir/function.h"
#include "support/units.h"

// Parameters are gathered, and their gradients scattered, by units, as PyTorch's FSDP does (Zhao et
// al., "PyTorch FSDP", VLDB 2023): latency is paid once a unit, and memory for one at a time.

namespace orrery::transforms {

/// A parameter, as far as units go.
struct UnitMember {
  int64_t kind = 0;  // equal for parameters that are alike
  Bytes size;
};

/// The unit of each of `members`, which stand in the order of their first use. Units are runs of
/// them, numbered from 0. What repeats is a unit: the layers of a transformer, each in the same
/// kinds. Where nothing does, a unit is a sixteenth of all bytes, or one parameter.
std::vector<int32_t> FindUnits(std::span<const UnitMember> members);

/// Orders the gathers, scatters and accumulations of a forward or backward function by units; ops
/// with the attribute "unit" that are an AllGather or a ReduceScatter are those.
///
///  - The gathers of a unit stand one after another, before the first op of the unit that is
///    `prefetch` units ahead of it; those of the first ones at the beginning.
///  - The scatters of a unit follow the last op that makes what they scatter.
///  - What adds up scattered gradients follows the scatters of the next unit, so that no kernel
///    waits for a scatter that has just begun; that of the last one stands at the end.
///
///     gather 0, gather 1 | unit 0 | gather 2 | unit 1 | gather 3 | unit 2 | unit 3   prefetch = 1
void OrderUnits(int64_t prefetch, ir::Function& function);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_UNITS_H_
