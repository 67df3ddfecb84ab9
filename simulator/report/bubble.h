#ifndef ORRERY_SIMULATOR_REPORT_BUBBLE_H_
#define ORRERY_SIMULATOR_REPORT_BUBBLE_H_

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/report.h"
#include "support/id_table.h"
#include "support/units.h"

// Where the bubble of a rank comes from. The bubble is the time in which the rank neither computes
// nor communicates (RankReport::idle); its parts add up to it to the picosecond.
//
// A pipeline fills until a rank has something to run backward, and drains once it has no forward
// left; only between these it can be in a steady state. Of 1F1B the steady part is 0 where stages
// are equal: all of its bubble is filling and draining. What is left of a steady part is often
// work that is dealt unevenly, which no order of steps could mend: that is told apart.

namespace orrery::simulator {

/// The parts of a rank's bubble.
struct Bubble {
  Duration warm_up;    // before the rank's first backward begins
  Duration steady;     // after that, and before its last forward has ended
  Duration cool_down;  // after both
  /// What the rank has less to compute than the rank that computes longest; at most its bubble.
  /// Taken out of the steady part, what exceeds that out of cool-down, and the rest out of warm-up.
  Duration imbalance;

  Duration total() const { return warm_up + steady + cool_down + imbalance; }
  friend bool operator==(const Bubble&, const Bubble&) = default;
};

/// How much of a rank's bubble lies before its first backward, and after its last forward and the
/// beginning of its first backward. A rank without backward warms up until it computes at all, and
/// cools down once it does no more.
struct IdleEnds {
  Duration before;
  Duration after;
};

/// Of each rank class in `trace`, a run of `program`.
IdTable<RankClassId, IdleEnds> IdleEndsOf(const Program& program, const Trace& trace);

/// The bubbles of the ranks of `report`. Of an asynchronous schedule, whose report is of the steady
/// state, `ends` is empty: there is no other part.
IdTable<RankClassId, Bubble> SplitBubbles(const Report& report,
                                          const IdTable<RankClassId, IdleEnds>& ends);

/// The same, a mean over all ranks, in seconds.
struct MeanBubble {
  double warm_up_s = 0;
  double steady_s = 0;
  double cool_down_s = 0;
  double imbalance_s = 0;
};
/// The mean of the bubbles of all ranks of a program: a class counts as often as it has members.
/// Zeros where there are no ranks.
MeanBubble MeanOf(const Program& program, const IdTable<RankClassId, Bubble>& bubbles);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_BUBBLE_H_
