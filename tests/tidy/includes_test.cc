#include "tests/tidy/includes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::tidy {
namespace includes_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FolderTargets Targets() {
  return {{"support", {"support", {}, {}}},
          {"ir", {"ir", {"support"}, {}}},
          {"ir/parts", {"parts", {"ir"}, {}}},
          {"sim", {"sim", {"support"}, {"ir"}}}};
}

TEST(Includes, AreThoseInQuotes) {
  EXPECT_THAT(
      Includes("#include <a>\n#include \"ir/a.h\"\n  #include \"b.def\"  // why\n// \"c.h\"\n"),
      ElementsAre("ir/a.h", "b.def"));
}

TEST(FindCycle, SaysTheWayRound) {
  EXPECT_THAT(FindCycle({{"a", {"b", "c"}}, {"b", {"c"}}, {"c", {}}}), IsEmpty());
  EXPECT_THAT(FindCycle({{"a", {"b"}}, {"b", {"c"}}, {"c", {"b"}}}), ElementsAre("b", "c", "b"));
  EXPECT_THAT(FindCycle({{"a", {"a"}}}), ElementsAre("a", "a"));
}

TEST(IncludeGraph, HasOnlyTheSourcesOfTheList) {
  const Graph graph = IncludeGraph({{"ir/a.h", "#include \"ir/b.h\"\n#include \"absl/c.h\"\n"},
                                    {"ir/b.h", "#include \"ir/a.h\"\n"}});
  EXPECT_THAT(FindCycle(graph), ElementsAre("ir/a.h", "ir/b.h", "ir/a.h"));
  EXPECT_EQ(graph.size(), 2u);
}

TEST(FolderGraph, LeavesTestsOut) {
  const std::vector<Source> sources = {{"ir/a.h", "#include \"sim/b.h\"\n"},
                                       {"sim/b.h", "#include \"ir/c.h\"\n"}};
  EXPECT_THAT(FindCycle(FolderGraph(sources, {"ir", "sim"})), ElementsAre("ir", "sim", "ir"));
  EXPECT_THAT(
      FindCycle(FolderGraph({sources[0], {"sim/b_test.cc", sources[1].text}}, {"ir", "sim"})),
      IsEmpty());
}

TEST(ParseFolderTargets, ReadsTheCall) {
  const auto targets = ParseFolderTargets(
      "set(a b)\norrery_add_folder(sim  # why\n  SOURCES x.cc\n  DEPS orrery::support absl::span\n"
      "  PRIVATE_DEPS orrery::ir\n  TEST_SOURCES orrery::none TEST_DEPS orrery::other)\n");
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].name, "sim");
  EXPECT_THAT(targets[0].links, ElementsAre("ir", "support"));
  EXPECT_THAT(targets[0].test_links, ElementsAre("other"));
}

TEST(ParseFolderTargets, KnowsFoldersForTests) {
  const auto targets = ParseFolderTargets(
      "orrery_add_folder(a FOR_TESTS\n  DEPS orrery::b REGISTRY "
      "orrery::c)\norrery_add_folder(b)\n");
  ASSERT_EQ(targets.size(), 2u);
  EXPECT_TRUE(targets[0].for_tests);
  EXPECT_THAT(targets[0].links, ElementsAre("b"));
  EXPECT_FALSE(targets[1].for_tests);
}

TEST(ParseProgramLinks, TakesBothSpellings) {
  EXPECT_THAT(ParseProgramLinks("add_library(orrery::x)\ntarget_link_libraries(${name} PRIVATE\n"
                                "  orrery_ir orrery::tools absl::span)\n"),
              ElementsAre("ir", "tools"));
}

TEST(FolderGraph, TellsRoomsFromTheirHouse) {
  const std::vector<Source> sources = {{"ir/a.cc", "#include \"ir/text/b.h\"\n"},
                                       {"ir/text/b.h", "#include \"ir/c.h\"\n"}};
  EXPECT_THAT(FindCycle(FolderGraph(sources, {"ir"})), IsEmpty());
  EXPECT_THAT(FindCycle(FolderGraph(sources, {"ir", "ir/text"})),
              ElementsAre("ir", "ir/text", "ir"));
}

TEST(FoldersOf, AreThoseWithSources) {
  const std::vector<Source> sources = {
      {"a/b/c.cc", "#include \"a/d.h\"\n"}, {"a/d.h", "#include \"a/b/e.h\"\n"}, {"a/b/e.h", ""}};
  EXPECT_THAT(FoldersOf(sources), ElementsAre("a", "a/b"));
  EXPECT_THAT(FindCycle(FolderGraph(sources, FoldersOf(sources))), ElementsAre("a", "a/b", "a"));
}

TEST(LinkGraph, IsByTarget) {
  FolderTargets targets = Targets();
  EXPECT_THAT(FindCycle(LinkGraph(targets)), IsEmpty());
  targets["support"].links = {"parts"};
  EXPECT_THAT(FindCycle(LinkGraph(targets)), ElementsAre("ir", "support", "parts", "ir"));
}

TEST(FolderOf, IsTheInnermost) {
  EXPECT_EQ(FolderOf("ir/parts/x/a.h", Targets()), "ir/parts");
  EXPECT_EQ(FolderOf("ir/models/a.h", Targets()), "ir");
  EXPECT_EQ(FolderOf("absl/a.h", Targets()), "");
}

TEST(UpwardIncludes, AreThoseThatAreNotLinked) {
  EXPECT_THAT(UpwardIncludes({{"ir/parts/a.cc", "#include \"support/id.h\"\n#include \"ir/a.h\"\n"},
                              {"sim/a_test.cc", "#include \"ir/a.h\"\n"}},
                             Targets()),
              IsEmpty());
  EXPECT_THAT(UpwardIncludes({{"sim/a.cc", "#include \"ir/a.h\"\n"},
                              {"ir/a.h", "#include \"ir/parts/b.h\"\n"}},
                             Targets()),
              ElementsAre("sim/a.cc includes ir/a.h; sim does not link ir",
                          "ir/a.h includes ir/parts/b.h; ir does not link parts"));
}

}  // namespace
}  // namespace includes_test_cc
}  // namespace orrery::tidy
