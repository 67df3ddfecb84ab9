#ifndef ORRERY_TOOLS_REPORTS_GZIP_TEST_UTIL_H_
#define ORRERY_TOOLS_REPORTS_GZIP_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

// For tests only.

namespace orrery::tools {

/// What was packed by gzip, at most 16 MiB of it.
inline std::string Unpacked(std::string packed) {
  z_stream stream = {};
  constexpr int kGzipWindow = 15 + 16;
  EXPECT_EQ(inflateInit2(&stream, kGzipWindow), Z_OK);
  std::string text(size_t{1} << 24, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_GZIP_TEST_UTIL_H_
