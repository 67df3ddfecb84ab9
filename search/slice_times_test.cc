#include "search/slice_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "ir/models/model_test_util.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/training/training_step.h"

namespace orrery::search {
namespace slice_times_test_cc {
namespace {

constexpr int64_t kUnit = 64, kUnits = 16;  // 1024 positions

Setting GptSetting() {
  Setting setting = MlpSetting("dgx-a100:1");
  setting.step = ir::BuildModel(
      "gpt", "layers=4,hidden=128,heads=4,seq=1024,vocab=64,flash=1,tied_embeddings=0", 2);
  EXPECT_TRUE(transforms::MakeTrainingStep(setting.step, {.optimizer = "sgd"}).ok());
  setting.batch_size = 2;
  return setting;
}

// Of the model on so many stages, in slices of whole units.
SliceTimes Measured(int64_t stages, int64_t count = 4, int64_t units = kUnits) {
  const Setting setting = GptSetting();
  ParallelPlan plan =
      transforms::ByFlops({.pp = stages, .microbatches = count, .schedule = "terapipe"});
  plan.sharding = transforms::ShardingMethod::kMegatron;
  const transforms::PlanContext context;
  SliceTimes times(units, count);
  const absl::Status status = times.Measure(
      {.setting = setting, .schedule = *plan.schedule, .plan = plan, .context = context},
      kUnits * kUnit / units);
  EXPECT_TRUE(status.ok()) << status;
  return times;
}

TEST(SliceTimes, GrowWithLengthAndWithWhatCameBefore) {
  const SliceTimes times = Measured(2);
  for (int64_t length = 1; length <= kUnits; ++length) {
    EXPECT_GT(times.OfSlowest(0, length), 0);
    // Keys of the whole sequence at most: the last place is the dearest.
    EXPECT_GE(times.OfSlowest(kUnits - length, length), times.OfSlowest(0, length)) << length;
  }
  EXPECT_GT(times.OfSlowest(0, kUnits), times.OfSlowest(0, kUnits / 2));
  EXPECT_GT(times.OfSlowest(0, kUnits / 2), times.OfSlowest(0, 1));
}

// Between the first position and the last one it lies on a line.
TEST(SliceTimes, LieOnALineBetweenPlaces) {
  const SliceTimes times = Measured(1);
  for (const int64_t length : {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{6}}) {
    const double first = times.OfSlowest(0, length),
                 last = times.OfSlowest(kUnits - length, length);
    for (int64_t begin = 0; begin <= kUnits - length; ++begin) {
      const double share = static_cast<double>(begin) / static_cast<double>(kUnits - length);
      EXPECT_NEAR(times.OfSlowest(begin, length), first + share * (last - first), 1e-9 * last);
    }
  }
}

// And between the lengths that were measured: 4 and 6, and not 5.
TEST(SliceTimes, LieOnALineBetweenLengths) {
  const SliceTimes times = Measured(1);
  EXPECT_NEAR(times.OfSlowest(0, 5), (times.OfSlowest(0, 4) + times.OfSlowest(0, 6)) / 2,
              1e-9 * times.OfSlowest(0, 6));
}

TEST(SliceTimes, OneStageLeavesNothingToFill) {
  EXPECT_NEAR(Measured(1).Fill(), 0, 1e-12);
  for (const int64_t stages : {2, 4}) {
    const double fill = Measured(stages).Fill();
    EXPECT_GT(fill, 0) << stages;
    EXPECT_LE(fill, static_cast<double>(stages - 1) + 1e-9) << stages;
  }
}

// One slice goes through all stages and back: what they take together.
TEST(OfPipeline, OfOneSliceIsTheSumOfTheStages) {
  for (const int64_t stages : {1, 2, 4}) {
    const SliceTimes times = Measured(stages);
    const double sum = (1 + times.Fill()) * times.OfSlowest(0, kUnits);
    EXPECT_NEAR(times.OfPipeline({static_cast<double>(kUnits)}), sum, 1e-9 * sum) << stages;
  }
}

// One stage runs one slice after the other.
TEST(OfPipeline, OfOneStageIsTheSumOfTheSlices) {
  const SliceTimes times = Measured(1);
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{16}, {8, 8}, {4, 4, 4, 4}, {6, 5, 3, 2}, {1, 15}}) {
    double sum = 0;
    int64_t begin = 0;
    for (const int64_t length : lengths) {
      sum += times.OfSlowest(begin, length);
      begin += length;
    }
    const std::vector<double> parts(lengths.begin(), lengths.end());
    EXPECT_NEAR(times.OfPipeline(parts), sum, 1e-9 * sum) << lengths.size();
  }
}

// Never less than the slices of one stage in a row on stages that are alike but for what is before
// and after the layers, and never more than all of it in a row.
TEST(OfPipeline, OverlapsStages) {
  const SliceTimes two = Measured(2);
  const double sum = (1 + two.Fill()) * two.OfSlowest(0, kUnits);
  const double halves = two.OfPipeline({8, 8});
  EXPECT_GT(halves, std::max(two.OfSlowest(0, 8), two.OfSlowest(8, 8)));
  EXPECT_LE(two.OfPipeline({16}), sum * (1 + 1e-9));
  // A slice of nearly nothing costs, and helps nobody.
  EXPECT_GE(two.OfPipeline({15, 1}),
            two.OfSlowest(0, 15) + two.OfSlowest(15, 1) - 1e-9 * two.OfSlowest(0, 15));
}

// Lengths that divide the sequence are found out, not guessed.
TEST(SliceTimes, OfEqualSlicesAreMeasured) {
  const SliceTimes times = Measured(1, 2);  // 8 units each, which is no other sample
  const SliceTimes guessed = Measured(1, 4);
  // Of units twice as long, 4 are a sample anyway.
  const double half = Measured(1, 2, kUnits / 2).OfSlowest(0, 4);
  EXPECT_NEAR(times.OfSlowest(0, 8), half, 1e-9 * half);
  EXPECT_GT(std::abs(guessed.OfSlowest(0, 8) / half - 1), 1e-6);
  for (const int64_t length : {int64_t{1}, int64_t{4}, int64_t{6}, kUnits}) {
    EXPECT_NEAR(times.OfSlowest(0, length), guessed.OfSlowest(0, length),
                1e-9 * times.OfSlowest(0, kUnits))
        << length;
  }
}

}  // namespace
}  // namespace slice_times_test_cc
}  // namespace orrery::search
