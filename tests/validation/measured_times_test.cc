#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "support/file.h"
#include "support/sanitized_test_util.h"
#include "tools/validation/measured_steps.h"
#include "tools/validation/step_errors.h"
#include "tools/validation/step_setup.h"

// Predicted step times beside measured ones: docs/kernels.md.

namespace orrery::tools {
namespace measured_times_test_cc {
namespace {

ErrorFigures ErrorsOf(const std::string& file, const std::string& cost_model) {
  const std::vector<MeasuredStep> steps =
      ReadMeasuredSteps(absl::StrCat(ORRERY_SOURCE_DIR, "/tests/data/", file)).value();
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

// The row of the page's table for a file; kernels: with what is found for them, too.
testing::Matcher<std::string> HasRow(const std::string& file, const ErrorFigures& ideal,
                                     const ErrorFigures& kernels) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return testing::HasSubstr(absl::StrFormat("| `%s` | %d | %.1f %% | %.1f %% |", stem, ideal.count,
                                            100 * ideal.mean, 100 * kernels.mean));
}

// The line of the table that is about a file; empty: there is none.
std::string RowOf(const std::string& page, const std::string& stem) {
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, absl::StrCat("| `", stem, "` |"))) return std::string(line);
  }
  return "";
}

// Of every set that the repository has, so that a change says what it moved.
TEST(MeasuredTimes, AreAsFarOffAsThePageSays) {
  if (TakesTooLong()) GTEST_SKIP();
  const std::string page = *ReadFile(ORRERY_SOURCE_DIR "/docs/kernels.md");
  for (const std::string folder : {"validation_times", "validation"}) {
    for (const std::string& path :
         StepFiles(absl::StrCat(ORRERY_SOURCE_DIR, "/tests/data/", folder))) {
      const std::string stem = std::filesystem::path(path).stem().string();
      const ErrorFigures kernels = ErrorsOf(absl::StrCat(folder, "/", stem, ".json"), "kernels");
      const std::string row = RowOf(page, stem);
      EXPECT_THAT(row, testing::HasSubstr(absl::StrFormat("| `%s` | %d | ", stem, kernels.count)));
      EXPECT_THAT(row, testing::EndsWith(absl::StrFormat("| %.1f %% |", 100 * kernels.mean)));
    }
  }
}

// Rates of kernels come nearer than the data sheet.
TEST(MeasuredTimes, AreNearerByKernels) {
  if (TakesTooLong()) GTEST_SKIP();
  const std::string page = *ReadFile(ORRERY_SOURCE_DIR "/docs/kernels.md");
  for (const std::string file :
       {"validation_times/02_korthikanti_2205.05198.json", "validation/06a_zero_bubble.json"}) {
    const ErrorFigures ideal = ErrorsOf(file, "roofline"), kernels = ErrorsOf(file, "kernels");
    EXPECT_EQ(ideal.count, 4) << file;
    EXPECT_LT(kernels.mean, 0.06) << file;
    EXPECT_THAT(page, HasRow(file, ideal, kernels));
  }
}

}  // namespace
}  // namespace measured_times_test_cc
}  // namespace orrery::tools
