#include "support/name_list.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace orrery {
namespace name_list_test_cc {
namespace {

TEST(NameListTest, KeepsEveryNameWhereItIsWhileItGrows) {
  NameList names;
  names.push_back("first");
  const absl::string_view first = names[0];
  for (int i = 0; i < 20000; ++i) names.push_back(absl::StrCat("name", i));
  EXPECT_EQ(first.data(), names[0].data());
  EXPECT_EQ(names[0], "first");
  EXPECT_EQ(names[20000], "name19999");
}

TEST(NameListTest, AnOldNameOutlivesItsReplacement) {
  NameList names;
  names.push_back("old");
  const absl::string_view old = names[0];
  names.Set(0, "new");
  EXPECT_EQ(names[0], "new");
  EXPECT_EQ(old, "old");
}

TEST(NameListTest, ACopyOutlivesItsOriginal) {
  NameList copy;
  {
    NameList names;
    names.push_back("kept");
    names.push_back("");
    copy = names;
  }
  ASSERT_EQ(copy.size(), 2u);
  EXPECT_EQ(copy[0], "kept");
  EXPECT_EQ(copy[1], "");
}

TEST(NameListTest, ACopyAndItsOriginalGrowApart) {
  NameList names;
  names.push_back("both");
  NameList copy = names;
  names.push_back("original");
  copy.push_back("copy");
  copy.Set(0, "changed");
  EXPECT_EQ(names[0], "both");
  EXPECT_EQ(names[1], "original");
  EXPECT_EQ(copy[0], "changed");
  EXPECT_EQ(copy[1], "copy");
}

TEST(NameListTest, KeptTextOutlivesTheListsThatItCameThrough) {
  NameList last;
  {
    NameList first;
    first.push_back("of the first");
    NameList second = first;
    second.push_back("of the second");
    last.KeepTextOf(second);
    for (size_t i = 0; i < second.size(); ++i) {
      last.push_back("");
      last.SetKept(i, second[i]);
    }
  }
  EXPECT_EQ(last[0], "of the first");
  EXPECT_EQ(last[1], "of the second");
}

TEST(NameListTest, MovingKeepsTheText) {
  NameList names;
  names.push_back("x");
  const NameList moved = std::move(names);
  EXPECT_EQ(moved[0], "x");
}

TEST(TextArenaTest, TextLongerThanAChunkIsStoredWhole) {
  TextArena arena;
  const std::string text(100000, 'a');
  EXPECT_EQ(arena.Store(text), text);
}

}  // namespace
}  // namespace name_list_test_cc
}  // namespace orrery
