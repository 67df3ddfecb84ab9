#include "tools/terminal/text_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace orrery::tools {
namespace text_chart_test_cc {
namespace {

using testing::HasSubstr;

ScatterChart Chart(std::vector<ScatterPoint> points) {
  return {.title = "three plans",
          .marks = "on the front",
          .x = {"memory", [](double x) { return absl::StrCat(x, " GiB"); }},
          .y = {"step time", [](double y) { return absl::StrCat(y, " s"); }},
          .points = std::move(points)};
}

TEST(DrawScatter, HasAxesWithUnits) {
  EXPECT_EQ(DrawScatter(Chart({{1, 3, true}, {2, 2, false}, {3, 1, true}}),
                        {.is_terminal = true, .columns = 27}, 5),
            R"(three plans
step time; * on the front
3 s +*
    |
2 s +          .
    |
1 s +                    *
    +---------------------
     1 GiB   2 GiB   3 GiB
                    memory
)");
}

TEST(DrawScatter, HasBrailleWhereThereIsUnicode) {
  EXPECT_EQ(DrawScatter(Chart({{1, 3, true}, {2, 2, false}, {2.02, 2.3, false}, {3, 1, true}}),
                        {.is_terminal = true, .columns = 27, .unicode = true}, 3),
            R"(three plans
step time; ◆ on the front
3 s ┤◆
2 s ┤          ⠨
1 s ┤                    ◆
    └─────────────────────
     1 GiB   2 GiB   3 GiB
                    memory
)");
}

TEST(DrawScatter, IsLogarithmicWhereNumbersDifferMuch) {
  const std::string text = DrawScatter(Chart({{1, 1, true}, {10, 2, true}, {100, 3, true}}),
                                       {.is_terminal = true, .columns = 60}, 9);
  EXPECT_THAT(text, HasSubstr("memory (log)"));
  EXPECT_THAT(text, HasSubstr(" 10 GiB "));
  EXPECT_THAT(text, testing::Not(HasSubstr("step time (log)")));
}

TEST(DrawScatter, FitsItsTerminal) {
  for (const size_t columns : {20U, 40U, 60U, 80U, 120U, 400U}) {
    const std::string text =
        DrawScatter(Chart({{1, 3, true}, {3, 1, true}}),
                    {.is_terminal = true, .columns = columns, .unicode = true});
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StrContains(line, "front")) continue;
      EXPECT_LT(TextWidth(line), columns) << text;
    }
  }
}

TEST(DrawScatter, IsNothingOfWhatCannotBeDrawn) {
  EXPECT_EQ(DrawScatter(Chart({}), {}), "");
  EXPECT_EQ(DrawScatter(Chart({{1, 1, true}}), {}), "");
  EXPECT_EQ(DrawScatter(Chart({{1, 1, true}, {0, 1, false}}), {}), "");
  // All alike: in the middle.
  EXPECT_THAT(DrawScatter(Chart({{1, 1, false}, {1, 1, true}}), {}, 3), HasSubstr("*"));
}

TEST(DrawScatter, PaintsMarks) {
  EXPECT_THAT(DrawScatter(Chart({{1, 3, true}, {3, 1, false}}),
                          {.is_terminal = true, .columns = 60, .colours = true}),
              HasSubstr("\x1b[32m*\x1b[0m"));
}

const BarChart kBars = {.title = "where the time goes",
                        .keys = {"compute", "exposed", "bubble"},
                        .bars = {{.name = "1", .text = "2 s", .parts = {1, 0.5, 0.5}},
                                 {.name = "2", .text = "4 s", .parts = {3, 1, 0}}}};

TEST(DrawBars, AreOnOneScale) {
  EXPECT_EQ(DrawBars(kBars, {.is_terminal = true, .columns = 29}),
            R"(where the time goes
  1 #####===-- 2 s
  2 ###############===== 4 s
  # compute  = exposed  - bubble
)");
}

TEST(DrawBars, AreOfBlocksWhereThereIsUnicode) {
  EXPECT_THAT(DrawBars(kBars, {.is_terminal = true, .columns = 29, .unicode = true}),
              HasSubstr("  1 █████▓▓▓▒▒ 2 s\n"));
}

TEST(DrawBars, ArePaintedByPart) {
  const Terminal terminal = {.is_terminal = true, .columns = 29, .colours = true};
  EXPECT_THAT(DrawBars(kBars, terminal),
              HasSubstr("\x1b[32m#####\x1b[0m\x1b[33m===\x1b[0m\x1b[34m--\x1b[0m"));
}

TEST(DrawBars, FitTheirTerminal) {
  BarChart chart = kBars;
  chart.keys = {};
  chart.bars = {{.name = "reduce-scatter of hp over ports and more", .text = "4 s", .parts = {3}},
                {.name = "ü", .text = "", .parts = {1}}};
  for (const size_t columns : {20U, 60U, 80U, 120U, 400U}) {
    const std::string text = DrawBars(chart, {.is_terminal = true, .columns = columns});
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    ASSERT_EQ(lines.size(), 3u);
    for (size_t i = 1; i < lines.size(); ++i) EXPECT_LT(TextWidth(lines[i]), columns) << text;
  }
}

TEST(DrawBars, AreNothingWithoutALength) {
  EXPECT_EQ(DrawBars({}, {}), "");
  EXPECT_EQ(DrawBars({.title = "t", .keys = {}, .bars = {{.name = "a", .parts = {0}}}}, {}), "");
}

}  // namespace
}  // namespace text_chart_test_cc
}  // namespace orrery::tools
