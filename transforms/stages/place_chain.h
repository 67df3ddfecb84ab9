#ifndef ORRERY_TRANSFORMS_STAGES_PLACE_CHAIN_H_
#define ORRERY_TRANSFORMS_STAGES_PLACE_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ir/function.h"
#include "transforms/stages/placement.h"
#include "transforms/stages/stage_units.h"

// Stages of a placement. Groups of ops wait for each other back and forth, as where branches leave
// and meet again; stages must not. So what a set of devices runs is divided where it waits for
// another: op after op, one's level is that of what it reads, and one more where that is on another
// set. A stage is what is of one set and one level. All that a stage reads of others is of lower
// levels, so that stages in the order of their levels are an order in which they can run, and of
// the ops of one set no more are apart than have to be.

namespace orrery::transforms {

/// The chain with its ops in an order in which each stage has a run of them.
struct PlacedChain {
  ForwardChain chain;
  std::vector<size_t> positions;  // at which stages begin, but the first, as StageCuts has them
  std::vector<int32_t> sets;      // of Placement::sets, by stage
};

/// Where `placement` puts the ops of a chain. An op that makes nothing with a name, or whose name
/// no pattern matches, goes with what it reads last, or else with what reads it. What only reshards
/// a value is where the value is made; data, with the first that reads it. So stages are the same
/// however the function is sharded. Requires a placement that is not empty.
PlacedChain PlaceChain(const ir::Function& function, const ForwardChain& chain,
                       const Placement& placement);

/// InvalidArgument for a pattern that matches no op which is left for it, and for an op with a name
/// that no pattern matches.
absl::Status CheckPlacement(const ir::Function& function, const ForwardChain& chain,
                            const Placement& placement);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_PLACE_CHAIN_H_
