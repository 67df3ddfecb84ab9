#include "simulator/traces/microbatch_spans.h"

#include <algorithm>
#include <map>
#include <utility>

namespace orrery::simulator {
namespace microbatch_spans_cc {
namespace {

struct Kernel {
  TaskId task;
  Phase phase;
  Time start;
  Time finish;
};

void Add(const Kernel& kernel, const Trace& trace, MicrobatchSpan& span) {
  const bool is_first = !span.last_forward.valid() && !span.first_backward.valid();
  span.start = is_first ? kernel.start : std::min(span.start, kernel.start);
  span.finish = std::max(span.finish, kernel.finish);
  if (kernel.phase == Phase::kForward) {
    if (!span.last_forward.valid() || kernel.start >= trace.start_of(span.last_forward)) {
      span.last_forward = kernel.task;
    }
  } else if (!span.first_backward.valid() || kernel.start < trace.start_of(span.first_backward)) {
    span.first_backward = kernel.task;
  }
}

}  // namespace
}  // namespace microbatch_spans_cc

std::vector<MicrobatchSpan> MicrobatchSpansOf(const Program& program, const Trace& trace,
                                              std::span<const RankTask> tasks, Updates* updates) {
  std::map<std::pair<int32_t, int32_t>, MicrobatchSpan> spans;  // by stage and microbatch
  TaskId last_backward;
  for (const RankTask& row : tasks) {
    const TaskLabel label = program.label(program.label_of(row.task));
    if (label.kind != TaskKind::kCompute ||
        program.stream(row.stream).kind != StreamKind::kCompute) {
      continue;
    }
    if (label.phase == Phase::kBackward) last_backward = row.task;
    if (label.phase == Phase::kUpdate && updates != nullptr) {
      if (!updates->first.valid()) {
        updates->first = row.task;
        updates->last_backward = last_backward;
      }
      updates->finishes.push_back(trace.finish_of(row.task));
    }
    const int32_t microbatch = program.microbatch_of(row.task);
    if (label.phase == Phase::kUpdate || microbatch < 0) continue;
    microbatch_spans_cc::Add(
        {row.task, label.phase, trace.start_of(row.task), trace.finish_of(row.task)}, trace,
        spans[{label.stage, microbatch}]);
  }
  std::vector<MicrobatchSpan> all;
  all.reserve(spans.size());
  for (const auto& [key, span] : spans) all.push_back(span);
  return all;
}

std::vector<InFlight> InFlightOf(std::span<const MicrobatchSpan> spans) {
  std::map<Time, int32_t> changes;
  changes[Time(0)] = 0;
  for (const MicrobatchSpan& span : spans) {
    ++changes[span.start];
    --changes[span.finish];
  }
  std::vector<InFlight> counts;
  int32_t now = 0;
  for (const auto& [time, change] : changes) {
    now += change;
    if (counts.empty() || counts.back().microbatches != now) counts.push_back({time, now});
  }
  return counts;
}

}  // namespace orrery::simulator
