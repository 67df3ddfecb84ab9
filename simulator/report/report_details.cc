#include "simulator/report/report_details.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "simulator/program/time_alone.h"

namespace orrery::simulator {

namespace report_details_cc {
namespace {

// By label first, exactly, so that folding changes no digit.
void SumKernels(const Program& program, const Trace& trace, ReportDetails& details) {
  using Wide = __int128;
  std::vector<Wide> of_label(static_cast<size_t>(program.label_count()), 0);
  int64_t ranks = 0;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    ranks += std::ssize(program.rank(RankClassId(i)).members);
  }
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const TaskId task(t);
    const Stream& stream = program.stream(program.streams_of(task).front());
    if (stream.kind != StreamKind::kCompute) continue;
    const auto row = static_cast<size_t>(t);
    const Wide members = std::ssize(program.rank(stream.rank).members);
    of_label[static_cast<size_t>(program.label_of(task).index())] +=
        members * (trace.finish[row] - trace.start[row]).picoseconds();
  }
  for (const LegDelay& delay : trace.delays) {  // no kernel runs meanwhile
    const RankClassId rank = program.stream(program.streams_of(delay.task).front()).rank;
    of_label[static_cast<size_t>(program.label_of(delay.task).index())] -=
        Wide{std::ssize(program.rank(rank).members)} * LegDelayOfTask(delay, program).picoseconds();
  }
  KernelSeconds seconds = {};
  SourceShares sources = {};
  for (int32_t l = 0; l < program.label_count(); ++l) {
    const TaskLabel label = program.label(LabelId(l));
    if (label.kind != TaskKind::kCompute) continue;
    const double of_a_rank =
        1e-12 * static_cast<double>(of_label[static_cast<size_t>(l)]) / static_cast<double>(ranks);
    for (size_t k = 0; k < seconds.size(); ++k) seconds[k] += of_a_rank * label.kernels[k];
    for (size_t s = 0; s < sources.size(); ++s) sources[s] += of_a_rank * label.sources[s];
  }
  // Whole nanoseconds: runs of kernels are the kernels, but for rounding.
  for (double& each : seconds) each = 1e-9 * std::round(1e9 * each);
  details.kernels = seconds;
  const double all = std::accumulate(sources.begin(), sources.end(), 0.0);
  for (double& each : sources) each = all > 0 ? 1e-9 * std::round(1e9 * each / all) : 0;
  details.sources = sources;
}

}  // namespace
}  // namespace report_details_cc

ReportDetails DetailsOf(const Program& program, const Trace& trace, const Report& report,
                        bool steady, size_t points) {
  ReportDetails details;
  details.bubbles =
      SplitBubbles(report, steady ? IdTable<RankClassId, IdleEnds>() : IdleEndsOf(program, trace));
  const IdTable<RankClassId, std::vector<MemoryUse>> timelines = MemoryTimeline(program, trace);
  for (const std::vector<MemoryUse>& timeline : timelines.rows()) {
    details.memory.push_back(ThinTimeline(timeline, points));
  }
  if (!steady) report_details_cc::SumKernels(program, trace, details);
  return details;
}

std::string CompositionText(const MemoryUse& use) {
  std::vector<MemoryKind> kinds;
  for (int i = 0; i < kMemoryKindCount; ++i) {
    const auto kind = static_cast<MemoryKind>(i);
    if (use.of(kind) > Bytes(0)) kinds.push_back(kind);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](MemoryKind a, MemoryKind b) { return use.of(a) > use.of(b); });
  std::string text;
  for (const MemoryKind kind : kinds) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", ToString(kind), " ", ToString(use.of(kind)));
  }
  return text;
}

std::string PeakTaskText(const Program& program, const MemoryUse& peak) {
  if (!peak.task.valid()) return "resident";
  const TaskLabel label = program.label(program.label_of(peak.task));
  const int32_t microbatch = program.microbatch_of(peak.task);
  return absl::StrCat(label.name, ", ", ToString(label.phase),
                      microbatch >= 0 ? absl::StrCat(" of microbatch ", microbatch) : "",
                      " on stage ", label.stage);
}

}  // namespace orrery::simulator
