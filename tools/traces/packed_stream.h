#ifndef ORRERY_TOOLS_TRACES_PACKED_STREAM_H_
#define ORRERY_TOOLS_TRACES_PACKED_STREAM_H_

#include <memory>
#include <ostream>
#include <streambuf>
#include <string>

#include "absl/status/statusor.h"
#include "support/file.h"

namespace orrery::tools {

/// A stream to a file that appears whole or not at all: gzipped, without a time in it, when its
/// name ends in ".gz". However much is written, it takes no more memory.
class PackedStream : public std::ostream {
 public:
  static absl::StatusOr<std::unique_ptr<PackedStream>> Open(const std::string& path);
  ~PackedStream() override;

  /// All is written. Called once, last.
  absl::Status Finish();

 private:
  class Buffer;

  explicit PackedStream(std::unique_ptr<Buffer> buffer);

  std::unique_ptr<Buffer> buffer_;
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TRACES_PACKED_STREAM_H_
