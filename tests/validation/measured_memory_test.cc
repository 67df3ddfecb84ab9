#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tools/validation/predict_step.h"
#include "tools/validation/rows/measured_steps.h"
#include "tools/validation/step_errors.h"

// Predicted peaks beside measured ones: docs/validation_memory.md. Rows marked for calibration.

namespace orrery::tools {
namespace measured_memory_test_cc {
namespace {

const std::vector<PredictedStep>& Predicted() {
  static const auto& kPredicted = *new std::vector<PredictedStep>([] {
    const std::string folder = absl::StrCat(SourceDir(), "/tests/data/validation");
    std::vector<PredictedStep> predicted;
    const std::vector<MeasuredStep> steps = ReadMeasuredSteps(folder).value();
    for (const MeasuredStep& step : steps) predicted.push_back(Predict(step, ""));
    return predicted;
  }());
  return kPredicted;
}

double ErrorOf(const PredictedStep& row) { return row.bytes / row.step.bytes - 1; }

// The project's goal is 10 % on average; these bounds keep what is reached.
void ExpectWithinBounds() {
  const std::map<std::string, double> bounds = {{"05_torchtitan", 0.055},
                                                {"06a_zero_bubble", 0.025},
                                                {"06c_bloom_topology_sweep_a100", 0.071}};
  std::map<std::string, std::vector<Pair>> pairs;
  for (const PredictedStep& row : Predicted()) {
    if (row.step.bytes > 0 && row.bytes > 0) {
      pairs[row.step.source].push_back({row.step.bytes, row.bytes});
    }
  }
  ASSERT_EQ(pairs.size(), bounds.size());
  for (const auto& [source, bound] : bounds) {
    EXPECT_LT(FiguresOf(pairs[source]).mean, bound) << source;
  }
  EXPECT_GT(FiguresOf(pairs["06c_bloom_topology_sweep_a100"]).spearman, 0.85);
}

// Those beyond 15 % are explained on the page, and no others are beyond.
void ExpectFarOffWhereThePageSaysSo() {
  std::set<std::string> far;
  for (const PredictedStep& row : Predicted()) {
    if (row.step.bytes > 0 && row.bytes > 0 && std::abs(ErrorOf(row)) > 0.15) {
      far.insert(row.step.id);
    }
  }
  EXPECT_THAT(far, testing::ElementsAre("bloom-sweep-039-02-21", "bloom-sweep-084-02-25"));
}

// Rows that contradict themselves, or say neither.
void ExpectSkipped() {
  std::map<std::string, int> skipped;
  for (const PredictedStep& row : Predicted()) {
    if (!row.skipped.empty()) ++skipped[row.skipped];
  }
  EXPECT_THAT(skipped,
              testing::ElementsAre(std::pair("degrees do not multiply up to the devices", 1),
                                   std::pair("neither a time nor memory was measured", 3)));
}

// One test, since all rows are played for it.
TEST(MeasuredMemory, IsPredictedWithinTenPercent) {
  ExpectWithinBounds();
  ExpectFarOffWhereThePageSaysSo();
  ExpectSkipped();
}

// A step whose state does not divide takes what its shards do: 2 bytes of parameters, 2 of
// gradients and a part of 12 of state and of 6 that DeepSpeed's update has beside them.
TEST(MeasuredMemory, OfUnevenShardsIsTheirs) {
  const auto bytes = [](int64_t dp) {
    MeasuredStep row;
    row.id = absl::StrCat("dp=", dp);
    row.source = "bloom";
    row.model = {.layers = 4, .hidden = 512, .heads = 4, .vocab = 1024, .seq = 128};
    row.device = "A100";
    row.devices = row.dp = dp;
    row.zero = 1;
    row.global_batch = 2 * dp;
    row.micro_batch = 1;
    row.precision = "fp16";
    row.bytes = 1;
    const PredictedStep predicted = Predict(row, "");
    EXPECT_EQ(predicted.skipped, "") << row.id;
    return predicted.bytes;
  };
  constexpr double kParameters = 13'200'384;
  EXPECT_NEAR(bytes(4) / kParameters, 4 + 18.0 / 4, 0.001);
  EXPECT_NEAR(bytes(6) / kParameters, 4 + 18.0 / 6, 0.02);  // its largest shards
}

}  // namespace
}  // namespace measured_memory_test_cc
}  // namespace orrery::tools
