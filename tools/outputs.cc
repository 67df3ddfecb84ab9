#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/flags.h"

namespace orrery::tools {

namespace outputs_cc {
namespace {

// One spelling of what may have several: "a.json", "./a.json", by way of a link.
std::filesystem::path FileOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? std::filesystem::path(path) : file;
}

}  // namespace
}  // namespace outputs_cc

absl::Status CheckOutputs(std::span<const std::string> paths) {
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (paths[i].empty() || paths[j].empty()) continue;
      if (outputs_cc::FileOf(paths[i]) != outputs_cc::FileOf(paths[j])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(paths[i], ": two outputs go to this file; wanted one each"));
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::tools
