#include "support/string_pool.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace orrery {
namespace {

// Of many lengths: some are longer than a chunk, and some only just do not fit in what is left.
std::string Word(int i) {
  return absl::StrCat(i, std::string(i % 997 == 0 ? 20000 : static_cast<size_t>(i % 300), 'x'));
}

TEST(StringPool, HasTheEmptyStringAtZero) {
  StringPool pool;
  EXPECT_EQ(pool.size(), 1);
  EXPECT_EQ(pool.Intern(""), StringId(0));
  EXPECT_EQ(pool[StringId(0)], "");
}

TEST(StringPool, GivesEachDistinctStringOneId) {
  StringPool pool;
  const StringId a = pool.Intern("a"), b = pool.Intern("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.Intern("a"), a);
  EXPECT_EQ(pool.Find("b"), b);
  EXPECT_FALSE(pool.Find("c").valid());
  EXPECT_EQ(pool.size(), 3);
}

TEST(StringPool, KeepsAnyBytes) {
  StringPool pool;
  const std::string text("a\0b\n\xff", 5);
  const StringId id = pool.Intern(text);
  EXPECT_EQ(pool[id], text);
  EXPECT_NE(pool.Intern(std::string("a\0b", 3)), id);
}

TEST(StringPool, ViewsStayGoodWhileItGrows) {
  StringPool pool;
  const StringId first = pool.Intern("first");
  const absl::string_view view = pool[first];
  for (int i = 0; i < 20000; ++i) EXPECT_EQ(pool.Intern(Word(i)), StringId(i + 2));
  EXPECT_EQ(view, "first");
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(pool[StringId(i + 2)], Word(i));
    ASSERT_EQ(pool.Find(Word(i)), StringId(i + 2));
  }
}

TEST(StringPool, InternsPartsOfItsOwnText) {
  StringPool pool;
  const absl::string_view whole = pool[pool.Intern("microbatch")];
  const StringId part = pool.Intern(whole.substr(5));
  EXPECT_EQ(pool[part], "batch");
  EXPECT_EQ(whole, "microbatch");
}

TEST(StringPool, CopyHasTheSameIdsAndItsOwnText) {
  std::optional<StringPool> pool(std::in_place);
  for (int i = 0; i < 2000; ++i) pool->Intern(Word(i));
  StringPool copy(*pool), assigned;
  assigned.Intern("what it held before");
  assigned = *pool;
  pool.reset();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(copy[StringId(i + 1)], Word(i));
    ASSERT_EQ(assigned.Find(Word(i)), StringId(i + 1));
  }
  EXPECT_FALSE(assigned.Find("what it held before").valid());
  EXPECT_EQ(copy.Intern("new"), StringId(2001));
  EXPECT_EQ(assigned.size(), 2001);
}

TEST(StringPool, AssignsToItself) {
  StringPool pool;
  pool.Intern("a");
  const StringPool& same = pool;
  pool = same;
  EXPECT_EQ(pool.Find("a"), StringId(1));
}

TEST(StringPool, MoveKeepsIdsAndViews) {
  StringPool pool;
  for (int i = 0; i < 2000; ++i) pool.Intern(Word(i));
  const absl::string_view view = pool[StringId(1)];
  StringPool moved(std::move(pool)), assigned;
  EXPECT_EQ(moved.Find(Word(1999)), StringId(2000));
  assigned = std::move(moved);
  EXPECT_EQ(assigned.Find(Word(0)), StringId(1));
  EXPECT_EQ(view, Word(0));
  EXPECT_EQ(assigned.Intern("new"), StringId(2001));
}

}  // namespace
}  // namespace orrery
