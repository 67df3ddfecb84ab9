#include "tools/step_chart.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "simulator/report/step_parts.h"
#include "support/units.h"
#include "tools/terminal/text_chart.h"

namespace orrery::tools {
namespace step_chart_cc {
namespace {

using simulator::StepPart;
using simulator::StepPartKind;

std::string NameOf(const StepPart& part) {
  const std::string bubble = part.kind == StepPartKind::kBubble ? "bubble, " : "";
  return absl::StrCat(bubble, part.name, part.level.empty() ? "" : ", ", part.level);
}

Colour ColourOf(StepPartKind kind) {
  switch (kind) {
    case StepPartKind::kKernels:
      return Colour::kGreen;
    case StepPartKind::kExposed:
      return Colour::kYellow;
    case StepPartKind::kBubble:
      break;
  }
  return Colour::kBlue;
}

}  // namespace
}  // namespace step_chart_cc

std::string StepChart(const simulator::Program& program, const simulator::Report& report,
                      const simulator::ReportDetails& details, const Terminal& terminal) {
  constexpr size_t kMost = 10;
  const double step_s = report.step_time.seconds();
  std::vector<simulator::StepPart> parts = StepPartsOf(program, report, details);
  // What would be no cell of a bar.
  std::erase_if(parts, [&](const auto& part) { return !(part.seconds > 1e-3 * step_s); });
  std::ranges::stable_sort(parts, std::greater(), &simulator::StepPart::seconds);
  if (parts.size() > kMost) parts.resize(kMost);
  BarChart chart = {.title = "where the time of a step goes:", .keys = {}, .bars = {}};
  for (const simulator::StepPart& part : parts) {
    chart.bars.push_back(
        {.name = step_chart_cc::NameOf(part),
         .text = absl::StrFormat("%s, %.1f %%", ToString(Duration::FromSeconds(part.seconds)),
                                 100 * part.seconds / step_s),
         .parts = {part.seconds},
         .colour = step_chart_cc::ColourOf(part.kind)});
  }
  return DrawBars(chart, terminal);
}

}  // namespace orrery::tools
