#ifndef ORRERY_TOOLS_REPORTS_VIEW_H_
#define ORRERY_TOOLS_REPORTS_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// What reports are made of: tables, charts and timelines as plain data (docs/adr/0019). Who makes
// them knows plans and runs, who draws them, on a page or with gnuplot, does not.

namespace orrery::tools {

/// What a column or an axis is of. Units are "s", "bytes", "share" (0 to 1), "samples/s",
/// "tokens/s", "flop/s", "flop/byte", "bytes/s", "currency" or "" for plain numbers.
struct Quantity {
  std::string name;
  std::string unit = {};
  bool log = false;  // of an axis: drawn by its logarithm; points of 0 and less are left out
};

/// What a row says in a column; nothing where it has nothing to say.
using Cell = std::variant<std::monostate, bool, int64_t, double, std::string>;

/// A table. Rows have as many cells as there are columns.
struct TableView {
  std::string title;
  std::vector<Quantity> columns;
  std::vector<std::vector<Cell>> rows = {};
};

/// How points are drawn: joined by lines, alone, as bars beside or on top of each other, as areas
/// on top of each other, or each value until the next.
enum class ChartStyle { kLine, kPoints, kBars, kStackedBars, kArea, kSteps };

/// Points of one kind, x before y.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points = {};
  std::vector<std::string> texts = {};   // what each point is; empty: nothing is said of them
  std::optional<ChartStyle> style = {};  // other than the chart's
};

/// One picture of a chart.
struct Panel {
  std::string title = {};
  std::vector<Series> series = {};
};

/// Pictures side by side with the same axes. Where there are categories, x is the place of one.
struct ChartView {
  std::string title;
  ChartStyle style = ChartStyle::kLine;
  Quantity x = {}, y = {};
  std::vector<std::string> categories = {};
  std::vector<Panel> panels = {};
  std::string name = {};  // by which --plot knows it: lower case, digits, hyphens
};

/// What ran in a row of a timeline, from when to when; in the unit of the view.
struct Slice {
  int32_t row = 0, kind = 0;  // places in TimelineView's lists
  double start_s = 0, end_s = 0;
  int32_t label = 0;  // likewise
};

/// What ran when: rows down, time across. Slices of a row do not overlap.
struct TimelineView {
  std::string title;
  std::string unit = "s";  // or "" for units of time
  std::vector<std::string> rows = {};
  std::vector<std::string> kinds = {};  // a colour each
  std::vector<Slice> slices = {};
  std::vector<std::string> labels = {};
  double begin_s = 0, end_s = 0;
  std::string name = {};  // as of a chart
};

/// Drops kinds that no slice is of.
void DropUnusedKinds(TimelineView& view);

using View = std::variant<TableView, ChartView, TimelineView>;

/// Views that belong together, under a heading.
struct Section {
  std::string id;  // letters, digits and hyphens; of a document, each once
  std::string title;
  std::vector<std::string> text = {};  // a paragraph each
  std::vector<View> views = {};
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_VIEW_H_
