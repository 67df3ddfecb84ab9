#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/file.h"
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

// The page's table has what is found here; rates of kernels come nearer than the data sheet.
TEST(MeasuredTimes, AreNearerByKernels) {
  const std::string page = *ReadFile(ORRERY_SOURCE_DIR "/docs/kernels.md");
  for (const std::string file :
       {"validation_times/02_korthikanti_2205.05198.json", "validation/06a_zero_bubble.json"}) {
    const ErrorFigures ideal = ErrorsOf(file, "roofline"), kernels = ErrorsOf(file, "kernels");
    EXPECT_EQ(ideal.count, 4) << file;
    EXPECT_LT(kernels.mean, 0.06) << file;
    EXPECT_THAT(page, testing::HasSubstr(absl::StrFormat("| %d | %.1f %% | %.1f %% |", ideal.count,
                                                         100 * ideal.mean, 100 * kernels.mean)))
        << file;
  }
}

}  // namespace
}  // namespace measured_times_test_cc
}  // namespace orrery::tools
