#include "tools/terminal/terminal.h"

#include <gtest/gtest.h>

#include <map>

namespace orrery::tools {
namespace terminal_test_cc {
namespace {

Terminal Of(std::map<std::string, std::string> variables, size_t columns = 100,
            bool is_terminal = true) {
  return TerminalFrom(
      {.is_terminal = is_terminal, .columns = columns, .variable = [&](const char* name) {
         const auto found = variables.find(name);
         return found == variables.end() ? nullptr : found->second.c_str();
       }});
}

TEST(Terminal, OfAFileIsPlainWhateverTheEnvironment) {
  const Terminal file =
      Of({{"TERM", "xterm"}, {"LANG", "C.UTF-8"}, {"COLUMNS", "200"}}, 100, /*is_terminal=*/false);
  EXPECT_FALSE(file.is_terminal);
  EXPECT_EQ(file.columns, 80u);
  EXPECT_FALSE(file.colours);
  EXPECT_FALSE(file.unicode);
}

TEST(Terminal, IsAsWideAsItOrTheEnvironmentSays) {
  EXPECT_EQ(Of({}).columns, 100u);
  EXPECT_EQ(Of({}, 0).columns, 80u);
  EXPECT_EQ(Of({{"COLUMNS", "60"}}).columns, 60u);
  EXPECT_EQ(Of({{"COLUMNS", "many"}}).columns, 100u);
  EXPECT_EQ(Of({{"COLUMNS", "3"}}).columns, 100u);
  EXPECT_EQ(Of({}, 7).columns, 20u);
  EXPECT_EQ(Of({{"COLUMNS", "99999999"}}).columns, 1000u);
}

TEST(Terminal, HasColoursUnlessSomebodyWantsNone) {
  EXPECT_TRUE(Of({{"TERM", "xterm"}}).colours);
  EXPECT_TRUE(Of({{"TERM", "xterm"}, {"NO_COLOR", ""}}).colours);
  EXPECT_FALSE(Of({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).colours);
  EXPECT_FALSE(Of({{"TERM", "dumb"}}).colours);
  EXPECT_FALSE(Of({}).colours);
}

TEST(Terminal, HasUnicodeByTheFirstVariableOfTheLocale) {
  EXPECT_TRUE(Of({{"LANG", "C.UTF-8"}}).unicode);
  EXPECT_TRUE(Of({{"LANG", "C"}, {"LC_ALL", "de_DE.utf8"}}).unicode);
  EXPECT_FALSE(Of({{"LANG", "C.UTF-8"}, {"LC_ALL", "C"}}).unicode);
  EXPECT_FALSE(Of({}).unicode);
}

TEST(Paint, NeedsColours) {
  EXPECT_EQ(Paint("best", Colour::kRed, {.is_terminal = true, .colours = true}),
            "\x1b[31mbest\x1b[0m");
  EXPECT_EQ(Paint("best", Colour::kPlain, {.is_terminal = true, .colours = true}), "best");
  EXPECT_EQ(Paint("best", Colour::kRed, {.is_terminal = true}), "best");
}

TEST(CutText, CountsCharacters) {
  EXPECT_EQ(TextWidth("größe"), 5u);
  EXPECT_EQ(CutText("größe", 5, {.unicode = true}), "größe");
  EXPECT_EQ(CutText("größer", 5, {.unicode = true}), "größ…");
  EXPECT_EQ(CutText("größer", 5, {}), "größ.");
  EXPECT_EQ(CutText("größer", 0, {}), "");
}

TEST(WrapLines, CutsAtBlanksBehindAnIndent) {
  const Terminal narrow = {.is_terminal = true, .columns = 20};
  EXPECT_EQ(WrapLines("kernels  products, attention, others\nbubble  0 %\n", 9, narrow),
            "kernels  products,\n         attention,\n         others\nbubble  0 %\n");
  EXPECT_EQ(WrapLines("a text of twenty one.", 0, {.is_terminal = true, .columns = 21}),
            "a text of twenty one.");
  // Not through a word, and blanks before a line stay.
  EXPECT_EQ(WrapLines("    longer-than-the-whole-terminal it is", 2, narrow),
            "    longer-than-the-whole-terminal\n  it is");
  EXPECT_EQ(WrapLines("kernels  products, attention", 9, {}), "kernels  products, attention");
}

TEST(Manner, DecidesWhatIsSaid) {
  EXPECT_FALSE(ProgramManner().quiet);
  SetManner({.progress = true});
  EXPECT_TRUE(ShowsProgress());
  SetManner({.quiet = true, .progress = true});
  EXPECT_FALSE(ShowsProgress());
  EXPECT_FALSE(ShowsCharts());
  testing::internal::CaptureStderr();
  Note("of no harm");
  Warn("look");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: look\n");
  SetManner({});
  testing::internal::CaptureStderr();
  Note("of no harm");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "note: of no harm\n");
}

}  // namespace
}  // namespace terminal_test_cc
}  // namespace orrery::tools
