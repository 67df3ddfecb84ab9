#include "transforms/plan/schedule_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/hash/hash_testing.h"

namespace orrery::transforms {
namespace schedule_choice_test_cc {
namespace {

TEST(ScheduleChoice, Is1f1bUnlessItSaysOtherwise) {
  EXPECT_EQ(ScheduleChoice().name(), "1f1b");
  EXPECT_EQ(ScheduleChoice(), ScheduleChoice("1f1b"));
  EXPECT_EQ(ScheduleChoice()->name, "1f1b");
}

TEST(ScheduleChoice, FindsEachByItsName) {
  std::vector<ScheduleChoice> choices;
  for (const PipelineSchedule* schedule : AllSchedules()) {
    const auto choice = ScheduleChoice::Parse(schedule->name);
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(&**choice, schedule);
    EXPECT_EQ(choice->name(), schedule->name);
    choices.push_back(*choice);
  }
  EXPECT_GT(choices.size(), 5u);
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(choices));
  for (size_t i = 1; i < choices.size(); ++i) EXPECT_NE(choices[i], choices[i - 1]);
}

TEST(ScheduleChoice, ListsThoseThatThereAre) {
  const absl::Status none = ScheduleChoice::Parse("2f2b").status();
  EXPECT_TRUE(absl::IsInvalidArgument(none));
  EXPECT_THAT(std::string(none.message()), testing::HasSubstr("2f2b"));
  for (const PipelineSchedule* schedule : AllSchedules()) {
    EXPECT_THAT(std::string(none.message()), testing::HasSubstr(std::string(schedule->name)));
  }
  EXPECT_FALSE(ScheduleChoice::Parse("").ok());
  EXPECT_FALSE(ScheduleChoice::Parse("1F1B").ok());
}

TEST(ScheduleChoiceDeathTest, ALiteralIsRight) { EXPECT_DEATH(ScheduleChoice("2f2b"), "2f2b"); }

}  // namespace
}  // namespace schedule_choice_test_cc
}  // namespace orrery::transforms
