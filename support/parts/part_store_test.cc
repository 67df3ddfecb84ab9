#include "support/parts/part_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "support/threads.h"

namespace orrery {
namespace part_store_test_cc {
namespace {

// A part that takes far more than its key.
struct Word {
  std::string text;
  Bytes held() const { return Bytes(10'000); }
  uint64_t number() const { return text.size(); }
};

std::string Ask(PartStore& store, const std::string& key) {
  return store.FindOrMake<Word>("word", key, [&] { return Word{key}; })->text;
}

// That are kept.
int64_t Words(const PartStore& store) { return store.held().count() / 10'000; }

TEST(PartStore, MakesAPartOnce) {
  PartStore store(Bytes(100'000));
  EXPECT_EQ(Ask(store, "a"), "a");
  EXPECT_EQ(Ask(store, "b"), "b");
  EXPECT_EQ(Ask(store, "a"), "a");
  EXPECT_EQ(store.counts().at("word"), (PartCounts{.found = 1, .made = 2}));
  EXPECT_EQ(Words(store), 2);
}

TEST(PartStore, TellsKindsApart) {
  PartStore store(Bytes(100'000));
  EXPECT_EQ(Ask(store, "a"), "a");
  EXPECT_EQ(store.FindOrMake<Word>("other", "a", [] { return Word{"x"}; })->text, "x");
}

TEST(PartStore, DropsWhatWasUsedLongestAgo) {
  PartStore store(Bytes(25'000));
  Ask(store, "a");
  Ask(store, "b");
  Ask(store, "a");
  Ask(store, "c");  // in the place of b
  EXPECT_EQ(Words(store), 2);
  Ask(store, "a");
  EXPECT_EQ(store.counts().at("word"), (PartCounts{.found = 2, .made = 3, .dropped = 1}));
  Ask(store, "b");
  EXPECT_EQ(store.counts().at("word"), (PartCounts{.found = 2, .made = 4, .dropped = 2}));
}

TEST(PartStore, KeepsNothingWithoutRoom) {
  PartStore store(Bytes(0));
  EXPECT_EQ(Ask(store, "a"), "a");
  EXPECT_EQ(Ask(store, "a"), "a");
  EXPECT_EQ(store.held(), Bytes(0));
  EXPECT_EQ(store.counts().at("word"), (PartCounts{.made = 2, .dropped = 2}));
}

TEST(PartStore, CountsKeys) {
  PartStore store(Bytes(100'000));
  Ask(store, "a");
  const int64_t of_short = store.held().count();
  Ask(store, std::string(1000, 'b'));
  EXPECT_GE(store.held().count() - of_short, of_short + 1998);
}

TEST(PartStore, KeepsFromTheSecondOn) {
  PartStore store(Bytes(100'000));
  const auto ask = [&] {
    return store.FindOrMakeFromSecond<Word>("word", "a", [] { return Word{"a"}; })->text;
  };
  EXPECT_EQ(ask(), "a");
  EXPECT_EQ(store.held(), Bytes(0));
  EXPECT_EQ(ask(), "a");
  EXPECT_EQ(Words(store), 1);
  EXPECT_EQ(ask(), "a");
  EXPECT_EQ(store.counts().at("word"), (PartCounts{.found = 1, .made = 1}));
  EXPECT_FALSE(store.WasAskedFor("word", "b"));
  EXPECT_TRUE(store.WasAskedFor("word", "b"));
  EXPECT_FALSE(store.WasAskedFor("other", "b"));
}

TEST(PartStore, KeepsAPartForWhoHasIt) {
  PartStore store(Bytes(11'000));
  const auto a = store.FindOrMake<Word>("word", "a", [] { return Word{"a"}; });
  Ask(store, "b");
  EXPECT_EQ(a->text, "a");
}

TEST(PartStore, MakesAPartOfOtherParts) {
  PartStore store(Bytes(100'000));
  const auto both =
      store.FindOrMake<Word>("word", "ab", [&] { return Word{Ask(store, "a") + Ask(store, "b")}; });
  EXPECT_EQ(both->text, "ab");
}

TEST(PartStore, AsksAgainForWhatFailed) {
  PartStore store(Bytes(100'000));
  const auto fail = []() -> Word { throw std::runtime_error("no"); };
  EXPECT_THROW(store.FindOrMake<Word>("word", "a", fail), std::runtime_error);
  EXPECT_EQ(Ask(store, "a"), "a");
}

TEST(PartStore, MakesAPartOnceOnSeveralThreads) {
  PartStore store(Bytes(1'000'000));
  std::atomic<int> made = 0, wrong = 0;
  ForEachOnThreads(400, 4, [&](size_t i) {
    const std::string key = std::to_string(i % 20);
    const auto part = store.FindOrMake<Word>("word", key, [&] {
      ++made;
      return Word{key};
    });
    if (part->text != key) ++wrong;
  });
  EXPECT_EQ(made, 20);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.counts().at("word"), (PartCounts{.found = 380, .made = 20}));
}

TEST(PartStoreDeathTest, ChecksThatKeysSayAll) {
  PartStore store(Bytes(100'000));
  store.CheckWhatIsFound();
  Ask(store, "a");
  EXPECT_EQ(Ask(store, "a"), "a");
  EXPECT_DEATH(store.FindOrMake<Word>("word", "a", [] { return Word{"longer"}; }),
               "the key lacks what the part depends on: word a");
}

TEST(PartStoreDeathTest, WantsOneTypeForAKind) {
  struct Other : Word {};
  PartStore store(Bytes(100'000));
  Ask(store, "a");
  EXPECT_DEATH(store.FindOrMake<Other>("word", "a", [] { return Other{}; }), "of two types");
}

// What is dropped while others wait for it still gets to them.
TEST(PartStore, AnswersAllWhereThereIsNoRoom) {
  PartStore store(Bytes(15'000));
  std::atomic<int> wrong = 0;
  ForEachOnThreads(400, 4, [&](size_t i) {
    const std::string key = std::to_string(i / 4 % 5);
    if (Ask(store, key) != key) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(store.held(), Bytes(15'000));
}

}  // namespace
}  // namespace part_store_test_cc
}  // namespace orrery
