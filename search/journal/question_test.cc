#include "search/journal/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::search {
namespace question_test_cc {
namespace {

Question Small() {
  return {.ingredients = {{"--batch-size", "512", ""},
                          {"--shard", "a=hp@0", ""},
                          {"--shard", "b=hp@1", ""},
                          {"the training step", "gpt", "1234"}},
          .candidates = 224};
}

TEST(Fingerprint, TellsBytesApart) {
  EXPECT_EQ(Fingerprint("abc"), Fingerprint("abc"));
  EXPECT_NE(Fingerprint("abc"), Fingerprint("abd"));
  EXPECT_NE(Fingerprint(""), Fingerprint(absl::string_view("\0", 1)));
}

TEST(Differences, AreNamed) {
  const Question there = Small();
  EXPECT_EQ(Differences(there, there), "");
  Question here = Small();
  here.ingredients[0].text = "256";
  EXPECT_EQ(Differences(there, here), "--batch-size is 512 there and 256 here");
  here = Small();
  here.ingredients[3].fingerprint = "4321";
  EXPECT_EQ(Differences(there, here), "the training step (gpt) has other contents");
  here = Small();
  here.ingredients.erase(here.ingredients.begin() + 2);
  EXPECT_EQ(Differences(there, here), "--shard is a=hp@0 b=hp@1 there and a=hp@0 here");
  here.ingredients.erase(here.ingredients.begin() + 1);
  EXPECT_EQ(Differences(there, here), "--shard is a=hp@0 b=hp@1 there and not given here");
  EXPECT_EQ(Differences(here, there), "--shard is not given there and a=hp@0 b=hp@1 here");
  here = Small();
  here.candidates = 100;
  EXPECT_EQ(Differences(there, here), "there are 224 candidates there and 100 here");
}

TEST(JournalHeader, ReadsWhatItPrints) {
  const JournalHeader header = {.question = Small(), .part = {.index = 2, .count = 7}};
  const std::string text = HeaderText(header);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto again = ParseHeader(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->question, header.question);
  EXPECT_EQ(again->part, header.part);
  EXPECT_EQ(HeaderText(*again), text);
}

// Names of files may be any bytes.
TEST(JournalHeader, KeepsAnyBytes) {
  JournalHeader header = {.question = Small(), .part = {}};
  header.question.ingredients[0].text = "a\n\"\\ \xff\xc3\xa9";
  const auto again = ParseHeader(HeaderText(header));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->question, header.question);
}

TEST(JournalHeader, RefusesOthers) {
  for (const char* text : {"", "{}", "[]", "hello", R"({"orrery_journal":1})"}) {
    EXPECT_THAT(std::string(ParseHeader(text).status().message()),
                testing::HasSubstr("is no journal of a search"))
        << text;
  }
  EXPECT_THAT(std::string(ParseHeader(R"({"orrery_journal":9})").status().message()),
              testing::HasSubstr("is of format 9; wanted 1"));
}

}  // namespace
}  // namespace question_test_cc
}  // namespace orrery::search
