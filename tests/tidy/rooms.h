#ifndef ORRERY_TESTS_TIDY_ROOMS_H_
#define ORRERY_TESTS_TIDY_ROOMS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/tidy/includes.h"
#include "tests/tidy/scan.h"

// How files stand in their rooms: a room is a folder with a CMake target of its own.

namespace orrery::tidy {

/// Names that are local to a file, where the file is compiled together with others: unnamed
/// namespaces that do not stand in `namespace <stem>_cc`. "ir/a.cc: wanted namespace a_cc around
/// each unnamed namespace". Programs and benchmarks, of one file each, may do as they like.
std::vector<std::string> FileLocalFaults(const Source& source);

/// Namespaces of a header that do not follow its folder: they are `orrery::` and the top-level
/// folder, and behind it at most a folder of its path or its own stem, for words that mean other
/// things elsewhere. "ir/a.h: namespace orrery::tools; wanted orrery::ir". Headers of `support`
/// stand in `orrery`; those of tests may do as they like.
std::vector<std::string> NamespaceFaults(const Source& source);

/// Rooms whose headers stand in several namespaces: a reader has to know which words belong to
/// which. That of a header's own stem does not count, nor what tests use.
/// "ir/text: headers stand in orrery::ir and orrery::ir::text".
std::vector<std::string> MixedNamespaces(const std::vector<Source>& sources);

/// Sources of one stem in one top-level folder, or in one folder of tests: their file-local names
/// would stand in one namespace. "ir/text/a.cc and ir/a.cc have one stem".
std::vector<std::string> SharedStems(const std::vector<Source>& sources);

/// Folders with more than `limit` sources: "ir has 61 sources".
std::vector<std::string> FullFolders(const std::vector<Source>& sources, size_t limit);

/// What links a folder that is FOR_TESTS without being so: other folders, by `targets`, and
/// programs, by the texts of the CMakeLists.txt that add them. Tests and benchmarks may.
/// "ir links ir_execution, which is for tests".
std::vector<std::string> LinksOfTestFolders(const FolderTargets& targets,
                                            const std::vector<Source>& cmake);

/// Headers of `list`, one a line, that no `_test.cc` among `sources` includes by itself:
/// "ir/copy.h is included by no test".
std::vector<std::string> UntestedHeaders(absl::string_view list,
                                         const std::vector<Source>& sources);

}  // namespace orrery::tidy

#endif  // ORRERY_TESTS_TIDY_ROOMS_H_
