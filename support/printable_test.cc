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

TEST(ShellWord, CanBeTyped) {
  EXPECT_EQ(ShellWord("x.0=VALUE"), "x.0=VALUE");
  EXPECT_EQ(ShellWord("é b"), "'é b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("a\n'\\ é"), "$'a\\x0a\\'\\\\ é'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace printable_test_cc
}  // namespace orrery
