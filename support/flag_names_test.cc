#include "support/flag_names.h"

#include <gtest/gtest.h>

namespace orrery {
namespace flag_names_test_cc {
namespace {

std::string Spelled(absl::string_view text) {
  return SpellFlags(text, [](absl::string_view name) { return name == "pp" || name == "chunks"; });
}

TEST(SpellFlags, WritesNamesThatAreFlags) {
  EXPECT_EQ(Spelled("try a smaller `pp` or fewer `chunks`"),
            "try a smaller --pp or fewer --chunks");
  EXPECT_EQ(Spelled("`chunks` 4"), "--chunks 4");
  EXPECT_EQ(Spelled("`pp``chunks`"), "--pp--chunks");
}

TEST(SpellFlags, LeavesWhatIsNone) {
  for (const char* text : {"", "pp", "`", "``", "a text says `buffer`", "`pp", "pp`", "`p p`"}) {
    EXPECT_EQ(Spelled(text), text);
  }
}

TEST(SpellFlags, AsksForNoEmptyName) {
  const auto is_flag = [](absl::string_view name) {
    EXPECT_FALSE(name.empty());
    return true;
  };
  EXPECT_EQ(SpellFlags("```pp`", is_flag), "``--pp");
}

// What stands between the names of two others is not taken for one.
TEST(SpellFlags, FindsAFlagBehindWhatIsNone) {
  EXPECT_EQ(Spelled("`buffer` or `pp`"), "`buffer` or --pp");
  EXPECT_EQ(Spelled("a ` b `pp` c"), "a ` b --pp c");
  EXPECT_EQ(Spelled("`x`pp`y`"), "`x--ppy`");
}

}  // namespace
}  // namespace flag_names_test_cc
}  // namespace orrery
