#include "tools/reports/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/reports/version.h"

namespace orrery::tools {
namespace document_test_cc {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;

Json JsonOf(const Document& document) { return Json::parse(DocumentJson(document)); }

TEST(DocumentJson, HasTheHeadOfThePage) {
  const Json json = JsonOf({.title = "a \"b\" </script>",
                            .program = "simulate",
                            .command = "simulate --pp 2",
                            .notes = {"warning: none"}});
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["title"], "a \"b\" </script>");
  EXPECT_EQ(json["program"], "simulate");
  EXPECT_EQ(json["command"], "simulate --pp 2");
  EXPECT_EQ(json["version"], std::string(Version()));
  EXPECT_EQ(json["notes"], Json({"warning: none"}));
  EXPECT_EQ(json["sections"], Json::array());
}

TEST(DocumentJson, HasViewsOfEachKind) {
  const TableView table{.title = "t",
                        .columns = {{"what"}, {"time", "s"}},
                        .rows = {{std::string("a"), 0.5}, {true, int64_t{7}}, {Cell(), NAN}}};
  const ChartView chart{
      .title = "c",
      .style = ChartStyle::kStackedBars,
      .x = {"x"},
      .y = {"y", "bytes", true},
      .categories = {"r"},
      .panels = {{.title = "p", .series = {{.name = "n", .points = {{1, 2}, {3, INFINITY}}}}}}};
  const TimelineView timeline{.title = "l",
                              .rows = {"rank 0"},
                              .kinds = {"forward"},
                              .slices = {{.start_s = 0.25, .end_s = 0.5}},
                              .labels = {"F0"},
                              .end_s = 1};
  const Json json = JsonOf(
      {.title = "", .sections = {{.id = "s", .title = "S", .views = {table, chart, timeline}}}});
  const Json views = json["sections"][0]["views"];
  EXPECT_EQ(views[0]["kind"], "table");
  EXPECT_EQ(views[0]["columns"][1], Json({{"name", "time"}, {"unit", "s"}}));
  EXPECT_EQ(views[0]["rows"], Json::parse(R"([["a",0.5],[true,7],[null,null]])"));
  EXPECT_EQ(views[1]["style"], "stacked-bars");
  EXPECT_EQ(views[1]["y"]["log"], true);
  EXPECT_EQ(views[1]["categories"], Json({"r"}));
  EXPECT_EQ(views[1]["panels"][0]["series"][0]["points"], Json::parse("[[1.0,2.0],[3.0,null]]"));
  EXPECT_EQ(views[2]["slices"], Json::parse("[[0,0,0.25,0.5,0]]"));
  EXPECT_EQ(views[2]["end"], 1.0);
}

// Whichever form is short, it says the same.
TEST(DocumentJson, PacksColumnsOfCandidates) {
  CandidateColumn same{.name = "same"}, few{.name = "few"}, all{.name = "all"};
  for (uint32_t row = 0; row < 4; ++row) {
    same.places.push_back(0);
    few.places.push_back(row % 2);
    all.places.push_back(row);
    all.words.emplace_back(int64_t{row});
  }
  same.words = {std::string("x")};
  few.words = {1.5, Cell()};
  Document document;
  document.searches.push_back({.title = "s",
                               .columns = {same, few, all},
                               .row_count = 4,
                               .all_rows = 9,
                               .ranked = {2, 1},
                               .runs = {{.name = "1", .flags = "--dp 2", .row = 2}}});
  const Json search = JsonOf(document)["searches"][0];
  EXPECT_EQ(search["columns"][0]["same"], "x");
  EXPECT_EQ(search["columns"][1]["dictionary"], Json::parse("[1.5,null]"));
  EXPECT_THAT(search["columns"][1]["indices"], ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(search["columns"][2]["values"], ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(search["row_count"], 4);
  EXPECT_EQ(search["all_rows"], 9);
  EXPECT_THAT(search["ranked"], ElementsAre(2, 1));
  EXPECT_EQ(search["runs"][0]["row"], 2);
}

TEST(DocumentJson, ReplacesWhatIsNoText) {
  EXPECT_EQ(JsonOf({.title = "a\xff"})["title"], "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace document_test_cc
}  // namespace orrery::tools
