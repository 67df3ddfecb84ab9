#ifndef ORRERY_SUPPORT_FILE_H_
#define ORRERY_SUPPORT_FILE_H_

#include <cstdint>
#include <memory>
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

/// The same piece by piece, for what is larger than one would hold: `path` is there, or is another,
/// once Finish has returned. A few at a time, opened and finished by one thread.
class FileWriter {
 public:
  /// Begins to write `path`.
  static absl::StatusOr<std::unique_ptr<FileWriter>> Open(const std::string& path);
  /// Unless finished, nothing is left of it.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// Whether others may write there meanwhile: standard output or error, or a file that is open.
  bool is_shared() const { return is_shared_; }
  /// Appends `piece`.
  absl::Status Write(absl::string_view piece);
  /// All is written. Called once, after which nothing may be.
  absl::Status Finish();

 private:
  FileWriter() = default;

  std::string path_;     // as it was given
  std::string target_;   // what is replaced; empty where `partial_` is written into for good
  std::string partial_;  // what is open
  bool is_shared_ = false;
  int file_ = -1;
};

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
