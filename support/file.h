#ifndef ORRERY_SUPPORT_FILE_H_
#define ORRERY_SUPPORT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery {

/// Bytes that a file may have which is read whole. What has no size to look at, a pipe or a device,
/// may never end.
struct ReadLimits {
  int64_t file = int64_t{1} << 30;
  int64_t stream = int64_t{1} << 28;
};

/// The whole file. Not found, a folder, unreadable, too large: one line that names `path`. What is
/// too large is not held.
absl::StatusOr<std::string> ReadFile(const std::string& path, const ReadLimits& limits = {});

/// Writes `path` whole or not at all: into a neighbour first, which is then renamed over it. Makes
/// the folder when it is missing. A file that is there keeps its mode and its owner, and a link
/// stays one: what it leads to is written. Neighbours that a killed process left are removed.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

/// Whether WriteFile could write `path` now, as far as can be told before there are contents:
/// nothing is left behind. The error is one line that names `path`.
absl::Status CheckWritable(const std::string& path);

/// Whether two paths lead to one file, by other spellings, links of either kind, or a name that
/// does not exist yet.
bool AreOneFile(const std::string& a, const std::string& b);

/// From here on SIGINT, SIGTERM and SIGHUP remove what WriteFile has half written before they end
/// the process. For programs; a library leaves signals to its host.
void CleanUpOnSignals();

/// Removes what WriteFile has half written; may be called from a signal handler. For who ends the
/// process.
void RemoveHalfWritten();

}  // namespace orrery

#endif  // ORRERY_SUPPORT_FILE_H_
