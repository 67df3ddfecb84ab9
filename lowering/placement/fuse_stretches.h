#ifndef ORRERY_LOWERING_PLACEMENT_FUSE_STRETCHES_H_
#define ORRERY_LOWERING_PLACEMENT_FUSE_STRETCHES_H_

#include <vector>

#include "lowering/placement/stage.h"
#include "simulator/program/program.h"
#include "transforms/schedules/schedule.h"

namespace orrery::lowering {

/// Makes one task of each stretch of folded, priced stages: kernels and the collectives of its own
/// communicators (hp, cp, ep) between them, all of whose times are fixed once the first kernel
/// starts, if nobody shares their links. That is so where
///   - nothing of it but the first kernel waits for anything outside that is not done by then,
///   - its collectives find their streams free: what ran there before, the first kernel has waited
///     for,
///   - nothing outside but what follows the last kernel waits for any of it, and what comes next on
///     those streams is among that.
/// No time changes by a picosecond (the longest path within a stretch is a constant: in max-plus
/// algebra a product of matrices), and a pipeline of split layers has a hundredth of the tasks.
/// What is inside goes to the label (simulator::StretchPart): reports add up to the same.
///
/// Collectives that share links with others, whose times the network tells, may be in a stretch,
/// too, if one of them goes at a time, and kernels alone beside it: it is timed by a chain of their
/// flows (simulator::Flow::legs), and what they take longer than alone stands in the trace.
///
/// Within a stretch what is exposed belongs to its collectives, also where a send that began
/// earlier goes on; and it takes the most memory that it needs from its start to its end, as runs
/// of kernels do (FuseRuns, which comes before).
///
/// Not for ranks that communication slows down. It does nothing where two templates run at once.
void FuseStretches(const transforms::PipelineSchedule& schedule, std::vector<Stage>& stages,
                   simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_FUSE_STRETCHES_H_
