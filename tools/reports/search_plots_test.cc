#include "tools/reports/search_plots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "search/settings/setting_test_util.h"
#include "search/spaces/space.h"
#include "support/file.h"

namespace orrery::tools {
namespace search_plots_test_cc {
namespace {

using testing::HasSubstr;

std::string Path(absl::string_view name) { return absl::StrCat(testing::TempDir(), "/", name); }

class SearchPlotsTest : public testing::Test {
 protected:
  SearchPlotsTest() {
    search::Space space;
    plans_ = Enumerate(space, {.devices = 8, .batch_size = 48}).value().All();
  }

  search::Setting setting_ = search::MlpSetting();
  std::vector<search::ParallelPlan> plans_;
};

TEST_F(SearchPlotsTest, DrawsEachView) {
  std::vector<std::string> texts;
  for (const PlotView& view : SearchPlotViews()) {
    texts.push_back(absl::StrCat(view.name, "=", Path(view.name), ".svg"));
  }
  SearchPlots plots(ReadSearchPlots(texts, /*several=*/false).value());
  plots.Add(setting_, RunSearch(setting_, plans_).value());
  ASSERT_TRUE(plots.Write().ok()) << plots.Write();
  EXPECT_EQ(plots.Warning(), "");
  const std::pair<const char*, const char*> texts_of[] = {{"degrees", "dp 2"},
                                                          {"scaling", "devices"},
                                                          {"front", "Pareto front"},
                                                          {"worth", "pp 2"},
                                                          {"outcomes", "fit"}};
  for (const auto& [view, text] : texts_of) {
    EXPECT_THAT(ReadFile(Path(absl::StrCat(view, ".svg"))).value(), HasSubstr(text)) << view;
  }
}

TEST_F(SearchPlotsTest, OfSeveralTheUsualViewIsAnother) {
  EXPECT_EQ(ReadSearchPlots({"a.svg"}, /*several=*/false)->front().view, 0u);
  EXPECT_EQ(ReadSearchPlots({"a.svg"}, /*several=*/true)->front().view, 1u);
  EXPECT_THAT(std::string(ReadSearchPlots({"worth=a.svg"}, /*several=*/true).status().message()),
              HasSubstr("--plot 'worth=a.svg': worth is of one search; wanted scaling or front"));
}

TEST_F(SearchPlotsTest, SaysWhatIsNotDrawn) {
  SearchPlots plots({{.view = 2, .path = Path("pruned.svg")}});
  plots.Add(setting_, RunSearch(setting_, plans_, {.top = 1}).value());
  EXPECT_THAT(plots.Warning(), HasSubstr("pruned.svg: "));
  EXPECT_THAT(plots.Warning(), HasSubstr("candidates are pruned or left, and not drawn"));
}

TEST_F(SearchPlotsTest, NothingThatFitsIsAnError) {
  setting_.lowering.memory_limit = Bytes(1);
  for (const size_t view : {0u, 1u, 2u}) {
    SearchPlots plots({{.view = view, .path = Path("none.svg")}});
    plots.Add(setting_, RunSearch(setting_, plans_).value());
    EXPECT_TRUE(absl::IsNotFound(plots.Write())) << view;
  }
}

}  // namespace
}  // namespace search_plots_test_cc
}  // namespace orrery::tools
