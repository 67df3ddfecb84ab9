#include "tools/reports/plot_views.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/reports/plot_axes.h"

namespace orrery::tools {
namespace plot_views_cc {
namespace {

// The first are Okabe and Ito's but for their yellow, which white paper swallows: people with
// colour-blindness tell them apart. Marks and dashes tell lines apart in grey, too; as there are
// fewer marks than colours, 36 lines have a pair of their own.
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                    "#56b4e9", "#d55e00", "#888888", "#000000",
                                    "#6a3d9a", "#8b5a2b", "#a6d854", "#f4a6a6"};
constexpr int kMarks[] = {7, 5, 9, 13, 11, 6, 4, 8, 12};
constexpr int kDashes[] = {1, 2, 4, 3};
constexpr int32_t kPanelsARow = 5;

// Pixels: of gnuplot's own room for names there is twice as much as they take.
constexpr int kLetter = 7, kSample = 75;  // a name, and the line before it
constexpr int kLeft = 105, kTop = 75, kBottom = 75;
constexpr int kPanel = 250, kPanelHeight = 210, kPanelGap = 18, kRowGap = 95;
constexpr int kPicture = 640, kPictureHeight = 355;  // of one panel
constexpr int kTopOfOne = 50, kName = 20;  // of the list of names, which ends where the panel does
constexpr const char* kFrame =
    "set border 3\nset tics nomirror out\nset grid lc rgb '#cccccc'\nset format xy '%g'\n";

std::string Colour(size_t i) {
  return absl::StrCat("lc rgb '", kColours[i % std::size(kColours)], "'");
}

bool IsStacked(ChartStyle style) {
  return style == ChartStyle::kStackedBars || style == ChartStyle::kArea;
}

// How gnuplot draws the points of a table, x and y. A line among points is a bound: it has no
// marks.
std::string DrawnWith(ChartStyle chart, ChartStyle style, size_t i) {
  const std::string mark = absl::StrCat("pt ", kMarks[i % std::size(kMarks)], " ps 0.7");
  const std::string dash = absl::StrCat("lw 1.5 dt ", kDashes[i % std::size(kDashes)]);
  switch (style) {
    case ChartStyle::kLine:
      if (chart == ChartStyle::kPoints) return absl::StrCat("with lines ", dash, " ", Colour(i));
      return absl::StrCat("with linespoints ", dash, " ", mark, " ", Colour(i));
    case ChartStyle::kPoints:
      return absl::StrCat("with points ", mark, " ", Colour(i));
    case ChartStyle::kSteps:
      return absl::StrCat("with steps lw 1.5 ", Colour(i));
    case ChartStyle::kBars:
    case ChartStyle::kStackedBars:
      return absl::StrCat("with boxes fs solid 1 ", Colour(i));
    case ChartStyle::kArea:
      return absl::StrCat("with filledcurves x1 fs solid 1 ", Colour(i));
  }
  return "with lines";
}

class ChartPlot {
 public:
  explicit ChartPlot(const ChartView& chart) : chart_(chart) {}

  Plot Make() && {
    const auto panels = static_cast<int32_t>(chart_.panels.size());
    const int32_t columns = std::clamp(panels, 1, kPanelsARow);
    for (const Panel& panel : chart_.panels) SeeSeries(panel);
    x_scale_ = ScaleOf(chart_.x, chart_.x.log ? x_.Middle() : x_.most);
    y_scale_ = ScaleOf(chart_.y, IsWide() ? y_.Middle() : y_.most);
    Head();
    if (panels > 1) {
      LayOut(std::max(1, (panels + columns - 1) / columns), columns);
    } else {
      LayOutOne();
    }
    if (panels == 0) plot_.commands += "plot NaN notitle\n";
    for (size_t p = 0; p < chart_.panels.size(); ++p) AddPanel(p, static_cast<size_t>(columns));
    if (panels > 1) plot_.commands += "unset multiplot\n";
    return std::move(plot_);
  }

