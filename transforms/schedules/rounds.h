#ifndef ORRERY_TRANSFORMS_SCHEDULES_ROUNDS_H_
#define ORRERY_TRANSFORMS_SCHEDULES_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "transforms/schedules/schedule.h"

// Interleaved schedules send microbatches through a rank's chunks in rounds: all of a round go
// through one chunk, then all of them through the next.

namespace orrery::transforms {

/// One step of a rank, of whichever kind.
struct ChunkStep {
  int32_t chunk = 0;
  int32_t microbatch = 0;
};

/// The forwards of a rank in rounds of at least as many microbatches as there are ranks, as equal
/// as can be, larger ones first. Torch and Megatron want them equal.
std::vector<ChunkStep> ForwardsInRounds(const PipelineShape& shape);

/// The backwards likewise: the last chunk first.
std::vector<ChunkStep> BackwardsInRounds(const PipelineShape& shape);

/// Forwards that rank `rank` runs before its first backward: `steps_a_rank` more for each rank
/// after it than the last one, which fills all its chunks but one with the first round.
int32_t WarmUpInRounds(const PipelineShape& shape, int32_t rank, int32_t steps_a_rank);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_ROUNDS_H_
