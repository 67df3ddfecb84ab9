#include "tools/reports/page_assets.h"

#include <cstddef>

// ORRERY_FILE(name, path): `name` … `name_end` are the bytes of a file below the root of the
// sources. Assemblers have a directive for it: a string literal of a megabyte is slow to compile.
#define ORRERY_FILE(name, path)                               \
  asm(".pushsection .rodata\n"                                \
      ".global orrery_page_" #name "\norrery_page_" #name     \
      ":\n"                                                   \
      ".incbin \"" ORRERY_PAGE_ROOT "/" path                  \
      "\"\n"                                                  \
      ".global orrery_page_" #name "_end\norrery_page_" #name \
      "_end:\n"                                               \
      ".byte 0\n.popsection\n");                              \
  extern "C" const char orrery_page_##name[], orrery_page_##name##_end[]

ORRERY_FILE(html, "tools/reports/page/page.html");
ORRERY_FILE(css, "tools/reports/page/report.css");
ORRERY_FILE(js_dom, "tools/reports/page/dom.js");
ORRERY_FILE(js_units, "tools/reports/page/units.js");
ORRERY_FILE(js_colors, "tools/reports/page/colors.js");
ORRERY_FILE(js_columns, "tools/reports/page/columns.js");
ORRERY_FILE(js_tables, "tools/reports/page/tables.js");
ORRERY_FILE(js_frames, "tools/reports/page/frames.js");
ORRERY_FILE(js_axes, "tools/reports/page/axes.js");
ORRERY_FILE(js_chart_data, "tools/reports/page/chart_data.js");
ORRERY_FILE(js_charts, "tools/reports/page/charts.js");
ORRERY_FILE(js_timeline, "tools/reports/page/timeline.js");
ORRERY_FILE(js_sections, "tools/reports/page/sections.js");
ORRERY_FILE(js_scatter, "tools/reports/page/scatter.js");
ORRERY_FILE(js_runs, "tools/reports/page/runs.js");
ORRERY_FILE(js_filters, "tools/reports/page/filters.js");
ORRERY_FILE(js_candidates, "tools/reports/page/candidates.js");
ORRERY_FILE(js_report, "tools/reports/page/report.js");
ORRERY_FILE(echarts, "third_party/echarts/echarts.min.js");
ORRERY_FILE(tabulator, "third_party/tabulator/tabulator.min.js");
ORRERY_FILE(tabulator_css, "third_party/tabulator/tabulator.min.css");

#define ORRERY_BYTES(name)              \
  absl::string_view(orrery_page_##name, \
                    static_cast<size_t>(orrery_page_##name##_end - orrery_page_##name))

namespace orrery::tools {

const PageAssets& AllPageAssets() {
  static const PageAssets& assets = *new PageAssets{
      .html = ORRERY_BYTES(html),
      .styles = {ORRERY_BYTES(tabulator_css), ORRERY_BYTES(css)},
      .scripts = {ORRERY_BYTES(echarts), ORRERY_BYTES(tabulator), ORRERY_BYTES(js_dom),
                  ORRERY_BYTES(js_units), ORRERY_BYTES(js_colors), ORRERY_BYTES(js_columns),
                  ORRERY_BYTES(js_tables), ORRERY_BYTES(js_frames), ORRERY_BYTES(js_axes),
                  ORRERY_BYTES(js_chart_data), ORRERY_BYTES(js_charts), ORRERY_BYTES(js_timeline),
                  ORRERY_BYTES(js_sections), ORRERY_BYTES(js_scatter), ORRERY_BYTES(js_runs),
                  ORRERY_BYTES(js_filters), ORRERY_BYTES(js_candidates), ORRERY_BYTES(js_report)}};
  return assets;
}

}  // namespace orrery::tools
