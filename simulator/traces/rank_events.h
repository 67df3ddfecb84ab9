#ifndef ORRERY_SIMULATOR_TRACES_RANK_EVENTS_H_
#define ORRERY_SIMULATOR_TRACES_RANK_EVENTS_H_

#include <string>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/rank_tasks.h"
#include "simulator/traces/event_text.h"
#include "simulator/traces/kernel_text.h"
#include "simulator/traces/shown_ranks.h"
#include "simulator/traces/trace_options.h"
#include "simulator/traces/trace_slices.h"

namespace orrery::simulator {

/// All that the writers of a trace know. So many fields: a run, what of it is shown, and tables
/// that several of them read.
struct TraceParts {
  const Program& program;
  const Trace& trace;
  const TraceOptions& options;
  const ShownRanks& shown;
  const RankTasks& tasks;
  const ShownMicrobatches& microbatches;
  const std::vector<TaskId>& before;  // LatestBefore
};

/// Writes the events of one rank after another: its name and threads, steps, slices, bubbles,
/// microbatches in flight, and arrows from phase to phase.
class RankEvents {
 public:
  RankEvents(const TraceParts& parts, EventText& out);

  void Write(const ShownRank& rank);

 private:
  // What the slices of one label share, made once a label and not once a slice.
  struct LabelText {
    std::string head;  // of all that run on compute streams, and of communication
    std::string args;
  };

  void MakeLabels();
  void WriteThreads(const ShownRank& rank);
  void WriteSteps(const ShownRank& rank, const std::vector<Time>& updates);
  void WriteSlice(const ShownRank& rank, const TraceSlice& slice);
  std::string HeadOf(const TraceSlice& slice, StreamKind kind) const;
  void WriteBubbles(const ShownRank& rank);
  std::string ReasonOf(TaskId ended_by) const;
  void WriteMicrobatches(const ShownRank& rank);
  // From where a slice of one task begins to where one of another does, on the compute stream.
  void Arrow(absl::string_view name, const ShownRank& rank, TaskId from, TaskId to);

  const TraceParts& parts_;
  EventText& out_;
  NcclArguments nccl_;
  IdTable<LabelId, LabelText> labels_;
  std::string device_;  // of the rank that is written: `,"device":3`
};

/// Viewers count nanoseconds, and lose an arrow whose slice is shorter than one.
inline constexpr Duration kShortestArrow(1000);

/// "Linear h.3 of rank 4": a task, and the first rank that runs it.
std::string TaskText(const Program& program, TaskId task);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_RANK_EVENTS_H_
