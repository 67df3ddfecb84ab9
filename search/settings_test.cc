#include "search/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "search/evaluate.h"
#include "search/setting_test_util.h"

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

TEST(Settings, TheErrorOfTheMaker) {
  const auto settings = Settings::Make(Space(), [](const ParallelPlan&) -> absl::StatusOr<Setting> {
    return absl::InvalidArgumentError("no such model");
  });
  EXPECT_EQ(settings.status().message(), "no such model");
}

}  // namespace
}  // namespace settings_test_cc
}  // namespace orrery::search
