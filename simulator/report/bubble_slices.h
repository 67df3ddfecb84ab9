#ifndef ORRERY_SIMULATOR_REPORT_BUBBLE_SLICES_H_
#define ORRERY_SIMULATOR_REPORT_BUBBLE_SLICES_H_

#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/rank_tasks.h"

namespace orrery::simulator {

/// A time in which a rank neither computes nor communicates: a part of its bubble
/// (simulator/report/bubble.h), which all of them add up to.
struct BubbleSlice {
  Time start;
  Time finish;
  /// "warm-up": before the rank's first backward begins; "cool-down": after that and its last
  /// forward; else "steady".
  absl::string_view part;
  TaskId ended_by = {};  // what the rank runs next; invalid: nothing
};

/// Those of the rank that runs `tasks` in `trace`, in time order.
std::vector<BubbleSlice> BubblesOf(const Program& program, const Trace& trace,
                                   std::span<const RankTask> tasks);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_BUBBLE_SLICES_H_
