#include "tools/searches/search_charts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/search.h"
#include "support/units.h"
#include "tools/terminal/text_chart.h"

namespace orrery::tools {

std::string TimeBars(const search::SearchRows& rows, int64_t top, const Terminal& terminal) {
  constexpr int64_t kMost = 20;
  const std::vector<const search::Result*> ranked = search::Ranked(rows);
  const int64_t shown = std::min({std::ssize(ranked), top, kMost});
  if (shown < 2) return "";
  BarChart chart = {.title = "a step of each, the best first:",
                    .keys = {"compute", "exposed communication", "bubble"},
                    .bars = {}};
  for (int64_t i = 0; i < shown; ++i) {
    const search::Result& result = *ranked[static_cast<size_t>(i)];
    const double step_s = result.step_time.seconds();
    const double bubble_s = result.bubble_fraction * step_s;
    const double exposed_s = result.exposed_communication_s;
    chart.bars.push_back(
        {.name = absl::StrCat(i + 1),
         .text = ToString(result.step_time),
         .parts = {std::max(0.0, step_s - exposed_s - bubble_s), exposed_s, bubble_s}});
  }
  return absl::StrCat("\n", DrawBars(chart, terminal));
}

std::string FrontChart(const search::SearchRows& rows, const Terminal& terminal) {
  ScatterChart chart = {
      .title = "",
      .marks = "none is both faster and smaller",
      .x = {"peak memory of a rank",
            [](double bytes) { return ToString(Bytes(static_cast<int64_t>(bytes))); }},
      .y = {"step time", [](double s) { return ToString(Duration::FromSeconds(s)); }},
      .points = {}};
  // Fastest first: on the front is what takes less than all before.
  Bytes least;
  for (const search::Result* result : search::FastestFirst(rows)) {
    const bool smaller = chart.points.empty() || result->peak_memory < least;
    if (smaller) least = result->peak_memory;
    chart.points.push_back({.x = static_cast<double>(result->peak_memory.count()),
                            .y = result->step_time.seconds(),
                            .marked = smaller});
  }
  chart.title = absl::StrCat(chart.points.size(), " feasible candidates that were played:");
  const std::string text = DrawScatter(chart, terminal);
  return text.empty() ? "" : absl::StrCat("\n", text);
}

}  // namespace orrery::tools
