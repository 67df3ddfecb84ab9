#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "transforms/pass/pass.h"

namespace orrery::transforms {
namespace pass_options_test_cc {
namespace {

std::string Text(const PassOptions& options) {
  const absl::StatusOr<int64_t> number = PositiveOption(options, "dp");
  return number.ok() ? absl::StrCat(*number) : std::string(number.status().message());
}

TEST(PositiveOption, IsAWholeNumberOfAtLeastOne) {
  EXPECT_EQ(Text({{"dp", "1"}}), "1");
  EXPECT_EQ(Text({{"dp", "64"}, {"hp", "2"}}), "64");
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Text({{"dp", absl::StrCat(most)}}), absl::StrCat(most));
}

TEST(PositiveOption, SaysWhatItFoundAndWanted) {
  const auto wanted = [](absl::string_view found) {
    return absl::StrCat("option dp is '", found, "'; wanted a whole number of at least 1");
  };
  for (const char* text : {"0", "-1", "", "a", "1.5", "2x", "9223372036854775808", "1e3"}) {
    EXPECT_EQ(Text({{"dp", text}}), wanted(text));
  }
  EXPECT_EQ(Text({}), wanted(""));
  EXPECT_EQ(Text({{"hp", "2"}, {"DP", "2"}}), wanted(""));
  EXPECT_TRUE(absl::IsInvalidArgument(PositiveOption({}, "dp").status()));
}

TEST(PositiveOption, NamesTheOption) {
  EXPECT_EQ(PositiveOption({{"hp", "none"}}, "hp").status().message(),
            "option hp is 'none'; wanted a whole number of at least 1");
}

TEST(PassInfo, RunsNothingUntilItSaysWhat) {
  const PassInfo info;
  EXPECT_EQ(info.run, nullptr);
  EXPECT_FALSE(info.idempotent);
  EXPECT_EQ(info.options, "");
}

}  // namespace
}  // namespace pass_options_test_cc
}  // namespace orrery::transforms
