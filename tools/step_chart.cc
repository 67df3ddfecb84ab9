#include "tools/step_chart.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/units.h"
#include "tools/terminal/text_chart.h"

namespace orrery::tools {
namespace step_chart_cc {
namespace {

// A part of the step, and what kind of it.
struct Part {
  std::string name;
  double seconds = 0;
  Colour colour = Colour::kGreen;
};

std::vector<Part> PartsOf(const simulator::Program& program, const simulator::Report& report,
                          const simulator::ReportDetails& details) {
  std::vector<Part> parts;
  for (size_t k = 0; k < details.kernels.size(); ++k) {
    parts.push_back({std::string(ToString(static_cast<simulator::KernelKind>(k))),
                     details.kernels[k], Colour::kGreen});
  }
  for (const simulator::CommunicationReport& row : report.communication) {
    parts.push_back({absl::StrCat(row.kind, row.level.empty() ? "" : ", ", row.level),
                     row.exposed_s, Colour::kYellow});
  }
  const simulator::MeanBubble bubble = MeanOf(program, details.bubbles);
  const std::pair<absl::string_view, double> causes[] = {{"warm-up", bubble.warm_up_s},
                                                         {"steady", bubble.steady_s},
                                                         {"cool-down", bubble.cool_down_s},
                                                         {"imbalance", bubble.imbalance_s}};
  for (const auto& [cause, seconds] : causes) {
    parts.push_back({absl::StrCat("bubble, ", cause), seconds, Colour::kBlue});
  }
  return parts;
}

}  // namespace
}  // namespace step_chart_cc

std::string StepChart(const simulator::Program& program, const simulator::Report& report,
                      const simulator::ReportDetails& details, const Terminal& terminal) {
  constexpr size_t kMost = 10;
  const double step_s = report.step_time.seconds();
  std::vector<step_chart_cc::Part> parts = step_chart_cc::PartsOf(program, report, details);
  // What would be no cell of a bar.
  std::erase_if(parts, [&](const auto& part) { return !(part.seconds > 1e-3 * step_s); });
  std::ranges::stable_sort(parts, std::greater(), &step_chart_cc::Part::seconds);
  if (parts.size() > kMost) parts.resize(kMost);
  BarChart chart = {.title = "where the time of a step goes:", .keys = {}, .bars = {}};
  for (const step_chart_cc::Part& part : parts) {
    chart.bars.push_back(
        {.name = part.name,
         .text = absl::StrFormat("%s, %.1f %%", ToString(Duration::FromSeconds(part.seconds)),
                                 100 * part.seconds / step_s),
         .parts = {part.seconds},
         .colour = part.colour});
  }
  return DrawBars(chart, terminal);
}

}  // namespace orrery::tools
