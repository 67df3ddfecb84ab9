#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "tools/flags.h"
#include "tools/plots/gnuplot.h"
#include "tools/validation/nearest_steps.h"
#include "tools/validation/predict_step.h"
#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/step_errors.h"
#include "tools/validation/validation_page.h"
#include "tools/validation/validation_report.h"

// Predicted step times beside measured ones: docs/validation_rows.md, docs/kernels.md.

namespace orrery::tools {
namespace measured_times_test_cc {
namespace {

ErrorFigures ErrorsOf(const std::string& file, const std::string& cost_model) {
  const std::vector<MeasuredStep> steps =
      ReadMeasuredSteps(absl::StrCat(SourceDir(), "/tests/data/", file)).value();
  std::vector<Pair> pairs;
  for (const MeasuredStep& step : steps) {
    if (step.seconds <= 0) continue;
    const PredictedStep predicted = Predict(step, cost_model);
    if (predicted.seconds > 0) pairs.push_back({step.seconds, predicted.seconds});
  }
  return FiguresOf(pairs);
}

// Whole steps, which take ten times as long under a sanitizer; others walk the same lines.
bool TakesTooLong() { return CasesToWalk(8) < 8; }

// The file that stands in the repository, and what the program makes of it now.
void ExpectStands(const std::string& file, const std::string& now) {
  const auto stands = ReadFile(absl::StrCat(SourceDir(), "/", file));
  ASSERT_TRUE(stands.ok()) << stands.status();
  if (*stands == now) return;
  const std::vector<std::string> old = absl::StrSplit(*stands, '\n'),
                                 made = absl::StrSplit(now, '\n');
  size_t line = 0;
  while (line < old.size() && line < made.size() && old[line] == made[line]) ++line;
  ADD_FAILURE() << file
                << ": predictions have moved; run scripts/validation_page, build again, and "
                << "read what has changed. The first line that differs is " << line + 1
                << ":\n  stands " << (line < old.size() ? old[line] : "") << "\n  now    "
                << (line < made.size() ? made[line] : "");
}

// Of every row that the repository has, so that a change says what it moved.
TEST(MeasuredTimes, AreAsFarOffAsThePageSays) {
  if (TakesTooLong()) GTEST_SKIP();
  const std::vector<std::string> folders = {SourceDir() + "/tests/data/validation_times",
                                            SourceDir() + "/tests/data/validation",
                                            SourceDir() + "/data/measured"};
  const auto report = PredictAll(folders, kDefaultCostModel);
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectStands("docs/validation_rows.md", ValidationPage(*report, "validation_rows.svg"));
  ExpectStands("tools/validation/measured_residuals.inc", ResidualsText(report->steps));
  // Another gnuplot draws the same in other words.
  if (!CheckPlot("validation_rows.svg").ok()) GTEST_SKIP() << "the plot: there is no gnuplot";
  const auto plot = DrawPlot(ValidationPlot(report->steps), PlotFormat::kSvg);
  ASSERT_TRUE(plot.ok()) << plot.status();
  const std::string stands = *ReadFile(SourceDir() + "/docs/validation_rows.svg");
  const auto version = [](const std::string& svg) {
    const size_t at = svg.find("Produced by");
    return at == std::string::npos ? "" : svg.substr(at, svg.find('<', at) - at);
  };
  if (version(*plot) == version(stands)) ExpectStands("docs/validation_rows.svg", *plot);
}

// Rates of kernels come nearer than the data sheet, as docs/kernels.md says.
TEST(MeasuredTimes, AreNearerByKernels) {
  if (TakesTooLong()) GTEST_SKIP();
  for (const std::string file :
       {"validation_times/02_korthikanti_2205.05198.json", "validation/06a_zero_bubble.json"}) {
    const ErrorFigures ideal = ErrorsOf(file, "roofline"), kernels = ErrorsOf(file, "kernels");
    EXPECT_EQ(ideal.count, 4) << file;
    EXPECT_LT(kernels.mean, 0.06) << file;
    EXPECT_NEAR(ideal.mean, 0.28, 0.04) << file;
  }
}

}  // namespace
}  // namespace measured_times_test_cc
}  // namespace orrery::tools
