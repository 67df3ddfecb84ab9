#ifndef ORRERY_SUPPORT_FILE_H_
#define ORRERY_SUPPORT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery {

/// The whole file. Not found, a folder, unreadable: one line that names `path`.
absl::StatusOr<std::string> ReadFile(const std::string& path);

/// Writes `path` whole or not at all: into a neighbour first, which is then renamed over it. Makes
/// the folder when it is missing.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

/// From here on SIGINT, SIGTERM and SIGHUP remove what WriteFile has half written before they end
/// the process. For programs; a library leaves signals to its host.
void CleanUpOnSignals();

}  // namespace orrery

#endif  // ORRERY_SUPPORT_FILE_H_
