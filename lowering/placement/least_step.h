#ifndef ORRERY_LOWERING_PLACEMENT_LEAST_STEP_H_
#define ORRERY_LOWERING_PLACEMENT_LEAST_STEP_H_

#include <vector>

#include "lowering/network/geometry.h"
#include "lowering/placement/stage.h"
#include "simulator/program/program.h"
#include "support/units.h"
#include "transforms/schedules/schedule.h"

// What is known of a step before it is played.

namespace orrery::lowering {

/// A lowered step, folded, whose ranks run one phase at a time. All of it outlives the call.
struct FoldedStep {
  const Geometry& geometry;
  const Repetitions& repetitions;  // of one batch that is synchronous
  const std::vector<Stage>& stages;
  const simulator::Program& program;  // what ranks hold all the time, flows and labels
};

/// How long a step takes.
struct TimesOfStep {
  /// At least, in whatever order: what each rank has on its compute stream, one phase after another
  /// (LeastSpan), of the rank that has most.
  Duration least;
  /// About: that, and what one microbatch takes on all other ranks, which is the bubble of a
  /// pipeline whose stages are alike.
  Duration likely;
};
TimesOfStep TimesOf(const FoldedStep& step);

/// What a rank holds at the moment that has most.
struct PeakBound {
  Bytes resident;  // all the time
  Bytes least;     // for sure
  Bytes likely;    // about
};

/// That of each rank, if ranks run their steps in these orders. For sure is what it has taken for
/// its kernels until one of them runs, and what these have waited for, before a stage of the rank
/// makes its last gradients; what was to be given back beside kernels may have been. Likely is that
/// with all of the step but its update.
IdTable<simulator::RankClassId, PeakBound> BoundPeaks(const FoldedStep& step,
                                                      const transforms::RankOrders& orders);

/// Of what ranks do together the part of the time that they communicate, as Report has it, with all
/// links to themselves: 0 to 1.
double CommunicationShare(const FoldedStep& step);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_LEAST_STEP_H_
