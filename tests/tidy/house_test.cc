#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tidy/repository.h"
#include "tests/tidy/rooms.h"
#include "tests/tidy/types.h"

// How the house is built, on the sources of this repository: what lets files be compiled together,
// how large rooms are, who links whom, how large types are.

namespace orrery::tidy {
namespace house_test_cc {
namespace {

using testing::IsEmpty;

constexpr size_t kSourcesOfARoom = 60;
constexpr absl::string_view kLargestRoom = "ir/ops";  // a file is a family of ops

TEST(House, FileLocalNamesStandInANamespaceOfTheirFile) {
  for (const Source& source : Sources()) EXPECT_THAT(FileLocalFaults(source), IsEmpty());
  EXPECT_THAT(SharedStems(Sources()), IsEmpty());
}

TEST(House, NamespacesFollowFolders) {
  for (const Source& source : Sources()) EXPECT_THAT(NamespaceFaults(source), IsEmpty());
  EXPECT_THAT(MixedNamespaces(Sources()), IsEmpty());
}

TEST(House, RoomsAreSmall) {
  std::vector<Source> sources;
  for (const Source& source : Sources()) {
    if (source.path.substr(0, source.path.rfind('/')) != kLargestRoom) sources.push_back(source);
  }
  EXPECT_LT(sources.size(), Sources().size());
  EXPECT_THAT(FullFolders(sources, kSourcesOfARoom), IsEmpty());
}

TEST(House, ProgramsDoNotLinkWhatIsForTests) {
  const FolderTargets targets = ReadTargets();
  EXPECT_GE(std::count_if(targets.begin(), targets.end(),
                          [](const auto& folder) { return folder.second.for_tests; }),
            3);
  EXPECT_THAT(LinksOfTestFolders(targets, ReadSources({"/CMakeLists.txt"})), IsEmpty());
}

// What others build on has a test that reads it by itself.
TEST(House, EveryPublicHeaderHasATest) {
  const std::vector<Source> lists = ReadSources({"cmake/public_headers.txt"});
  ASSERT_EQ(lists.size(), 1u);
  EXPECT_GT(std::count(lists[0].text.begin(), lists[0].text.end(), '\n'), 100);
  EXPECT_THAT(UntestedHeaders(lists[0].text, Sources()), IsEmpty());
}

TEST(House, ATypeIsDefinedOnce) { EXPECT_THAT(TypesDefinedTwice(Sources()), IsEmpty()); }

TEST(House, LargeTypesSayWhy) {
  for (const Source& source : Sources()) {
    EXPECT_THAT(LargeTypes(source, {}), IsEmpty())
        << "wanted at most " << TypeLimits().fields << " fields and "
        << TypeLimits().constructor_parameters
        << " parameters of a constructor, or \"so many fields\" or \"so many parameters\" in the "
           "comment that says why";
  }
}

}  // namespace
}  // namespace house_test_cc
}  // namespace orrery::tidy
