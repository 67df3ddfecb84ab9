#include "tools/reports/gzip.h"

#include <zlib.h>

#include "absl/status/status.h"

namespace orrery::tools {

absl::StatusOr<std::string> Gzip(absl::string_view text) {
  if (text.size() >= (size_t{1} << 32)) {
    return absl::InvalidArgumentError("got 4 GiB to pack; wanted less");
  }
  z_stream stream = {};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::InternalError("zlib cannot start");
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return absl::InternalError("zlib cannot pack it");
  return packed;
}

}  // namespace orrery::tools
