#ifndef ORRERY_TESTS_LOWERING_MEMORY_ORACLE_H_
#define ORRERY_TESTS_LOWERING_MEMORY_ORACLE_H_

#include <cstdint>
#include <vector>

#include "transforms/schedules/schedule.h"
#include "transforms/stages/pipeline.h"

// Memory by brute force: the whole step is unrolled op by op, rank by rank, in the order of a
// schedule, and each tensor is there from the op that makes it to the last op that ever reads it.
// Knows nothing of blocks, use counts or programs.

namespace orrery::lowering {

/// The most bytes that a rank of each position of the pipeline holds at a time beside its
/// residents, where all runs one after the other. `update_every`: microbatches between two updates
/// of an asynchronous schedule; 0: one update, at the end.
std::vector<int64_t> BruteForcePeaks(const transforms::PipelinedStep& step,
                                     const transforms::RankOrders& orders, int64_t update_every);

}  // namespace orrery::lowering

#endif  // ORRERY_TESTS_LOWERING_MEMORY_ORACLE_H_
