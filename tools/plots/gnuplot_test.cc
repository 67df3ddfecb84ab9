#include "tools/plots/gnuplot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/file.h"

namespace orrery::tools {
namespace gnuplot_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

// A folder with a program gnuplot of these lines of shell.
std::string FolderWith(const std::string& lines) {
  static int count = 0;
  const std::string folder =
      absl::StrCat(testing::TempDir(), "/gnuplot_test.", getpid(), ".", ++count);
  const std::string program = absl::StrCat(folder, "/gnuplot");
  EXPECT_TRUE(WriteFile(program, absl::StrCat("#!/bin/sh\n", lines, "\n")).ok());
  EXPECT_EQ(chmod(program.c_str(), 0755), 0);
  return folder;
}

const std::string kLabel = "a \"b\" c'd \\e \\n ${x} `y` <z> & µ_{1}^2, END_OF_TABLE $points\n#";
const std::string kShown =
    "a \"b\" c'd \\e \\n ${x} `y` &lt;z> &amp; µ_{1}^2, END_OF_TABLE $points #";

Plot Points() {
  return {.commands = absl::StrCat(
              "set title ", PlotText(kLabel), "\nplot $points using 1:2 with points title ",
              PlotText("one 'title'"), ", $points using 1:2:3 with labels notitle"),
          .tables = {{.name = "points",
                      .rows = {{1.5, 2.0, kLabel},
                               {2.0, std::numeric_limits<double>::infinity(), "left out"},
                               {3.0, 1e-7, "END_OF_TABLE"}}}}};
}

// Needs the program itself, which the tests ask for: scripts/install_dependencies.
TEST(Gnuplot, DrawsWhateverLabelsSay) {
  const auto svg = DrawPlot(Points(), PlotFormat::kSvg);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, testing::StartsWith("<?xml"));
  EXPECT_THAT(*svg, testing::EndsWith("</svg>\n\n"));
  const std::vector<std::string> lines = absl::StrSplit(*svg, '\n');
  const auto shown = [&](const std::string& text) {
    int count = 0;
    for (const std::string& line : lines) count += line.find(text) != std::string::npos ? 1 : 0;
    return count;
  };
  EXPECT_EQ(shown(absl::StrCat(">", kShown, "</text>")), 2);
  EXPECT_EQ(shown(">one 'title'</text>"), 1);
  EXPECT_EQ(shown(">END_OF_TABLE</text>"), 1);
  EXPECT_EQ(shown("left out"), 0);
}

TEST(Gnuplot, SameInputSameBytes) {
  for (const PlotFormat format : {PlotFormat::kSvg, PlotFormat::kPdf}) {
    const auto first = DrawPlot(Points(), format);
    ASSERT_TRUE(first.ok()) << first.status();
    sleep(format == PlotFormat::kPdf ? 1 : 0);  // a second later
    EXPECT_EQ(*first, *DrawPlot(Points(), format));
  }
  const auto pdf = DrawPlot(Points(), PlotFormat::kPdf);
  EXPECT_THAT(*pdf, testing::StartsWith("%PDF-"));
}

TEST(Gnuplot, WritesTheFileWhole) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/gnuplot_test.", getpid(), "/plot.svg");
  ASSERT_TRUE(WritePlot(path, Points()).ok());
  EXPECT_EQ(*ReadFile(path), *DrawPlot(Points(), PlotFormat::kSvg));
  std::filesystem::remove(path);
  const absl::Status status = WritePlot(path, {.commands = "plot nothing(x)"});
  EXPECT_THAT(std::string(status.message()), HasSubstr("undefined function: nothing"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Gnuplot, ByTheEndingOfTheName) {
  EXPECT_EQ(*PlotFormatOf("a.svg"), PlotFormat::kSvg);
  EXPECT_EQ(*PlotFormatOf("a.b/c.pdf"), PlotFormat::kPdf);
  EXPECT_EQ(CheckPlot("plot.png").message(), "plot.png: wanted a name that ends in .svg or .pdf");
  EXPECT_EQ(WritePlot("plot.png", Points()), CheckPlot("plot.png"));
}

TEST(Gnuplot, IsMissing) {
  const GnuplotOptions options = {.folders = "/nowhere:/nowhere/else"};
  const absl::Status status = CheckPlot("plot.svg", options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("package gnuplot-nox"));
  EXPECT_EQ(DrawPlot(Points(), PlotFormat::kSvg, options).status(), status);
}

TEST(Gnuplot, IsEndedWhenItTakesTooLong) {
  const GnuplotOptions options = {.timeout_s = 1, .folders = FolderWith("exec sleep 30")};
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = DrawPlot(Points(), PlotFormat::kSvg, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST(Gnuplot, FailsOrSaysNothing) {
  const auto error = [](const std::string& lines) {
    const GnuplotOptions options = {.folders = FolderWith(lines)};
    return std::string(DrawPlot(Points(), PlotFormat::kSvg, options).status().message());
  };
  EXPECT_EQ(error("echo '<svg>'; echo >&2; echo '   ^' >&2; echo ' line 3: no' >&2; exit 1"),
            "gnuplot drew nothing: line 3: no");
  EXPECT_EQ(error("kill -9 $$"), "gnuplot drew nothing: it says nothing");
  EXPECT_EQ(error("exit 0"), "gnuplot drew nothing: it says nothing");
}

// Nothing of the user's changes a plot.
TEST(Gnuplot, IsRunAlikeForAll) {
  const GnuplotOptions options = {.folders = FolderWith("env | sort; echo \"$@\"; cat")};
  setenv("GNUTERM", "dumb", 1);
  const auto told = DrawPlot({.commands = "plot x"}, PlotFormat::kSvg, options);
  unsetenv("GNUTERM");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(*told, HasSubstr("LC_ALL=C.UTF-8\n"));
  EXPECT_THAT(*told, HasSubstr("-d -\n"));
  EXPECT_THAT(*told, Not(HasSubstr("GNUTERM")));
  EXPECT_THAT(*told, testing::EndsWith("\nplot x\nunset output\n"));
}

}  // namespace
}  // namespace gnuplot_test_cc
}  // namespace orrery::tools