 private:
  bool IsShown(const std::pair<double, double>& point) const {
    return (!chart_.x.log || point.first > 0) && (!chart_.y.log || point.second > 0) &&
           std::isfinite(point.first) && std::isfinite(point.second);
  }

  // Their extents and names.
  void SeeSeries(const Panel& panel) {
    std::map<double, double> sums;  // of what is stacked
    for (const Series& series : panel.series) {
      longest_name_ = std::max(longest_name_, static_cast<int>(series.name.size()));
      ColourOf(series.name);
      for (const auto& point : series.points) {
        if (!IsShown(point)) continue;
        x_.See(point.first);
        y_.See(IsStacked(chart_.style) ? sums[point.first] += point.second : point.second);
      }
    }
  }

  void Head() {
    std::string& out = plot_.commands;
    absl::StrAppend(&out, kFrame, "set boxwidth 0.7\nset xlabel ",
                    PlotText(LabelOf(chart_.x, x_scale_)), "\nset ylabel ",
                    PlotText(LabelOf(chart_.y, y_scale_)), "\n",
                    AxisCommands({.name = "y", .log = IsWide()}, chart_.y, y_scale_, y_));
    if (!chart_.categories.empty()) return AddCategories();
    // What goes on until the end has no room behind it.
    const bool wide = chart_.style != ChartStyle::kArea && chart_.style != ChartStyle::kSteps;
    out += AxisCommands({.name = "x", .log = chart_.x.log, .wide = wide}, chart_.x, x_scale_, x_);
  }

  // Of less than three powers of two a logarithmic axis has no ticks to read.
  bool IsWide() const { return chart_.y.log && y_.any && y_.most >= 8 * y_.least; }

  // One kind is told by the axis.
  bool HasKey() const { return colours_.size() > 1; }
  int KeyWidth() const { return HasKey() ? kSample + kLetter * longest_name_ : 20; }

  int KeyHeight() const { return kName * static_cast<int>(colours_.size() + 1); }

  void AddCategories() {
    size_t longest = 0;
    for (const std::string& category : chart_.categories) {
      longest = std::max(longest, category.size());
    }
    const size_t count = chart_.categories.size(), every = (count + 39) / 40;
    const bool flat = count * (longest + 2) * kLetter <= kPicture;
    last_label_ = flat ? 0 : static_cast<int>(longest) * kLetter * 4 / 5;  // right of its bar
    std::string ticks;
    for (size_t i = 0; i < count; i += every) {
      absl::StrAppend(&ticks, ticks.empty() ? "" : ", ", PlotText(chart_.categories[i]), " ", i);
    }
    absl::StrAppend(&plot_.commands, "set xtics (", ticks, ")", flat ? "" : " rotate by -40 left",
                    "\nset grid noxtics\n",
                    absl::StrFormat("set xrange [-0.7:%.1f]\n", static_cast<double>(count) - 0.3));
  }

  // Panels in rows, the names of all series to the right of them.
  void LayOut(int32_t rows, int32_t columns) {
    plot_.width = kLeft + kPanel * columns + KeyWidth();
    plot_.height =
        kTop + kBottom + rows * std::max(kPanelHeight, KeyHeight()) + (rows - 1) * kRowGap;
    const double width = plot_.width, height = plot_.height;
    absl::StrAppendFormat(&plot_.commands,
                          "set multiplot layout %d,%d title %s margins screen %.4f,%.4f,%.4f,%.4f "
                          "spacing screen %.4f,%.4f\n",
                          rows, columns, PlotText(chart_.title), kLeft / width,
                          1 - KeyWidth() / width, kBottom / height, 1 - kTop / height,
                          kPanelGap / width, kRowGap / height);
    PlaceKey();
  }

