#include "tools/reports/plot_views.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace orrery::tools {
namespace plot_views_cc {
namespace {

// Okabe and Ito's, which people with colour-blindness tell apart; the first are told apart in grey.
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                    "#56b4e9", "#d55e00", "#f0e442", "#000000"};
constexpr int kMarks[] = {7, 5, 9, 13, 11, 6, 4, 8};
constexpr int32_t kPanelsARow = 5;

std::string Colour(size_t i) {
  return absl::StrCat("lc rgb '", kColours[i % std::size(kColours)], "'");
}

// A unit that numbers are drawn in: so much of a Quantity's unit, by that name.
struct Scale {
  double factor = 1;
  std::string name = {};
};

// The largest that leaves `most` at 1 or more.
Scale ScaleOf(const Quantity& axis, double most) {
  static const auto& steps = *new std::map<std::string, std::vector<Scale>>{
      {"s", {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}},
      {"bytes", {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}},
      {"bytes/s", {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}}},
      {"flop/s", {{1e12, "Tflop/s"}, {1e9, "Gflop/s"}, {1e6, "Mflop/s"}, {1, "flop/s"}}},
      {"share", {{0.01, "%"}}}};
  const auto found = steps.find(axis.unit);
  if (found == steps.end()) return {1, axis.unit};
  for (const Scale& scale : found->second) {
    if (most >= scale.factor) return scale;
  }
  return found->second.back();
}

std::string LabelOf(const Quantity& axis, const Scale& scale) {
  return scale.name.empty() ? axis.name : absl::StrCat(axis.name, ", ", scale.name);
}

bool IsStacked(ChartStyle style) {
  return style == ChartStyle::kStackedBars || style == ChartStyle::kArea;
}

// How gnuplot draws the points of a table, x and y.
std::string DrawnWith(ChartStyle style, size_t i) {
  const std::string mark = absl::StrCat("pt ", kMarks[i % std::size(kMarks)], " ps 0.6");
  switch (style) {
    case ChartStyle::kLine:
      return absl::StrCat("with linespoints lw 1.5 ", mark, " ", Colour(i));
    case ChartStyle::kPoints:
      return absl::StrCat("with points ", mark, " ", Colour(i));
    case ChartStyle::kSteps:
      return absl::StrCat("with steps lw 1.5 ", Colour(i));
    case ChartStyle::kBars:
    case ChartStyle::kStackedBars:
      return absl::StrCat("with boxes fs solid 0.9 ", Colour(i));
    case ChartStyle::kArea:
      return absl::StrCat("with filledcurves x1 fs solid 0.9 ", Colour(i));
  }
  return "with lines";
}

// The extent of an axis over all panels; gnuplot's own where it begins at 0.
struct Extent {
  double least = 0, most = 0;
  bool any = false;

  void See(double value) {
    least = any ? std::min(least, value) : value;
    most = any ? std::max(most, value) : value;
    any = true;
  }
};

class ChartPlot {
 public:
  explicit ChartPlot(const ChartView& chart) : chart_(chart) {}

  Plot Make() && {
    const auto panels = static_cast<int32_t>(chart_.panels.size());
    const int32_t columns = std::clamp(panels, 1, kPanelsARow);
    const int32_t rows = std::max(1, (panels + columns - 1) / columns);
    for (const Panel& panel : chart_.panels) SeeExtents(panel);
    x_scale_ = ScaleOf(chart_.x, chart_.x.log ? x_.least : x_.most);
    y_scale_ = ScaleOf(chart_.y, IsWide() ? y_.least : y_.most);
    Head(rows, columns);
    if (!x_.any) plot_.commands += "set xrange [0:1]\nset yrange [0:1]\n";
    if (panels == 0) plot_.commands += "plot NaN notitle\n";
    for (size_t p = 0; p < chart_.panels.size(); ++p) AddPanel(p, static_cast<size_t>(columns));
    if (panels > 1) plot_.commands += "unset multiplot\n";
    plot_.width = panels > 1 ? 260 * columns + 240 : 900;
    plot_.height = panels > 1 ? 300 * rows + 60 : 560;
    return std::move(plot_);
  }

 private:
  bool IsShown(const std::pair<double, double>& point) const {
    return (!chart_.x.log || point.first > 0) && (!chart_.y.log || point.second > 0) &&
           std::isfinite(point.first) && std::isfinite(point.second);
  }

  void SeeExtents(const Panel& panel) {
    std::map<double, double> sums;  // of what is stacked
    for (const Series& series : panel.series) {
      for (const auto& point : series.points) {
        if (!IsShown(point)) continue;
        x_.See(point.first);
        y_.See(IsStacked(chart_.style) ? sums[point.first] += point.second : point.second);
      }
    }
  }

  void Head(int32_t rows, int32_t columns) {
    std::string& out = plot_.commands;
    if (chart_.x.log) out += "set logscale x 2\n";
    if (IsWide()) out += "set logscale y 2\n";
    absl::StrAppend(&out,
                    "set format xy '%g'\nset grid lc rgb '#dddddd'\nset style fill solid\n"
                    "set boxwidth 0.7\nset key outside right top Left reverse\nset xlabel ",
                    PlotText(LabelOf(chart_.x, x_scale_)), "\nset ylabel ",
                    PlotText(LabelOf(chart_.y, y_scale_)), "\n");
    AddCategories();
    Range("y", IsWide(), y_scale_, y_);
    if (chart_.panels.size() > 1) {
      Range("x", chart_.x.log, x_scale_, x_);
      absl::StrAppendFormat(&out,
                            "set multiplot layout %d,%d title %s margins screen "
                            "0.07,0.82,%.3f,%.3f spacing screen 0.02,%.3f\n",
                            rows, columns, PlotText(chart_.title), 0.2 / rows, 1 - 0.2 / rows,
                            0.28 / rows);
    } else {
      absl::StrAppend(&out, "set title ", PlotText(chart_.title), "\n");
    }
  }

