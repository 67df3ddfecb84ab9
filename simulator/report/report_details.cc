#include "simulator/report/report_details.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace orrery::simulator {

ReportDetails DetailsOf(const Program& program, const Trace& trace, const Report& report,
                        bool steady, size_t points) {
  ReportDetails details;
  details.bubbles =
      SplitBubbles(report, steady ? IdTable<RankClassId, IdleEnds>() : IdleEndsOf(program, trace));
  const IdTable<RankClassId, std::vector<MemoryUse>> timelines = MemoryTimeline(program, trace);
  for (const std::vector<MemoryUse>& timeline : timelines.rows()) {
    details.memory.push_back(ThinTimeline(timeline, points));
  }
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
