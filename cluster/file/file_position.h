#ifndef ORRERY_CLUSTER_FILE_FILE_POSITION_H_
#define ORRERY_CLUSTER_FILE_FILE_POSITION_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Where in a cluster file something stands, for errors: the line, where the format has lines, and
// the path of fields, "topology.levels[1].speed".

namespace orrery::cluster {

class FilePosition {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;

  /// The whole file; `tree` of its lines is null for JSON. Both must outlive it.
  FilePosition(std::string file, const google::protobuf::Descriptor* message, const Tree* tree);

  /// Field `name` of the message at this position; with `index`, that one of a repeated field. A
  /// field that the file does not have stands where the message does.
  FilePosition At(absl::string_view name, int index = -1) const;

  /// "a.textproto:12: topology.levels[1].speed: message", InvalidArgument.
  absl::Status Error(absl::string_view message) const;
  /// The same for the message of a status that is not ok.
  absl::Status Error(const absl::Status& status) const { return Error(status.message()); }

 private:
  std::string file_;
  const google::protobuf::Descriptor* message_;  // null where a field is no message
  const Tree* tree_;                             // null where no lines are known
  int line_ = -1;                                // from 0; -1 when not known
  std::string path_;
};

/// `text` on one line that prints, cut where it is long: for quoting what a file says.
std::string Quotable(absl::string_view text);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_FILE_FILE_POSITION_H_
