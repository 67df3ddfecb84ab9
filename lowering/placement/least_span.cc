#include "lowering/placement/least_span.h"

#include <algorithm>
#include <array>
#include <vector>

#include "simulator/program/time_alone.h"

namespace orrery::lowering {
namespace least_span_cc {
namespace {

constexpr Duration kBefore(-1);  // of what may have ended before the first kernel starts

Duration Times(Duration span, int64_t times) {
  const bool fits = times == 0 || span.picoseconds() <= simulator::kEndOfTime.picoseconds() / times;
  return fits ? span * times : simulator::kEndOfTime;
}

}  // namespace
}  // namespace least_span_cc

Duration TimeAlone(const TaskTime& time, const simulator::Program& program) {
  return time.flow.valid() ? simulator::TimeAlone(program.flow(time.flow), program) : time.duration;
}

Duration TimeAlone(const PricedTemplate& priced, size_t t, const simulator::Program& program) {
  return TimeAlone({.duration = priced.task_template.tasks[t].duration, .flow = priced.flows[t]},
                   program);
}

Duration LeastSpan(const PricedTemplate& priced, const simulator::Program& program) {
  using least_span_cc::kBefore;
  const std::vector<TemplateTask>& tasks = priced.task_template.tasks;
  std::vector<Duration> finish(tasks.size(), kBefore);
  std::array<Duration, simulator::kStreamKindCount> last;
  last.fill(kBefore);
  Duration& busy = last[static_cast<size_t>(simulator::StreamKind::kCompute)];
  for (size_t t = 0; t < tasks.size(); ++t) {
    Duration& stream = last[static_cast<size_t>(tasks[t].stream)];
    const bool is_first = &stream == &busy && busy == kBefore;
    Duration start = is_first ? Duration() : stream;
    for (const TemplateDependency& on : priced.task_template.DependenciesOf(tasks[t])) {
      if (!on.external) start = std::max(start, finish[static_cast<size_t>(on.index)]);
    }
    if (start == kBefore) continue;
    stream = finish[t] = SaturatedSum(start, TimeAlone(priced, t, program));
  }
  return std::max(busy, Duration());
}

Duration LeastSpan(const PhaseTemplates& phase, int64_t microbatches,
                   const simulator::Program& program) {
  const Duration first = LeastSpan(phase.first, program);
  if (phase.later.task_template.tasks.empty()) return least_span_cc::Times(first, microbatches);
  Duration later = LeastSpan(phase.later, program);
  if (!phase.last.task_template.tasks.empty()) {
    later = std::min(later, LeastSpan(phase.last, program));
  }
  return SaturatedSum(first, least_span_cc::Times(later, microbatches - 1));
}

}  // namespace orrery::lowering
