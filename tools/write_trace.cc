#include <zlib.h>

#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simulator/report/chrome_trace.h"
#include "support/file.h"
#include "tools/flags.h"

namespace orrery::tools {
namespace write_trace_cc {
namespace {

// `text` as one gzip member; the header has no time, so that the same text gives the same bytes.
absl::StatusOr<std::string> Gzip(const std::string& text) {
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
  if (result != Z_STREAM_END) return absl::InternalError("zlib cannot pack the trace");
  return packed;
}

}  // namespace
}  // namespace write_trace_cc

absl::Status WriteTrace(const search::Run& run, const std::string& path) {
  return WriteTrace(run.program, run.trace, run.link_use.has_value() ? &*run.link_use : nullptr,
                    path);
}

absl::Status WriteTrace(const simulator::Program& program, const simulator::Trace& trace,
                        const simulator::LinkUse* use, const std::string& path) {
  std::ostringstream text;
  simulator::WriteChromeTrace(program, trace, text, use);
  if (!absl::EndsWith(path, ".gz")) return WriteFile(path, text.str());
  if (text.str().size() >= (size_t{1} << 32)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the trace has more than 4 GiB; try fewer microbatches"));
  }
  const absl::StatusOr<std::string> packed = write_trace_cc::Gzip(text.str());
  return packed.ok() ? WriteFile(path, *packed) : packed.status();
}

}  // namespace orrery::tools
