#include "transforms/plan/axis_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace orrery::transforms {
namespace axis_fields_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Trouble(const absl::Status& status) {
  if (status.ok()) return "none";
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

constexpr auto kParseHp = ParseNumber<&ParallelPlan::hp, 1>;
constexpr auto kParseChunks = ParseNumber<&ParallelPlan::chunks, 0>;
constexpr auto kParseAny = ParseNumber<&ParallelPlan::zero>;
constexpr auto kParseBlocking = ParseSwitch<&ParallelPlan::blocking>;

TEST(CopyField, LeavesTheOthers) {
  const ParallelPlan from = {.dp = 2, .hp = 4, .blocking = true};
  ParallelPlan to = {.dp = 8, .pp = 16};
  CopyField<&ParallelPlan::hp>(from, to);
  EXPECT_EQ(to, (ParallelPlan{.dp = 8, .hp = 4, .pp = 16}));
}

TEST(ParseNumber, TakesNumbersFromTheLeastOn) {
  ParallelPlan plan;
  EXPECT_TRUE(kParseHp("1", plan).ok());
  EXPECT_EQ(plan.hp, 1);
  EXPECT_TRUE(kParseHp("512", plan).ok());
  EXPECT_EQ(plan, (ParallelPlan{.hp = 512}));
  EXPECT_TRUE(kParseChunks("0", plan).ok());
  EXPECT_TRUE(kParseAny("-7", plan).ok());
  EXPECT_EQ(plan.zero, -7);
}

TEST(ParseNumber, SaysWhatItWants) {
  ParallelPlan plan = {.hp = 3, .zero = 1};
  EXPECT_EQ(Trouble(kParseHp("0", plan)), "'0': wanted a number of at least 1");
  EXPECT_EQ(Trouble(kParseHp("two", plan)), "'two': wanted a number of at least 1");
  EXPECT_EQ(Trouble(kParseHp("", plan)), "'': wanted a number of at least 1");
  EXPECT_EQ(Trouble(kParseHp("2.5", plan)), "'2.5': wanted a number of at least 1");
  EXPECT_EQ(Trouble(kParseChunks("-1", plan)), "'-1': wanted a number of at least 0");
  EXPECT_EQ(Trouble(kParseAny("x", plan)), "'x': wanted a number");
  EXPECT_EQ(Trouble(kParseAny("9223372036854775808", plan)),
            "'9223372036854775808': wanted a number");
  EXPECT_EQ(plan, (ParallelPlan{.hp = 3, .zero = 1}));  // as it was
}

TEST(PrintNumber, IsWhatParseReads) {
  for (const int64_t number : {int64_t{1}, int64_t{7}, std::numeric_limits<int64_t>::max()}) {
    const ParallelPlan plan = {.hp = number};
    ParallelPlan read;
    EXPECT_TRUE(kParseHp(PrintNumber<&ParallelPlan::hp>(plan), read).ok());
    EXPECT_EQ(read, plan);
    EXPECT_EQ(std::get<int64_t>(NumberCell<&ParallelPlan::hp>(plan)), number);
  }
}

TEST(Switch, IsOneOrZero) {
  ParallelPlan plan;
  EXPECT_EQ(PrintSwitch<&ParallelPlan::blocking>(plan), "0");
  EXPECT_EQ(std::get<int64_t>(SwitchCell<&ParallelPlan::blocking>(plan)), 0);
  EXPECT_TRUE(kParseBlocking("1", plan).ok());
  EXPECT_TRUE(plan.blocking);
  EXPECT_EQ(PrintSwitch<&ParallelPlan::blocking>(plan), "1");
  EXPECT_EQ(std::get<int64_t>(SwitchCell<&ParallelPlan::blocking>(plan)), 1);
  EXPECT_EQ(Trouble(kParseBlocking("true", plan)), "'true': wanted 0 or 1");
  EXPECT_EQ(Trouble(kParseBlocking("", plan)), "'': wanted 0 or 1");
  EXPECT_EQ(Trouble(kParseBlocking("2", plan)), "'2': wanted 0 or 1");
  EXPECT_TRUE(plan.blocking);
  EXPECT_TRUE(kParseBlocking("0", plan).ok());
  EXPECT_FALSE(plan.blocking);
}

TEST(ParseField, PassesTheErrorOn) {
  constexpr auto kParse = ParseField<&ParallelPlan::order, MeshOrder::Parse>;
  ParallelPlan plan;
  EXPECT_TRUE(kParse("pp,hp,dp", plan).ok());
  EXPECT_EQ(plan.order, MeshOrder("pp,hp,dp"));
  EXPECT_EQ(kParse("pp", plan), MeshOrder::Parse("pp").status());
  EXPECT_EQ(plan.order, MeshOrder("pp,hp,dp"));
}

TEST(WithEach, KeepsOrderAndRest) {
  const ParallelPlan plan = {.dp = 3, .hp = 9};
  EXPECT_THAT(WithEach<&ParallelPlan::hp>(plan, std::vector<int64_t>{4, 1, 4}),
              ElementsAre(ParallelPlan{.dp = 3, .hp = 4}, ParallelPlan{.dp = 3, .hp = 1},
                          ParallelPlan{.dp = 3, .hp = 4}));
  EXPECT_THAT(WithEach<&ParallelPlan::hp>(plan, std::vector<int64_t>{}), IsEmpty());
}

TEST(WithGiven, TakesTheOneField) {
  const ParallelPlan plan = {.dp = 3};
  const std::vector<ParallelPlan> given = {{.dp = 5, .hp = 2}, {.hp = 8, .pp = 7}};
  EXPECT_THAT(WithGiven<&ParallelPlan::hp>(plan, given),
              ElementsAre(ParallelPlan{.dp = 3, .hp = 2}, ParallelPlan{.dp = 3, .hp = 8}));
  EXPECT_THAT(WithGiven<&ParallelPlan::hp>(plan, {}), IsEmpty());
}

}  // namespace
}  // namespace axis_fields_test_cc
}  // namespace orrery::transforms
