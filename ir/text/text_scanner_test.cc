#include "ir/text/text_scanner.h"

#include <string>

#include "gtest/gtest.h"

namespace orrery::ir {
namespace text_scanner_test_cc {
namespace {

std::string Said(const absl::Status& status) { return std::string(status.message()); }

TEST(TextScanner, TakesWhatComesNext) {
  TextScanner scanner("  [ hp-0_x.7 , -12 ] ");
  EXPECT_FALSE(scanner.AtEnd());
  EXPECT_FALSE(scanner.Take("]"));
  EXPECT_TRUE(scanner.Sees("["));
  EXPECT_TRUE(scanner.Sees("["));  // seeing takes nothing
  EXPECT_TRUE(scanner.Take("["));
  EXPECT_EQ(scanner.Word(), "hp-0_x");
  EXPECT_TRUE(scanner.Expect(".").ok());
  EXPECT_EQ(*scanner.Number("a number"), 7);
  EXPECT_TRUE(scanner.Expect(",").ok());
  EXPECT_EQ(*scanner.Number("a number"), -12);
  EXPECT_TRUE(scanner.Take("]"));
  EXPECT_TRUE(scanner.AtEnd());
  EXPECT_FALSE(scanner.Sees("]"));
  EXPECT_TRUE(scanner.Take(""));
}

TEST(TextScanner, TellsWordsFromLetters) {
  TextScanner words("S0 a-b"), letters("_S0");
  EXPECT_EQ(words.Word(), "S0");
  EXPECT_EQ(words.Word(), "a-b");
  EXPECT_EQ(words.Word(), "");
  EXPECT_EQ(letters.Letters(), "_S");
  EXPECT_EQ(letters.Letters(), "");
  EXPECT_EQ(*letters.Number("a number"), 0);
}

TEST(TextScanner, ReadsWholeNumbersOnly) {
  const auto trouble = [](absl::string_view text) {
    TextScanner scanner(text);
    const auto number = scanner.Number("a size");
    return number.ok() ? "ok" : Said(number.status());
  };
  EXPECT_EQ(trouble("9223372036854775807"), "ok");
  EXPECT_EQ(trouble("-9223372036854775808"), "ok");
  EXPECT_EQ(trouble("9223372036854775808"), "at 1: found \"922337203685\"…; wanted a size");
  EXPECT_EQ(trouble("-"), "at 1: found \"-\"; wanted a size");
  EXPECT_EQ(trouble("+4"), "at 1: found \"+4\"; wanted a size");
  EXPECT_EQ(trouble("x4"), "at 1: found \"x4\"; wanted a size");
  EXPECT_EQ(trouble("  "), "at 3: found the end of the text; wanted a size");
}

// A number that is refused is not taken; one that is not wanted was.
TEST(TextScanner, SaysWhereItIs) {
  TextScanner scanner("ab , 12x");
  EXPECT_EQ(scanner.Word(), "ab");
  EXPECT_EQ(Said(scanner.Expect(";")), "at 4: found \", 12x\"; wanted ';'");
  EXPECT_EQ(Said(scanner.ExpectedBefore("a verb")), "at 1: found \"ab , 12x\"; wanted a verb");
  EXPECT_TRUE(scanner.Take(","));
  EXPECT_EQ(Said(scanner.ExpectedBefore("a point")), "at 4: found \", 12x\"; wanted a point");
  EXPECT_EQ(Said(scanner.Expected("a word")), "at 6: found \"12x\"; wanted a word");
  EXPECT_EQ(*scanner.Number("a number"), 12);
  EXPECT_EQ(Said(scanner.ExpectedBefore("13")), "at 6: found \"12x\"; wanted 13");
  EXPECT_EQ(Said(scanner.Number("a number").status()), "at 8: found \"x\"; wanted a number");
  EXPECT_EQ(Said(scanner.ExpectedBefore("13")), "at 6: found \"12x\"; wanted 13");
}

// Errors are one line of whole characters, however long the text.
TEST(TextScanner, ShowsTheBeginningOfWhatItFinds) {
  const auto shown = [](absl::string_view text) {
    TextScanner scanner(text);
    return Said(scanner.Expected("x"));
  };
  EXPECT_EQ(shown("123456789012"), "at 1: found \"123456789012\"; wanted x");
  EXPECT_EQ(shown("1234567890123"), "at 1: found \"123456789012\"…; wanted x");
  EXPECT_EQ(shown("a\nb\t\"\\"), "at 1: found \"a\\nb\\t\\\"\\\\\"; wanted x");
  EXPECT_EQ(shown("∅∅∅∅∅"), "at 1: found \"∅∅∅∅\"…; wanted x");
  EXPECT_EQ(shown("a∅∅∅∅∅"), "at 1: found \"a∅∅∅∅\"…; wanted x");
  EXPECT_EQ(shown("ab∅∅∅∅"), "at 1: found \"ab∅∅∅∅\"; wanted x");
  EXPECT_EQ(shown("12345678901\xe2"), "at 1: found \"12345678901\xe2\"; wanted x");
  EXPECT_EQ(shown(""), "at 1: found the end of the text; wanted x");
}

}  // namespace
}  // namespace text_scanner_test_cc
}  // namespace orrery::ir