  // Of less than three powers of two a logarithmic axis has no ticks to read.
  bool IsWide() const { return chart_.y.log && y_.any && y_.most >= 8 * y_.least; }

  void Range(const char* axis, bool log, const Scale& scale, const Extent& extent) {
    if (!extent.any) return;
    const double wide = log ? 1.15 : 1.05;
    const double least = log ? extent.least / wide : std::min(0.0, wide * extent.least);
    const double most = extent.most > 0 || log ? wide * extent.most : 1;
    absl::StrAppendFormat(&plot_.commands, "set %srange [%.9g:%.9g]\n", axis, least / scale.factor,
                          most / scale.factor);
  }

  void AddCategories() {
    if (chart_.categories.empty()) return;
    std::string ticks;
    const size_t every = (chart_.categories.size() + 15) / 16;
    for (size_t i = 0; i < chart_.categories.size(); i += every) {
      absl::StrAppend(&ticks, ticks.empty() ? "" : ", ", PlotText(chart_.categories[i]), " ", i);
    }
    absl::StrAppend(&plot_.commands, "set xtics (", ticks, ") rotate by -30 left\n",
                    absl::StrFormat("set xrange [-0.7:%.1f]\n",
                                    static_cast<double>(chart_.categories.size()) - 0.3));
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
      absl::StrAppend(&out, "set title ", PlotText(panel.title), "\n");
      absl::StrAppend(&out, "set format y ", PlotText(p % columns == 0 ? "%g" : ""),
                      "\nset ylabel ",
                      PlotText(p % columns == 0 ? LabelOf(chart_.y, y_scale_) : ""), "\n");
      absl::StrAppend(
          &out, p == 0 ? "set key at screen 0.99,0.9 right top Left reverse\n" : "unset key\n");
      if (p == 0) AddNamesOfOthers(parts);
    }
    if (parts.empty()) parts.push_back("NaN notitle");
    absl::StrAppend(&out, "plot ", absl::StrJoin(parts, ", \\\n  "), "\n");
  }

  // Series that other panels alone have.
  void AddNamesOfOthers(std::vector<std::string>& parts) {
    for (const Panel& panel : chart_.panels) {
      for (const Series& series : panel.series) {
        if (colours_.contains(series.name)) continue;
        const ChartStyle style = series.style.value_or(chart_.style);
        parts.push_back(absl::StrCat("NaN ", DrawnWith(style, ColourOf(series.name)), " title ",
                                     PlotText(series.name)));
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
    const size_t colour = ColourOf(series.name);
    if (table.rows.empty())
      return absl::StrCat("NaN ", Colour(colour), " title ", PlotText(series.name));
    const std::string text = absl::StrCat("$", table.name, " using 1:2 ", DrawnWith(style, colour),
                                          " title ", PlotText(series.name));
    plot_.tables.push_back(std::move(table));
    return text;
  }

  const ChartView& chart_;
  Plot plot_;
  Extent x_, y_;
  Scale x_scale_, y_scale_;
  std::map<std::string, size_t> colours_;
};

}  // namespace
}  // namespace plot_views_cc

Plot PlotOf(const ChartView& chart) { return plot_views_cc::ChartPlot(chart).Make(); }

Plot PlotOf(const TimelineView& timeline) {
  const int height = 140 + 24 * static_cast<int>(timeline.rows.size());
  Plot plot{.commands = "", .width = 1100, .height = std::min(height, 4000)};
  std::string& out = plot.commands;
  const Quantity time{"time", timeline.unit};
  const plot_views_cc::Scale scale = plot_views_cc::ScaleOf(time, timeline.end_s);
  const double begin = timeline.begin_s / scale.factor, end = timeline.end_s / scale.factor;
  absl::StrAppendFormat(&out, "set title %s\nset xrange [%.12g:%.12g]\nset yrange [%d:-1]\n",
                        PlotText(timeline.title), begin, std::max(end, begin + 1e-12),
                        timeline.rows.size());
  absl::StrAppend(&out, "set format x '%g'\nset xlabel ", PlotText(LabelOf(time, scale)),
                  "\nset key outside bottom center horizontal\nset style fill solid 0.9 border rgb "
                  "'#ffffff'\n");
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

absl::Status WriteFirstPlot(const std::vector<Section>& sections, const std::string& path) {
  for (const Section& section : sections) {
    for (const View& view : section.views) {
      if (const auto* chart = std::get_if<ChartView>(&view)) return WritePlot(path, PlotOf(*chart));
      if (const auto* timeline = std::get_if<TimelineView>(&view)) {
        return WritePlot(path, PlotOf(*timeline));
      }
    }
  }
  return absl::NotFoundError(absl::StrCat(path, ": there is nothing to draw"));
}

}  // namespace orrery::tools
