#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/flags.h"

namespace orrery::tools {

absl::Status CheckOutputs(std::span<const std::string> paths) {
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (paths[i].empty() || paths[i] != paths[j]) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(paths[i], ": two outputs go to this file; wanted one each"));
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::tools
