#ifndef ORRERY_TESTS_TIDY_INCLUDES_H_
#define ORRERY_TESTS_TIDY_INCLUDES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/tidy/scan.h"

// Who includes whom, and who may.

namespace orrery::tidy {

/// The paths between quotes in a source's #include lines.
std::vector<std::string> Includes(absl::string_view text);

/// From each node to those it points at.
using Graph = std::map<std::string, std::set<std::string>>;

/// Which source includes which; only sources that are in the list.
Graph IncludeGraph(const std::vector<Source>& sources);

/// The folders that the sources stand in.
std::set<std::string> FoldersOf(const std::vector<Source>& sources);

/// The same as IncludeGraph, from folder to folder: a node is the innermost of `folders` that a
/// source stands in. Tests are left out: they may span folders.
Graph FolderGraph(const std::vector<Source>& sources, const std::set<std::string>& folders);

/// The nodes of one cycle in their order, the first one again at the end; empty when there is none.
std::vector<std::string> FindCycle(const Graph& graph);

/// A call of orrery_add_folder in a CMakeLists.txt: the target and what it links.
struct FolderTarget {
  std::string name;             // "ir"
  std::set<std::string> links;  // targets of other folders, without "orrery::"
  std::set<std::string> test_links;
  bool for_tests = false;  // FOR_TESTS: no program links it
};

/// The calls in the text of a CMakeLists.txt.
std::vector<FolderTarget> ParseFolderTargets(absl::string_view cmake);

/// The folders that the calls of target_link_libraries in the text of a CMakeLists.txt name, as
/// "orrery::ir" or as "orrery_ir".
std::set<std::string> ParseProgramLinks(absl::string_view cmake);

/// All folders by the path of their CMakeLists.txt: "transforms/schedules".
using FolderTargets = std::map<std::string, FolderTarget>;

/// Which target links which.
Graph LinkGraph(const FolderTargets& targets);

/// The folder with a target that `path` stands in; empty when there is none.
std::string FolderOf(absl::string_view path, const FolderTargets& targets);

/// Includes of a folder that is not linked, directly or through others:
/// "simulator/a.cc includes ir/type.h; simulator does not link ir".
std::vector<std::string> UpwardIncludes(const std::vector<Source>& sources,
                                        const FolderTargets& targets);

}  // namespace orrery::tidy

#endif  // ORRERY_TESTS_TIDY_INCLUDES_H_
