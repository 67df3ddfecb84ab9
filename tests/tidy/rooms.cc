#include "tests/tidy/rooms.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace orrery::tidy {
namespace rooms_cc {
namespace {

std::string StemOf(absl::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return std::string(absl::StripSuffix(path, ".cc"));
}

// Sources that are programs of their own.
bool IsProgram(absl::string_view path) {
  return absl::StartsWith(path, "bench/") || absl::StartsWith(path, "examples/") ||
         absl::StartsWith(path, "tools/programs/");
}

// What may be compiled together: a top-level folder, or a folder of tests.
std::string HouseOf(absl::string_view path) {
  const size_t slash = path.find('/');
  const bool tests = path.substr(0, slash) == "tests";
  return std::string(path.substr(0, tests ? path.find('/', slash + 1) : slash));
}

int Count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), regex), {}));
}

// The named namespaces of the repository that a source opens.
std::vector<std::string> NamespacesOf(const Source& source) {
  static const std::regex& kNamed = *new std::regex(R"(\bnamespace (orrery[\w:]*)\s*\{)");
  const std::string code = BlankNonCode(source.text);
  std::vector<std::string> names;
  for (std::sregex_iterator it(code.begin(), code.end(), kNamed), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

}  // namespace
}  // namespace rooms_cc

std::vector<std::string> FileLocalFaults(const Source& source) {
  if (!absl::EndsWith(source.path, ".cc") || rooms_cc::IsProgram(source.path)) return {};
  const std::string code = BlankNonCode(source.text);
  const std::string own = rooms_cc::StemOf(source.path) + "_cc";
  const std::string unnamed = R"(\bnamespace\s*\{)";
  const int all = rooms_cc::Count(code, unnamed);
  const int inside =
      rooms_cc::Count(code, absl::StrCat(R"(\bnamespace )", own, R"(\s*\{\s*)", unnamed));
  if (all == inside) return {};
  return {absl::StrCat(source.path, ": wanted namespace ", own, " around each unnamed namespace")};
}

std::vector<std::string> NamespaceFaults(const Source& source) {
  const absl::string_view path = source.path;
  if (!absl::EndsWith(path, ".h") || absl::EndsWith(path, "_test_util.h")) return {};
  if (absl::StartsWith(path, "tests/") || absl::StartsWith(path, "bench/")) return {};
  std::vector<std::string> parts = absl::StrSplit(absl::StripSuffix(path, ".h"), '/');
  const std::string house = parts.front() == "support" ? "orrery" : "orrery::" + parts.front();
  std::vector<std::string> faults;
  for (const std::string& name : rooms_cc::NamespacesOf(source)) {
    const bool nests = std::any_of(parts.begin() + 1, parts.end(), [&](const std::string& part) {
      return name == absl::StrCat(house, "::", part);
    });
    const bool internal = parts.front() == "support" && name == "orrery::internal";
    if (name == house || nests || internal) continue;
    faults.push_back(absl::StrCat(path, ": namespace ", name, "; wanted ", house));
  }
  return faults;
}

std::vector<std::string> MixedNamespaces(const std::vector<Source>& sources) {
  std::map<std::string, std::set<std::string>> names;  // by folder
  for (const Source& source : sources) {
    if (!absl::EndsWith(source.path, ".h") || IsTest(source.path)) continue;
    const size_t slash = source.path.rfind('/');
    const std::string stem(absl::StripSuffix(source.path.substr(slash + 1), ".h"));
    for (std::string& name : rooms_cc::NamespacesOf(source)) {
      const bool internal = name == "orrery::internal";
      if (internal || absl::EndsWith(name, absl::StrCat("::", stem))) continue;
      names[source.path.substr(0, slash)].insert(std::move(name));
    }
  }
  std::vector<std::string> faults;
  for (const auto& [folder, some] : names) {
    if (some.size() < 2) continue;
    faults.push_back(absl::StrCat(folder, ": headers stand in ", absl::StrJoin(some, " and ")));
  }
  return faults;
}

std::vector<std::string> SharedStems(const std::vector<Source>& sources) {
  std::map<std::string, std::string> first;  // by house and stem
  std::vector<std::string> faults;
  for (const Source& source : sources) {
    if (!absl::EndsWith(source.path, ".cc") || rooms_cc::IsProgram(source.path)) continue;
    const auto [other, inserted] = first.emplace(
        absl::StrCat(rooms_cc::HouseOf(source.path), " ", rooms_cc::StemOf(source.path)),
        source.path);
    if (inserted) continue;
    faults.push_back(absl::StrCat(other->second, " and ", source.path, " have one stem"));
  }
  return faults;
}

std::vector<std::string> FullFolders(const std::vector<Source>& sources, size_t limit) {
  std::map<std::string, size_t> counts;
  for (const Source& source : sources) ++counts[source.path.substr(0, source.path.rfind('/'))];
  std::vector<std::string> faults;
  for (const auto& [folder, count] : counts) {
    if (count > limit) faults.push_back(absl::StrCat(folder, " has ", count, " sources"));
  }
  return faults;
}

std::vector<std::string> LinksOfTestFolders(const FolderTargets& targets,
                                            const std::vector<Source>& cmake) {
  std::set<std::string> for_tests;
  for (const auto& [path, target] : targets) {
    if (target.for_tests) for_tests.insert(target.name);
  }
  std::vector<std::string> faults;
  const auto fault = [&faults](absl::string_view who, absl::string_view linked) {
    faults.push_back(absl::StrCat(who, " links ", linked, ", which is for tests"));
  };
  for (const auto& [path, target] : targets) {
    if (target.for_tests) continue;
    for (const std::string& link : target.links) {
      if (for_tests.contains(link)) fault(target.name, link);
    }
  }
  for (const Source& list : cmake) {
    if (absl::StartsWith(list.path, "tests/") || absl::StartsWith(list.path, "bench/")) continue;
    for (const std::string& link : ParseProgramLinks(list.text)) {
      if (for_tests.contains(link)) fault(list.path, link);
    }
  }
  return faults;
}

std::vector<std::string> UntestedHeaders(absl::string_view list,
                                         const std::vector<Source>& sources) {
  std::set<std::string> included;
  for (const Source& source : sources) {
    if (!absl::EndsWith(source.path, "_test.cc")) continue;
    for (std::string& path : Includes(source.text)) included.insert(std::move(path));
  }
  std::vector<std::string> faults;
  for (const absl::string_view header : absl::StrSplit(list, '\n', absl::SkipEmpty())) {
    if (included.contains(std::string(header))) continue;
    faults.push_back(absl::StrCat(header, " is included by no test"));
  }
  return faults;
}

}  // namespace orrery::tidy
