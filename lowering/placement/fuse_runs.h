#ifndef ORRERY_LOWERING_PLACEMENT_FUSE_RUNS_H_
#define ORRERY_LOWERING_PLACEMENT_FUSE_RUNS_H_

#include "lowering/placement/stage.h"
#include "simulator/program/program.h"
#include "transforms/schedules/schedule.h"

namespace orrery::lowering {

/// Whether ranks run two templates at once.
bool RunsPairs(const transforms::PipelineSchedule& schedule);

/// Makes one task of kernels of a stage that follow each other at once whatever happens: nothing
/// outside of the compute stream waits for any of them but the last, and none but the first waits
/// for anything but that stream. No time changes by a picosecond, and a pipeline has a tenth of the
/// tasks.
///
/// A run takes the most memory that its kernels need from its start to its end. That is what they
/// need, unless something arrives in the middle of it: then a peak may come out higher, by no more
/// than what arrives. In one stream (`blocking`) nothing does, unless two templates run at once or
/// the host copies. Kernels whose memory grows over the microbatches stay by themselves.
///
/// Labels of runs go to `program`: "MatMul y … Add z", with the flops and bytes of all of it.
///
/// Not for ranks that communication slows down: each kernel then ends at a whole picosecond.
///
/// Without `fuse` tasks stay, and TemplateTask::joins tells which are of one run.
void FuseRuns(Stage& stage, bool fuse, simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_FUSE_RUNS_H_
