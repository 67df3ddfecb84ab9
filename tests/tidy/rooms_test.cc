#include "tests/tidy/rooms.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::tidy {
namespace rooms_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FileLocalFaults, WantsTheNamespaceOfTheFile) {
  const std::string good = "namespace orrery {\nnamespace a_cc {\nnamespace {\n}\n}\n}\n";
  EXPECT_THAT(FileLocalFaults({"ir/a.cc", good}), IsEmpty());
  EXPECT_THAT(FileLocalFaults({"ir/a.cc", "int a;  // namespace {\n"}), IsEmpty());
  EXPECT_THAT(FileLocalFaults({"ir/text/b.cc", good}),
              ElementsAre("ir/text/b.cc: wanted namespace b_cc around each unnamed namespace"));
  EXPECT_THAT(FileLocalFaults({"tests/ir/a.cc", good + "namespace {\n}\n"}),
              ElementsAre("tests/ir/a.cc: wanted namespace a_cc around each unnamed namespace"));
  EXPECT_THAT(FileLocalFaults({"tools/programs/simulate.cc", "namespace {\n}\n"}), IsEmpty());
}

TEST(NamespaceFaults, WantsThatOfTheFolder) {
  const auto faults = [](const char* path, const std::string& name) {
    return NamespaceFaults({path, "namespace " + name + " {\n}\n"});
  };
  EXPECT_THAT(faults("ir/text/a.h", "orrery::ir"), IsEmpty());
  EXPECT_THAT(faults("ir/text/a.h", "orrery::ir::text"), IsEmpty());
  EXPECT_THAT(faults("ir/text/a.h", "orrery::ir::a"), IsEmpty());
  EXPECT_THAT(faults("support/a.h", "orrery"), IsEmpty());
  EXPECT_THAT(faults("tests/cli/a.h", "orrery::any"), IsEmpty());
  EXPECT_THAT(faults("ir/a.h", "orrery::tools"),
              ElementsAre("ir/a.h: namespace orrery::tools; wanted orrery::ir"));
  EXPECT_THAT(faults("transforms/b/a.h", "orrery::b"),
              ElementsAre("transforms/b/a.h: namespace orrery::b; wanted orrery::transforms"));
  EXPECT_THAT(faults("ir/a.h", "orrery"),
              ElementsAre("ir/a.h: namespace orrery; wanted orrery::ir"));
}

TEST(MixedNamespaces, AreThoseOfOneRoom) {
  const auto header = [](const char* path, const std::string& name) {
    return Source{path, "namespace " + name + " {\n}\n"};
  };
  const Source a = header("ir/text/a.h", "orrery::ir");
  EXPECT_THAT(MixedNamespaces({a, header("ir/text/b.h", "orrery::ir"),
                               header("ir/text/c.h", "orrery::ir::c"),
                               header("ir/text/d.cc", "orrery::ir::text"),
                               header("ir/text/e_test_util.h", "orrery::ir::text"),
                               header("ir/more/f.h", "orrery::ir::more")}),
              IsEmpty());
  EXPECT_THAT(MixedNamespaces({a, header("ir/text/b.h", "orrery::ir::text")}),
              ElementsAre("ir/text: headers stand in orrery::ir and orrery::ir::text"));
}

TEST(SharedStems, AreThoseOfOneHouse) {
  EXPECT_THAT(SharedStems({{"ir/a.cc", ""}, {"ir/a.h", ""}, {"lowering/a.cc", ""}}), IsEmpty());
  EXPECT_THAT(SharedStems({{"tests/cli/a.cc", ""}, {"tests/golden/a.cc", ""}}), IsEmpty());
  EXPECT_THAT(SharedStems({{"bench/a.cc", ""}, {"bench/b/a.cc", ""}}), IsEmpty());
  EXPECT_THAT(SharedStems({{"ir/a.cc", ""}, {"ir/text/a.cc", ""}}),
              ElementsAre("ir/a.cc and ir/text/a.cc have one stem"));
  EXPECT_THAT(SharedStems({{"tests/cli/a.cc", ""}, {"tests/cli/more/a.cc", ""}}),
              ElementsAre("tests/cli/a.cc and tests/cli/more/a.cc have one stem"));
}

TEST(FullFolders, CountWhatStandsInThemDirectly) {
  const std::vector<Source> sources = {{"a/1.cc", ""}, {"a/2.h", ""}, {"a/b/3.cc", ""}};
  EXPECT_THAT(FullFolders(sources, 2), IsEmpty());
  EXPECT_THAT(FullFolders(sources, 1), ElementsAre("a has 2 sources"));
}

TEST(LinksOfTestFolders, AreForTestsAndBenchmarksAlone) {
  FolderTargets targets = {{"ir", {"ir", {}, {"oracle"}}},
                           {"oracle", {"oracle", {"ir"}, {}, true}}};
  const std::string link = "target_link_libraries(x PRIVATE orrery_oracle)\n";
  EXPECT_THAT(LinksOfTestFolders(targets, {{"bench/CMakeLists.txt", link}}), IsEmpty());
  EXPECT_THAT(LinksOfTestFolders(targets, {{"tests/a/CMakeLists.txt", link}}), IsEmpty());
  EXPECT_THAT(LinksOfTestFolders(targets, {{"tools/CMakeLists.txt", link}}),
              ElementsAre("tools/CMakeLists.txt links oracle, which is for tests"));
  targets["more"] = {"more", {"oracle"}, {}, true};
  EXPECT_THAT(LinksOfTestFolders(targets, {}), IsEmpty());
  targets["tools"] = {"tools", {"oracle"}, {}};
  EXPECT_THAT(LinksOfTestFolders(targets, {}),
              ElementsAre("tools links oracle, which is for tests"));
}

TEST(UntestedHeaders, AreThoseThatNoTestIncludes) {
  const std::string includes = "#include \"ir/a.h\"\n#include \"ir/b.def\"\n";
  EXPECT_THAT(UntestedHeaders("ir/a.h\nir/b.def\n", {{"ir/c_test.cc", includes}}), IsEmpty());
  EXPECT_THAT(UntestedHeaders("ir/a.h\nir/d.h\n", {{"tests/ir/c_test.cc", includes}}),
              ElementsAre("ir/d.h is included by no test"));
  // What only helps tests shows nothing.
  EXPECT_THAT(UntestedHeaders("ir/a.h\n", {{"ir/c.cc", includes}, {"ir/c_test_util.h", includes}}),
              ElementsAre("ir/a.h is included by no test"));
  EXPECT_THAT(UntestedHeaders("", {}), IsEmpty());
}

}  // namespace
}  // namespace rooms_test_cc
}  // namespace orrery::tidy
