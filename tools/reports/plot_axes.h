#ifndef ORRERY_TOOLS_REPORTS_PLOT_AXES_H_
#define ORRERY_TOOLS_REPORTS_PLOT_AXES_H_

#include <string>

#include "tools/reports/view.h"

// Axes of figures: units in which their numbers read, where they begin and end, and their ticks.

namespace orrery::tools {

/// A unit that numbers are drawn in: so much of a Quantity's unit, by that name.
struct PlotScale {
  double factor = 1;
  std::string name = {};
};

/// The largest unit that leaves `most` at 1 or more.
PlotScale ScaleOf(const Quantity& axis, double most);

/// "memory, GiB".
std::string LabelOf(const Quantity& axis, const PlotScale& scale);

/// From where to where the points of an axis go.
struct PlotExtent {
  double least = 0, most = 0;
  bool any = false;

  void See(double value);
  /// Of a logarithmic axis: the geometric mean of both ends.
  double Middle() const;
};

/// What is told gnuplot of an axis, "x" or "y": its range, a little wider than its points where
/// these are not joined to its end (`wide`), and where it is logarithmic (`log`) that and its
/// ticks: powers of two of counts and bytes, else 1, 2 and 5 times powers of ten.
struct AxisLook {
  const char* name;
  bool log = false, wide = true;
};
std::string AxisCommands(const AxisLook& look, const Quantity& axis, const PlotScale& scale,
                         const PlotExtent& extent);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_PLOT_AXES_H_
