#include "tools/reports/gzip.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/reports/gzip_test_util.h"

namespace orrery::tools {
namespace gzip_test_cc {
namespace {

TEST(Gzip, UnpacksToTheSame) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i * i % 977);
  for (const std::string& one : {std::string(), std::string("a\0b", 3), text}) {
    const std::string packed = Gzip(one).value();
    EXPECT_EQ(Unpacked(packed), one);
    EXPECT_EQ(Gzip(one).value(), packed);
  }
  EXPECT_LT(Gzip(text).value().size(), text.size() / 2);
}

}  // namespace
}  // namespace gzip_test_cc
}  // namespace orrery::tools
