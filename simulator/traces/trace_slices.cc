#include "simulator/traces/trace_slices.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::simulator {
namespace trace_slices_cc {
namespace {

TraceSlice SliceOf(const Program& program, const Trace& trace, const RankTask& row) {
  const TaskLabel label = program.label(program.label_of(row.task));
  const Time start = trace.start_of(row.task), finish = trace.finish_of(row.task);
  return {.start = start,
          .finish = finish,
          .first = row.task,
          .stream = row.stream,
          .tasks = 1,
          .busy = finish - start,
          .flops = label.flops,
          .bytes = label.bytes};
}

// Whether `task` goes on with the run of `first`.
bool GoesOn(const Program& program, TaskId first, const RankTask& row) {
  if (program.microbatch_of(first) != program.microbatch_of(row.task)) return false;
  const TaskLabel a = program.label(program.label_of(first));
  const TaskLabel b = program.label(program.label_of(row.task));
  if (a.phase != b.phase || a.stage != b.stage) return false;
  if (program.stream(row.stream).kind == StreamKind::kCompute) return true;
  return a.kind == b.kind && a.communication == b.communication;
}

void Add(const TraceSlice& more, TraceSlice& run) {
  run.finish = std::max(run.finish, more.finish);
  run.tasks += more.tasks;
  run.busy += more.busy;
  run.flops += more.flops;
  run.bytes += more.bytes;
}

}  // namespace
}  // namespace trace_slices_cc

ShownMicrobatches::ShownMicrobatches(std::vector<int32_t> microbatches)
    : sorted_(std::move(microbatches)) {
  std::ranges::sort(sorted_);
}

bool ShownMicrobatches::shows(int32_t microbatch) const {
  return microbatch < 0 || sorted_.empty() || std::ranges::binary_search(sorted_, microbatch);
}

void VisitSlices(const Program& program, const Trace& trace, std::span<const RankTask> tasks,
                 TraceLevel level, const ShownMicrobatches& microbatches,
                 absl::FunctionRef<void(const TraceSlice& slice)> visit) {
  std::map<StreamId, TraceSlice> runs;  // that may go on
  for (const RankTask& row : tasks) {
    if (!microbatches.shows(program.microbatch_of(row.task))) continue;
    const TraceSlice slice = trace_slices_cc::SliceOf(program, trace, row);
    if (level != TraceLevel::kStage) {
      visit(slice);
      continue;
    }
    const auto [run, is_first] = runs.try_emplace(row.stream, slice);
    if (is_first) continue;
    if (trace_slices_cc::GoesOn(program, run->second.first, row)) {
      trace_slices_cc::Add(slice, run->second);
    } else {
      visit(run->second);
      run->second = slice;
    }
  }
  for (const auto& [stream, run] : runs) visit(run);
}

std::string StepName(const Program& program, TaskId first) {
  const TaskLabel label = program.label(program.label_of(first));
  const std::string stage = absl::StrCat(" s", label.stage);
  const int32_t microbatch = program.microbatch_of(first);
  const std::string of = microbatch < 0 ? stage : absl::StrCat(" mb", microbatch, stage);
  switch (label.phase) {
    case Phase::kForward:
      return absl::StrCat("F", of);
    case Phase::kBackward:
      return absl::StrCat("B", of);
    case Phase::kUpdate:
      break;
  }
  return absl::StrCat("update", of);
}

}  // namespace orrery::simulator