  void LayOutOne() {
    const int right = HasKey() ? KeyWidth() : std::max(20, last_label_);
    plot_.width = kLeft + kPicture + right;
    plot_.height = kTopOfOne + kBottom + std::max(kPictureHeight, KeyHeight());
    PlaceKey();
    absl::StrAppendFormat(&plot_.commands,
                          "set title %s\nset lmargin at screen %.4f\n"
                          "set rmargin at screen %.4f\nset tmargin at screen %.4f\n%s",
                          PlotText(chart_.title), 1.0 * kLeft / plot_.width,
                          1 - 1.0 * right / plot_.width, 1 - 1.0 * kTopOfOne / plot_.height, key_);
  }

  // The names of series begin where panels do.
  void PlaceKey() {
    const double top = chart_.panels.size() > 1 ? kTop : kTopOfOne;
    key_ = !HasKey()
               ? "unset key\n"
               : absl::StrFormat("set key at screen %.4f,%.4f left top Left reverse\n",
                                 1 - (KeyWidth() - 10.0) / plot_.width, 1 - top / plot_.height);
  }

  // Names of all series stand to the right of all panels, those of the axes once.
  void AddPanel(size_t p, size_t columns) {
    const Panel& panel = chart_.panels[p];
    std::string& out = plot_.commands;
    std::vector<std::string> parts;
    std::map<double, double> below;
    for (const Series& series : panel.series) parts.push_back(AddSeries(series, below));
    // What is on top of others is drawn before them.
    if (IsStacked(chart_.style)) std::ranges::reverse(parts);
    if (chart_.panels.size() > 1) {
      const bool first = p % columns == 0;
      absl::StrAppend(&out, "set title ", PlotText(panel.title), "\nset format y ",
                      PlotText(first ? "%g" : ""), "\nset ylabel ",
                      PlotText(first ? LabelOf(chart_.y, y_scale_) : ""), "\n",
                      p == 0 ? key_ : "unset key\n");
      if (p == 0) AddNamesOfOthers(parts);
    }
    if (parts.empty()) parts.push_back("NaN notitle");
    absl::StrAppend(&out, "plot ", absl::StrJoin(parts, ", \\\n  "), "\n");
  }

  // Series that other panels alone have.
  void AddNamesOfOthers(std::vector<std::string>& parts) const {
    std::vector<std::string> named;
    for (const Series& series : chart_.panels.front().series) named.push_back(series.name);
    for (const Panel& panel : chart_.panels) {
      for (const Series& series : panel.series) {
        if (std::ranges::find(named, series.name) != named.end()) continue;
        named.push_back(series.name);
        const ChartStyle style = series.style.value_or(chart_.style);
        parts.push_back(absl::StrCat("NaN ",
                                     DrawnWith(chart_.style, style, colours_.at(series.name)),
                                     " title ", PlotText(series.name)));
      }
    }
  }

  // The colour of a series is that of its name, in all panels.
  size_t ColourOf(const std::string& name) {
    return colours_.try_emplace(name, colours_.size()).first->second;
  }

  std::string AddSeries(const Series& series, std::map<double, double>& below) {
    PlotTable table = {.name = absl::StrCat("data", plot_.tables.size()), .rows = {}};
    const ChartStyle style = series.style.value_or(chart_.style);
    for (const auto& point : series.points) {
      if (!IsShown(point)) continue;
      double y = point.second;
      if (IsStacked(style)) y = below[point.first] += y;
      table.rows.push_back({point.first / x_scale_.factor, y / y_scale_.factor});
    }
    const std::string look = absl::StrCat(DrawnWith(chart_.style, style, ColourOf(series.name)),
                                          " title ", PlotText(series.name));
    if (table.rows.empty()) return absl::StrCat("NaN ", look);
    const std::string text = absl::StrCat("$", table.name, " using 1:2 ", look);
    plot_.tables.push_back(std::move(table));
    return text;
  }

