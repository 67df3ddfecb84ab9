#ifndef ORRERY_TOOLS_TERMINAL_TEXT_CHART_H_
#define ORRERY_TOOLS_TERMINAL_TEXT_CHART_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/terminal/terminal.h"

// Charts of characters, as wide as the terminal: of braille and block characters where it has
// Unicode, else of ASCII.

namespace orrery::tools {

/// One thing by two positive numbers.
struct ScatterPoint {
  double x = 0, y = 0;
  bool marked = false;  // drawn over others, as what one looks for
};

/// Numbers along one direction of a chart.
struct ScatterAxis {
  std::string name;                          // "memory"
  std::function<std::string(double)> print;  // with its unit: "78.5 MiB"
};

/// Points over two axes.
struct ScatterChart {
  std::string title, marks;  // "350 candidates by …"; what is marked: "on the front"
  ScatterAxis x, y;
  std::vector<ScatterPoint> points;
};

/// The chart in `rows` rows and four lines of text. An axis whose numbers differ more than
/// thirtyfold is logarithmic, and its name says so. Empty where there are fewer than two points, or
/// one that is not positive.
std::string DrawScatter(const ScatterChart& chart, const Terminal& terminal, size_t rows = 14);

/// A bar, parts of which are of several kinds.
struct Bar {
  std::string name = {}, text = {};  // before it; behind it, with a unit
  std::vector<double> parts = {};    // as many as `BarChart::keys`, or one; not negative
  Colour colour = Colour::kGreen;    // of a single part
};

/// Bars under each other, all on the same scale.
struct BarChart {
  std::string title = {};
  std::vector<std::string> keys =
      {};  // of the parts, at most four; empty: there is one, without name
  std::vector<Bar> bars = {};
};

/// The chart: a line a bar, the longest as long as there is room, and what its parts are. Empty
/// where no bar has a length.
std::string DrawBars(const BarChart& chart, const Terminal& terminal);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TERMINAL_TEXT_CHART_H_
