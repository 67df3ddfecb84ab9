#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

// Types over the limits, as LargeTypes says it behind the path and the line, and why.
const std::map<std::string, std::string>& KnownTypes() {
  static const auto& types = *new std::map<std::string, std::string>{
      // Records: one line of a table fills in what it needs.
      {"orrery::ir::OpInfo has 24 fields", "the record of an op"},
      {"orrery::cluster::TopologyKind has 16 fields", "the record of a topology"},
      {"orrery::transforms::PipelineSchedule has 13 fields", "the record of a schedule"},
      {"orrery::transforms::AxisInfo has 27 fields", "the record of an axis"},
      // Columns: what is printed, or read from a file, name by name.
      {"orrery::simulator::Report has 14 fields", "a column each"},
      {"orrery::golden::CalculonCase has 22 fields", "as the file has them"},
      {"orrery::tools::MeasuredStep has 23 fields", "as the file has them"},
      {"orrery::tools::ModelFlags has 14 fields", "a flag each"},
      // Structures of arrays.
      {"orrery::ir::Function has 15 fields", "arrays of ops and of values"},
      {"orrery::simulator::Program has 19 fields", "arrays of tasks, flows, memory events"},
      {"orrery::simulator::FluidNetwork has 13 fields", "arrays of flows and of links"},
      {"orrery::lowering::TemplateTask has 15 fields",
       "one task of any kind: kernel, send, collective"},
      // Arguments of one computation, set once.
      {"orrery::ir::attention::AttentionShape has 20 fields", "sizes and strides of five tensors"},
      {"orrery::importer::GraphImporter has 13 fields", "state of one walk through a file"},
      {"orrery::importer::GraphImporter has 5 parameters", "made at one place"},
      {"orrery::importer::NodeContext has 5 parameters", "made at one place"},
      {"orrery::ir::GradientContext has 5 parameters", "made at one place"},
      {"orrery::lowering::CollectiveTimes has 5 parameters", "made at one place"},
      {"orrery::lowering::Instantiator has 6 parameters", "made at one place"},
      {"orrery::lowering::StageMaker has 5 parameters", "made at one place"},
      {"orrery::transforms::redistribution::DtensorBound has 5 parameters", "made at one place"},
      {"orrery::transforms::StagePart has 5 parameters", "made at one place"},
  };
  return types;
}

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
  std::set<std::string> unseen;
  for (const auto& [type, reason] : KnownTypes()) unseen.insert(type);
  for (const Source& source : Sources()) {
    if (!absl::EndsWith(source.path, ".h")) continue;
    for (const std::string& fault : LargeTypes(source, {})) {
      if (unseen.erase(fault.substr(fault.find(' ') + 1)) > 0) continue;
      ADD_FAILURE() << fault << "; wanted at most " << TypeLimits().fields << " fields and "
                    << TypeLimits().constructor_parameters
                    << " parameters of a constructor, or \"so many fields\" or \"so many "
                       "parameters\" in the comment that says why";
    }
  }
  EXPECT_THAT(unseen, IsEmpty()) << "is no longer so; delete these lines";
}

}  // namespace
}  // namespace house_test_cc
}  // namespace orrery::tidy