  const ChartView& chart_;
  Plot plot_;
  PlotExtent x_, y_;
  PlotScale x_scale_, y_scale_;
  std::map<std::string, size_t> colours_;
  std::string key_;  // where names stand beside several panels
  int longest_name_ = 0, last_label_ = 0;
};

// The room around the rows of a timeline, and beside it the kinds.
std::string TimelineFrame(const TimelineView& timeline, Plot& plot) {
  constexpr int kRow = 24, kAbove = 45, kBelow = 70, kMost = 4000;
  size_t longest_row = 4, longest_kind = 4;
  for (const std::string& row : timeline.rows) longest_row = std::max(longest_row, row.size());
  for (const std::string& kind : timeline.kinds) {
    longest_kind = std::max(longest_kind, kind.size());
  }
  const int left = 30 + kLetter * static_cast<int>(longest_row);
  const int right = kSample + kLetter * static_cast<int>(longest_kind);
  const auto rows = std::max(1, static_cast<int>(timeline.rows.size()));
  const auto kinds = static_cast<int>(timeline.kinds.size());
  plot.width = left + 900 + right;
  plot.height = kAbove + kBelow + std::min(std::max(kRow * rows, kName * (kinds + 1)), kMost);
  const double width = plot.width, height = plot.height;
  return absl::StrFormat(
      "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset tmargin at screen %.4f\n"
      "set bmargin at screen %.4f\nset key at screen %.4f,%.4f left top Left reverse\n",
      left / width, 1 - right / width, 1 - kAbove / height, kBelow / height,
      1 - (right - 10) / width, 1 - kAbove / height);
}

}  // namespace
}  // namespace plot_views_cc

Plot PlotOf(const ChartView& chart) { return plot_views_cc::ChartPlot(chart).Make(); }

Plot PlotOf(const TimelineView& timeline) {
  Plot plot;
  plot.commands = absl::StrCat(plot_views_cc::kFrame, plot_views_cc::TimelineFrame(timeline, plot),
                               "set grid noytics\n");
  std::string& out = plot.commands;
  const Quantity time{"time", timeline.unit};
  const PlotScale scale = ScaleOf(time, timeline.end_s);
  const double begin = timeline.begin_s / scale.factor, end = timeline.end_s / scale.factor;
  absl::StrAppendFormat(&out, "set title %s\nset xrange [%.12g:%.12g]\nset yrange [%g:-0.6]\n",
                        PlotText(timeline.title), begin, std::max(end, begin + 1e-12),
                        static_cast<double>(timeline.rows.size()) - 0.4);
  absl::StrAppend(&out, "set xlabel ", PlotText(LabelOf(time, scale)),
                  "\nset style fill solid 1 border rgb '#ffffff'\n");
  std::string ticks;
  for (size_t row = 0; row < timeline.rows.size(); ++row) {
    absl::StrAppend(&ticks, row == 0 ? "" : ", ", PlotText(timeline.rows[row]), " ", row);
  }
  absl::StrAppend(&out, "set ytics (", ticks, ")\nplot ");
  bool any = false;
  for (size_t kind = 0; kind < timeline.kinds.size(); ++kind) {
    PlotTable table = {.name = absl::StrCat("kind", kind), .rows = {}};
    for (const Slice& slice : timeline.slices) {
      if (static_cast<size_t>(slice.kind) != kind) continue;
      const double row = slice.row;
      const double from = slice.start_s / scale.factor, to = slice.end_s / scale.factor;
      table.rows.push_back({from, row, from, to, row - 0.4, row + 0.4});
    }
    if (table.rows.empty()) continue;
    absl::StrAppend(&out, any ? ", \\\n  " : "", "$", table.name,
                    " using 1:2:3:4:5:6 with boxxyerror ", plot_views_cc::Colour(kind), " title ",
                    PlotText(timeline.kinds[kind]));
    plot.tables.push_back(std::move(table));
    any = true;
  }
  absl::StrAppend(&out, any ? "\n" : "NaN notitle\n");
  return plot;
}

}  // namespace orrery::tools
