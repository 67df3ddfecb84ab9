#ifndef ORRERY_TRANSFORMS_SCHEDULES_DUAL_PIPE_STEPS_H_
#define ORRERY_TRANSFORMS_SCHEDULES_DUAL_PIPE_STEPS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "transforms/schedules/schedule.h"

// DualPipe feeds a pipeline from both ends; DualPipeV is one half of it, folded. In either a rank
// runs two streams of microbatches, one that comes early and one that comes late, and runs the
// forward of one at once with the backward of the other, so that each hides the other's sends.

namespace orrery::transforms {

/// A position in one half of the ranks: `rank` of `ranks`, 0 at the end where microbatches enter.
struct HalfPipe {
  int32_t rank = 0;
  int32_t ranks = 1;
  int32_t microbatches = 2;  // of each stream; >= 2 ranks
};

/// The order of one rank. Microbatches are counted from 0 in each stream, and the stage of a step
/// is `stages[0]` in the stream that comes early to this rank, `stages[1]` in the other.
/// (DeepSeek-V3 technical report, figure 5; the eight steps of deepseek-ai/DualPipe.)
std::vector<ScheduleStep> DualPipeSteps(const HalfPipe& position,
                                        const std::array<int32_t, 2>& stages);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SCHEDULES_DUAL_PIPE_STEPS_H_
