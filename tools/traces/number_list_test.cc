#include "tools/traces/number_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::tools {
namespace number_list_test_cc {
namespace {

using testing::ElementsAre;

TEST(ParseNumberList, ReadsNumbersAndRanges) {
  EXPECT_THAT(*ParseNumberList("3"), ElementsAre(3));
  EXPECT_THAT(*ParseNumberList("0,8-10,2"), ElementsAre(0, 8, 9, 10, 2));
  EXPECT_THAT(*ParseNumberList("5-5,4-6"), ElementsAre(5, 4, 6));
}

TEST(ParseNumberList, SaysWhatItWants) {
  for (const char* text :
       {"", ",", "1,", "a", "-1", "3-", "4-3", "1-2-3", "+1", "1.5", "99999999999", "0x3", " 1"}) {
    const auto numbers = ParseNumberList(text);
    ASSERT_FALSE(numbers.ok()) << text;
    EXPECT_THAT(numbers.status().message(), testing::HasSubstr("as in 0,8-15")) << text;
  }
}

TEST(ParseNumberList, EndsAtAMillion) {
  EXPECT_EQ(ParseNumberList("0-999999")->size(), 1'000'000u);
  EXPECT_FALSE(ParseNumberList("0-1000000").ok());
  EXPECT_FALSE(ParseNumberList("0-2147483647").ok());
  EXPECT_FALSE(ParseNumberList("0-999999,1000000-1999999").ok());
}

}  // namespace
}  // namespace number_list_test_cc
}  // namespace orrery::tools
