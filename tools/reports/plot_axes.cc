#include "tools/reports/plot_axes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace orrery::tools {
namespace plot_axes_cc {
namespace {

constexpr double kMostDecades = 3;  // with more than a tick each

// 1, 2 and 5 times powers of ten, or these alone where there are many.
std::string TicksByTen(double least, double most) {
  const bool few = std::log10(most / least) <= kMostDecades;
  std::string ticks;
  for (int power = static_cast<int>(std::floor(std::log10(least))); std::pow(10, power) <= most;
       ++power) {
    for (const int times : {1, 2, 5}) {
      const double tick = times * std::pow(10, power);
      if (tick < least || tick > most || (times > 1 && !few)) continue;
      absl::StrAppendFormat(&ticks, "%s%.9g", ticks.empty() ? "" : ", ", tick);
    }
  }
  return ticks;
}

}  // namespace
}  // namespace plot_axes_cc

PlotScale ScaleOf(const Quantity& axis, double most) {
  static const auto& steps = *new std::map<std::string, std::vector<PlotScale>>{
      {"s", {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}},
      {"bytes", {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}},
      {"bytes/s", {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}}},
      {"flop/s", {{1e12, "Tflop/s"}, {1e9, "Gflop/s"}, {1e6, "Mflop/s"}, {1, "flop/s"}}},
      {"share", {{0.01, "%"}}}};
  const auto found = steps.find(axis.unit);
  if (found == steps.end()) return {1, axis.unit};
  for (const PlotScale& scale : found->second) {
    if (most >= scale.factor) return scale;
  }
  return found->second.back();
}

std::string LabelOf(const Quantity& axis, const PlotScale& scale) {
  return scale.name.empty() ? axis.name : absl::StrCat(axis.name, ", ", scale.name);
}

void PlotExtent::See(double value) {
  least = any ? std::min(least, value) : value;
  most = any ? std::max(most, value) : value;
  any = true;
}

double PlotExtent::Middle() const { return std::sqrt(least) * std::sqrt(most); }

std::string AxisCommands(const AxisLook& look, const Quantity& axis, const PlotScale& scale,
                         const PlotExtent& extent) {
  if (!extent.any) return absl::StrCat("set ", look.name, "range [0:1]\n");
  const double wide = !look.wide ? 1 : look.log ? 1.15 : 1.05;
  const double from = (look.log ? extent.least / wide : std::min(0.0, wide * extent.least));
  const double to = extent.most > 0 || look.log ? wide * extent.most : 1;
  const double least = from / scale.factor, most = to / scale.factor;
  std::string out = absl::StrFormat("set %srange [%.9g:%.9g]\n", look.name, least, most);
  if (!look.log) return out;
  const bool by_two = axis.unit.empty() || axis.unit == "bytes";
  absl::StrAppend(&out, "set logscale ", look.name, by_two ? " 2\n" : " 10\n");
  if (by_two) return out;
  const std::string ticks = plot_axes_cc::TicksByTen(least, most);
  return absl::StrCat(out, "set ", look.name, "tics (", ticks, ")\n");
}

}  // namespace orrery::tools
