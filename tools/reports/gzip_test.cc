#include "tools/reports/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace orrery::tools {
namespace gzip_test_cc {
namespace {

std::string Unpacked(const std::string& packed, size_t size) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string text(size + 1, '\0');
  std::string in = packed;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Gzip, UnpacksToTheSame) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i * i % 977);
  for (const std::string& one : {std::string(), std::string("a\0b", 3), text}) {
    const std::string packed = Gzip(one).value();
    EXPECT_EQ(Unpacked(packed, one.size()), one);
    EXPECT_EQ(Gzip(one).value(), packed);
  }
  EXPECT_LT(Gzip(text).value().size(), text.size() / 2);
}

}  // namespace
}  // namespace gzip_test_cc
}  // namespace orrery::tools
