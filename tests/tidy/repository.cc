#include "tests/tidy/repository.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "support/file.h"
#include "support/paths_test_util.h"

namespace orrery::tidy {
namespace repository_cc {
namespace {

bool IsSkipped(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  return absl::StartsWith(name, "build") || absl::StartsWith(name, ".") || name == "out";
}

}  // namespace
}  // namespace repository_cc

std::vector<Source> ReadSources(const std::vector<std::string>& endings) {
  const std::filesystem::path root = SourceDir();
  std::vector<Source> sources;
  for (auto at = std::filesystem::recursive_directory_iterator(root);
       at != std::filesystem::end(at); ++at) {
    if (at->is_directory() && repository_cc::IsSkipped(at->path())) at.disable_recursion_pending();
    const std::string path = at->path().lexically_relative(root).string();
    const bool wanted = std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) {
      return absl::EndsWith(path, ending);
    });
    if (wanted && at->is_regular_file()) sources.push_back({path, ReadFile(at->path()).value()});
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return sources;
}

const std::vector<Source>& Sources() {
  static const auto& kSources = *new std::vector<Source>(ReadSources({".h", ".cc"}));
  return kSources;
}

FolderTargets ReadTargets() {
  FolderTargets targets;
  for (const Source& cmake : ReadSources({"/CMakeLists.txt"})) {
    for (FolderTarget& target : ParseFolderTargets(cmake.text)) {
      targets[std::filesystem::path(cmake.path).parent_path().string()] = std::move(target);
    }
  }
  // Which the list of tools gives all of its rooms.
  targets["tools/programs"] = {
      "programs",
      {"simulator_goodput", "tools", "tools_goodput", "tools_jitter", "tools_parameter_server",
       "tools_planning", "tools_redistribution", "tools_searches", "tools_validation"},
      {}};
  return targets;
}

}  // namespace orrery::tidy
