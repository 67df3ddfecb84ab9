#include "support/printable.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace orrery {
namespace printable_test_cc {
namespace {

TEST(Printable, IsOneLineOfAscii) {
  EXPECT_EQ(Printable("/l.0/MatMul"), "/l.0/MatMul");
  EXPECT_EQ(Printable("a\nb\xff'\x7f"), "a\\x0ab\\xff'\\x7f");
  EXPECT_EQ(Printable(absl::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(Printable(std::string(401, 'x')), std::string(400, 'x') + "...");
  EXPECT_EQ(Show("a b"), "'a b'");
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(OneLine, KeepsWhatPrints) {
  EXPECT_EQ(OneLine("try export(…)"), "try export(…)");
  EXPECT_EQ(OneLine("a\nb\xff\xc3"), "a\\x0ab\\xff\\xc3");
  EXPECT_EQ(OneLine(std::string(100000, 'x')),
            std::string(600, 'x') + " ... " + std::string(300, 'x'));
  const std::string cut = OneLine(absl::StrCat("ab", Repeated("é", 1000)));
  EXPECT_EQ(cut, absl::StrCat("ab", Repeated("é", 299), " ... ", Repeated("é", 150)));
}

TEST(Printable, EndsAtTheEdgesOfAscii) {
  EXPECT_EQ(Printable("\x1f\x20\x7e\x7f\x80"), "\\x1f ~\\x7f\\x80");
  EXPECT_EQ(Printable(std::string(400, 'x')), std::string(400, 'x'));
}

// Characters of one to four bytes, and what only looks like one.
TEST(OneLine, KnowsUtf8) {
  EXPECT_EQ(OneLine("\x1f\x20\x7e\x7f"), "\\x1f ~\\x7f");
  for (const char* good : {"\xc2\xa0", "\xdf\xbf", "\xe0\xa4\xb9", "\xef\xbf\xbd",
                           "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(OneLine(good), good);
    EXPECT_EQ(OneLine(absl::StrCat("a", good, "b")), absl::StrCat("a", good, "b"));
  }
  EXPECT_EQ(OneLine("\xc1\xbf"), "\\xc1\\xbf");                    // too long for what it says
  EXPECT_EQ(OneLine("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(OneLine("\x80"), "\\x80");                             // begins in the middle
  EXPECT_EQ(OneLine("\xe2\x82"), "\\xe2\\x82");                    // ends in the middle
  EXPECT_EQ(OneLine("\xe2\x82z"), "\\xe2\\x82z");                  // goes on as another
  EXPECT_EQ(OneLine("\xf0\x9f\x98z"), "\\xf0\\x9f\\x98z");
  EXPECT_EQ(OneLine("\xc3\xc3\xa9"), "\\xc3\xc3\xa9");
}

// Each stands beside a neighbour that prints.
TEST(OneLine, ShowsWhatUtf8HasNoPlaceForAndWhatEndsALine) {
  EXPECT_EQ(OneLine("\xc2\x85|\xc2\x9f|\xc2\xa0"), "\\xc2\\x85|\\xc2\\x9f|\xc2\xa0");  // controls
  EXPECT_EQ(OneLine("\xe0\x9f\xbf|\xe0\xa0\x80"), "\\xe0\\x9f\\xbf|\xe0\xa0\x80");     // overlong
  EXPECT_EQ(OneLine("\xf0\x8f\xbf\xbf|\xf0\x90\x80\x80"), "\\xf0\\x8f\\xbf\\xbf|\xf0\x90\x80\x80");
  EXPECT_EQ(OneLine("\xed\x9f\xbf|\xed\xa0\x80|\xed\xbf\xbf|\xee\x80\x80"),  // surrogates
            "\xed\x9f\xbf|\\xed\\xa0\\x80|\\xed\\xbf\\xbf|\xee\x80\x80");
  EXPECT_EQ(OneLine("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");            // U+110000
  EXPECT_EQ(OneLine("\xe2\x80\xa7|\xe2\x80\xa8|\xe2\x80\xa9|\xe2\x80\xaa"),  // ends of lines
            "\xe2\x80\xa7|\\xe2\\x80\\xa8|\\xe2\\x80\\xa9|\xe2\x80\xaa");
}

TEST(OneLine, IsCutBeyondAThousandBytes) {
  EXPECT_EQ(OneLine(std::string(1000, 'x')), std::string(1000, 'x'));
  EXPECT_EQ(OneLine(std::string(600, 'a') + std::string(101, 'b') + std::string(300, 'c')),
            std::string(600, 'a') + " ... " + std::string(300, 'c'));
}

TEST(ShellWord, CanBeTyped) {
  EXPECT_EQ(ShellWord("x.0=VALUE"), "x.0=VALUE");
  EXPECT_EQ(ShellWord("a+b,c-d./e:f=g@h_i"), "a+b,c-d./e:f=g@h_i");
  EXPECT_EQ(ShellWord("a*"), "'a*'");
  EXPECT_EQ(ShellWord("$x"), "'$x'");
  EXPECT_EQ(ShellWord("é b"), "'é b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("a\n'\\ é"), "$'a\\x0a\\'\\\\ é'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace printable_test_cc
}  // namespace orrery
