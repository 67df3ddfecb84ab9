#ifndef ORRERY_SIMULATOR_TRACES_TRACE_SLICES_H_
#define ORRERY_SIMULATOR_TRACES_TRACE_SLICES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "simulator/report/rank_tasks.h"
#include "simulator/traces/trace_options.h"

namespace orrery::simulator {

/// What stands on a thread of a trace: a task, or a run of tasks.
struct TraceSlice {
  Time start;
  Time finish;
  TaskId first;  // whose label it has
  StreamId stream;
  int32_t tasks = 0;
  Duration busy;  // sum of the durations of the tasks: the slice less gaps
  Flops flops;    // of all of them
  Bytes bytes;
};

/// Whether tasks of a microbatch are shown: of those that run once a step, too.
class ShownMicrobatches {
 public:
  /// Empty: all.
  explicit ShownMicrobatches(std::vector<int32_t> microbatches);

  bool shows(int32_t microbatch) const;

 private:
  std::vector<int32_t> sorted_;
};

/// Calls `visit` with the slices of a rank that runs `tasks`, those of each stream in time order:
/// each task one, or at TraceLevel::kStage runs of those of one phase, stage and microbatch. On
/// streams that only communicate these are of one kind of communication.
void VisitSlices(const Program& program, const Trace& trace, std::span<const RankTask> tasks,
                 TraceLevel level, const ShownMicrobatches& microbatches,
                 absl::FunctionRef<void(const TraceSlice& slice)> visit);

/// "F mb3 s1" of a run of a forward, "B mb3 s1" of a backward, "update s1".
std::string StepName(const Program& program, TaskId first);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_TRACE_SLICES_H_
