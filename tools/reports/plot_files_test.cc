#include "tools/reports/plot_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "support/file.h"

namespace orrery::tools {
namespace plot_files_test_cc {
namespace {

using testing::HasSubstr;

constexpr PlotView kViews[] = {{"timeline", "when"}, {"memory", "how much"}};

TEST(PlotPathOf, IsTheFile) {
  EXPECT_EQ(PlotPathOf("out/a.svg"), "out/a.svg");
  EXPECT_EQ(PlotPathOf("memory=out/a.svg"), "out/a.svg");
  EXPECT_EQ(PlotPathOf("./a=b.svg"), "./a=b.svg");
  EXPECT_EQ(PlotPathOf("=b.svg"), "=b.svg");
}

TEST(ReadPlots, TellsViewsByTheirNames) {
  const auto files = ReadPlots({"a.svg", "memory=b.pdf", "timeline=c.svg"}, kViews, /*usual=*/1);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 3u);
  EXPECT_EQ((*files)[0].view, 1u);
  EXPECT_EQ((*files)[1].view, 1u);
  EXPECT_EQ((*files)[1].path, "b.pdf");
  EXPECT_EQ((*files)[2].view, 0u);
  EXPECT_TRUE(ReadPlots({}, kViews)->empty());
}

TEST(ReadPlots, SaysWhichViewsThereAre) {
  EXPECT_EQ(
      ReadPlots({"memroy=a.svg"}, kViews).status().message(),
      "--plot 'memroy=a.svg': there is no view 'memroy'; wanted timeline or memory before the "
      "=, or ./ before a file of that name");
  EXPECT_EQ(ReadPlots({"memory=a.png"}, kViews).status().message(),
            "--plot: a.png: wanted a name that ends in .svg or .pdf");
}

TEST(PlotHelp, NamesAllViews) {
  EXPECT_EQ(
      PlotHelp(kViews),
      "draw when to this file (.svg or .pdf); may be repeated; needs gnuplot. VIEW=FILE draws "
      "another view: timeline (when), memory (how much)");
}

std::vector<Section> SomeSections() {
  return {{.id = "a", .title = "A", .views = {TableView{.title = "t", .columns = {}}}},
          {.id = "b",
           .title = "B",
           .views = {TimelineView{.title = "steps", .name = "timeline"},
                     ChartView{.title = "memory over time", .name = "memory"}}}};
}

TEST(PictureOf, IsTheOneOfTheName) {
  EXPECT_THAT(PictureOf(SomeSections(), "timeline")->commands, HasSubstr("'steps'"));
  EXPECT_THAT(PictureOf(SomeSections(), "memory")->commands, HasSubstr("'memory over time'"));
  EXPECT_TRUE(absl::IsNotFound(PictureOf(SomeSections(), "links").status()));
}

TEST(WritePlots, DrawsEachFile) {
  const auto path = [](const char* name) { return absl::StrCat(testing::TempDir(), "/", name); };
  const std::vector<PlotFile> files = {{0, path("0.svg")}, {1, path("1.svg")}};
  const auto plot_of = [](size_t view) { return PictureOf(SomeSections(), kViews[view].name); };
  ASSERT_TRUE(WritePlots(files, plot_of).ok());
  EXPECT_THAT(ReadFile(path("0.svg")).value(), HasSubstr("steps"));
  EXPECT_THAT(ReadFile(path("1.svg")).value(), HasSubstr("memory over time"));
  const absl::Status none =
      WritePlots(files, [](size_t) { return PictureOf(SomeSections(), "links"); });
  EXPECT_EQ(none.message(), absl::StrCat(path("0.svg"), ": there is nothing to draw as links"));
}

}  // namespace
}  // namespace plot_files_test_cc
}  // namespace orrery::tools
