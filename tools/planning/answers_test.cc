#include "tools/planning/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/settings/setting_test_util.h"

namespace orrery::tools {
namespace answers_test_cc {
namespace {

using search::Goal;
using testing::HasSubstr;

Answer Found(int64_t devices, int64_t milliseconds, int64_t gib, size_t group = 0) {
  Answer answer;
  answer.title = absl::StrCat("on ", devices);
  answer.question.group = group;
  answer.question.is_of_table = true;
  answer.question.model.model = "llama";
  answer.question.model.batch_size = 64;
  answer.devices = devices;
  answer.best.plan.dp = devices;
  answer.best.ran = answer.best.fits = true;
  answer.best.step_time = Duration(milliseconds * 1'000'000'000);
  answer.best.peak_memory = Bytes(gib << 30);
  answer.best.figures.throughput_samples_per_s = 64e3 / static_cast<double>(milliseconds);
  answer.best.figures.mfu = 0.4;
  return answer;
}

// Twice the devices for 1.6 times the samples.
TEST(ScalingText, HoldsSizesAgainstTheSmallest) {
  EXPECT_EQ(ScalingText({Found(8, 160, 4), Found(16, 100, 2)}),
            "\nwhat more devices buy, llama, batch 64:\n"
            " devices         step  samples/s   speedup  efficiency     MFU     memory\n"
            "       8       160 ms        400     1.00x      100.0%   40.0%   4.00 GiB  --dp 8 "
            "--hp 1 --pp 1 --micro-batches 1 --schedule 1f1b\n"
            "      16       100 ms        640     1.60x       80.0%   40.0%   2.00 GiB  --dp 16 "
            "--hp 1 --pp 1 --micro-batches 1 --schedule 1f1b\n");
  // The other size of a group has nothing that fits.
  EXPECT_THAT(ScalingText({Found(8, 160, 4)}), testing::HasSubstr("       8       160 ms"));
  Answer alone = Found(8, 160, 4);
  alone.question.is_of_table = false;
  EXPECT_EQ(ScalingText({alone}), "");
}

TEST(WinnerOf, IsTheBestByTheGoal) {
  std::vector<Answer> answers = {Found(8, 160, 4), Found(16, 100, 3), Found(32, 90, 5)};
  answers[2].best.figures.throughput_samples_per_s = 1;  // of a smaller batch
  for (size_t i = 0; i < answers.size(); ++i) answers[i].sample_price = static_cast<double>(i + 1);
  EXPECT_EQ(WinnerOf(answers, Goal::kThroughput).devices, 16);
  EXPECT_EQ(WinnerOf(answers, Goal::kTime).devices, 32);
  EXPECT_EQ(WinnerOf(answers, Goal::kMemory).devices, 16);
  EXPECT_EQ(WinnerOf(answers, Goal::kPrice).devices, 8);
  // The run of the last is the longest and the cheapest.
  answers[0].run = {.steps = 1, .seconds = 5, .price = 9};
  answers[1].run = {.steps = 1, .seconds = 4, .price = 8};
  answers[2].run = {.steps = 2, .seconds = 6, .price = 7};
  EXPECT_EQ(WinnerOf(answers, Goal::kTime).devices, 16);
  EXPECT_EQ(WinnerOf(answers, Goal::kPrice).devices, 32);
}

TEST(MisfitLine, SaysHowMuchTheClosestLacks) {
  search::Setting setting = search::MlpSetting();
  setting.lowering.memory_limit = Bytes(1 << 20);
  setting.lowering.device_memory = false;
  std::vector<search::Result> results(2);
  results[0].plan = {.dp = 8};
  results[0].peak_memory = Bytes(5 << 20);
  results[1].plan = {.hp = 8};
  results[1].peak_memory = Bytes(3 << 20);
  for (search::Result& result : results) {
    result.infeasible = {.reason = InfeasibleReason::kMemory, .detail = ""};
  }
  const search::SettingOf setting_of = [&](const auto&) -> const search::Setting& {
    return setting;
  };
  EXPECT_EQ(MisfitLine(setting_of, results),
            "needs 3.00 MiB a rank at least, 2.00 MiB too much: --dp 1 --hp 8 --pp 1 "
            "--micro-batches 1 --schedule 1f1b");
  results.emplace_back().left = true;
  EXPECT_THAT(MisfitLine(setting_of, results),
              testing::EndsWith("; not sure: 1 candidates are left, try more --budget"));
  results.resize(1);
  results[0].infeasible->reason = InfeasibleReason::kDivisibility;
  EXPECT_EQ(MisfitLine(setting_of, results), "1 candidates, none of which can be played");
}

TEST(QuestionsOf, AskEachSizeOfEachCluster) {
  QuestionLists lists;
  lists.model.model = "mlp:layers=4,dim=64";
  lists.model.cluster = "dgx-h100:2,uniform:8@200Gbps";
  lists.batch_sizes = {16, 32};
  const auto questions = QuestionsOf(lists, {.price = "2,1", .gpus = "8,16"});
  ASSERT_TRUE(questions.ok()) << questions.status();
  ASSERT_EQ(questions->size(), 8u);
  EXPECT_EQ((*questions)[0].model.cluster, "dgx-h100:1");
  EXPECT_EQ((*questions)[1].model.cluster, "dgx-h100:2");
  EXPECT_EQ((*questions)[1].group, 0u);
  EXPECT_EQ((*questions)[2].model.batch_size, 32);
  EXPECT_EQ((*questions)[2].group, 1u);
  EXPECT_EQ((*questions)[7].model.cluster, "uniform:16@200Gbps");
  EXPECT_EQ((*questions)[7].device_hour, 1);
  EXPECT_EQ(QuestionsOf(lists, {})->size(), 4u);
  EXPECT_EQ(QuestionsOf(lists, {.fits_on = true})->size(), 2u * 5 + 2u * 4);
  EXPECT_THAT(std::string(QuestionsOf(lists, {.gpus = "12"}).status().message()),
              HasSubstr("wanted a multiple of 8"));
}

}  // namespace
}  // namespace answers_test_cc
}  // namespace orrery::tools
