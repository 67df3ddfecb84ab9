#include "tools/reports/plot_axes.h"

#include <gtest/gtest.h>

namespace orrery::tools {
namespace plot_axes_test_cc {
namespace {

PlotExtent From(double least, double most) {
  PlotExtent extent;
  extent.See(most);
  extent.See(least);
  return extent;
}

TEST(ScaleOf, IsTheUnitThatReads) {
  EXPECT_EQ(ScaleOf({"time", "s"}, 0.25).name, "ms");
  EXPECT_EQ(ScaleOf({"memory", "bytes"}, 3e9).name, "GiB");
  EXPECT_EQ(ScaleOf({"use", "share"}, 0.1).factor, 0.01);
  EXPECT_EQ(LabelOf({"use", "share"}, {0.01, "%"}), "use, %");
  EXPECT_EQ(LabelOf({"degree"}, {}), "degree");
}

TEST(AxisCommands, BeginsAtZeroUnlessLogarithmic) {
  EXPECT_EQ(AxisCommands({.name = "y"}, {"time", "s"}, {1e-3, "ms"}, From(0.1, 0.2)),
            "set yrange [0:210]\n");
  EXPECT_EQ(AxisCommands({.name = "x", .wide = false}, {"time", "s"}, {1, "s"}, From(1, 2)),
            "set xrange [0:2]\n");
  EXPECT_EQ(AxisCommands({.name = "x"}, {"time", "s"}, {1, "s"}, PlotExtent()),
            "set xrange [0:1]\n");
}

TEST(AxisCommands, CountsByTwoAndMeasuresByTen) {
  EXPECT_EQ(AxisCommands({.name = "x", .log = true, .wide = false}, {"degree"}, {}, From(1, 16)),
            "set xrange [1:16]\nset logscale x 2\n");
  EXPECT_EQ(AxisCommands({.name = "y", .log = true, .wide = false}, {"throughput", "samples/s"}, {},
                         From(400, 6000)),
            "set yrange [400:6000]\nset logscale y 10\nset ytics (500, 1000, 2000, 5000)\n");
  EXPECT_EQ(
      AxisCommands({.name = "y", .log = true, .wide = false}, {"time", "s"}, {}, From(0.02, 200)),
      "set yrange [0.02:200]\nset logscale y 10\nset ytics (0.1, 1, 10, 100)\n");
}

TEST(PlotExtent, HasAMiddle) { EXPECT_DOUBLE_EQ(From(1e-6, 1e-2).Middle(), 1e-4); }

}  // namespace
}  // namespace plot_axes_test_cc
}  // namespace orrery::tools
