#include "search/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace settings_test_cc {
namespace {

TEST(Settings, OneWhereNothingRemakesTheStep) {
  Space space;
  ASSERT_TRUE(space.List(*transforms::FindAxis("dp"), "1,2,4").ok());
  int made = 0;
  const auto settings = Settings::Make(space, [&](const ParallelPlan&) -> absl::StatusOr<Setting> {
    ++made;
    return MlpSetting();
  });
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(settings->size(), 1u);
  EXPECT_EQ(&settings->Of(space.Values(*transforms::FindAxis("dp")).back()), &settings->front());
  EXPECT_EQ(&settings->AsFunction()(space.base()), &settings->front());
}

TEST(Settings, OneForEachTrainingStep) {
  Space space;
  ASSERT_TRUE(space.List(*transforms::FindAxis("dtype"), "fp32,bf16").ok());
  ASSERT_TRUE(space.List(*transforms::FindAxis("dp"), "1,2").ok());
  const auto settings =
      Settings::Make(space, [](const ParallelPlan& plan) -> absl::StatusOr<Setting> {
        Setting setting = MlpSetting();
        setting.model_name = transforms::StepKey(plan);
        return setting;
      });
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->size(), 2u);
  EXPECT_EQ(settings->front().model_name, "--dtype fp32");
  const ParallelPlan plan = {.dp = 2, .dtype = transforms::StepDType::kBF16};
  EXPECT_EQ(settings->Of(plan).model_name, "--dtype bf16");
  EXPECT_TRUE(Play(settings->Of(plan), plan).ok());
}

// A step of another type than the plan's would be a wrong answer without a word.
TEST(Settings, APlanOfAnotherStepIsRefused) {
  const auto run = Play(MlpSetting(), {.dp = 2, .dtype = transforms::StepDType::kBF16});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(run.status().message()),
              testing::HasSubstr("--dtype bf16: the setting's step is of --dtype model; wanted"));
}

TEST(Settings, TheErrorOfTheMaker) {
  const auto settings = Settings::Make(Space(), [](const ParallelPlan&) -> absl::StatusOr<Setting> {
    return absl::InvalidArgumentError("no such model");
  });
  EXPECT_EQ(settings.status().message(), "no such model");
}

}  // namespace
}  // namespace settings_test_cc
}  // namespace orrery::search
