#include "support/json_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace orrery {
namespace json_text_test_cc {
namespace {

TEST(JsonText, EscapesStrings) {
  EXPECT_EQ(JsonString("all-reduce dp"), R"("all-reduce dp")");
  EXPECT_EQ(JsonString("a \"b\" \\ \n"), R"("a \"b\" \\ \n")");
  EXPECT_EQ(JsonString("é\xff"), "\"é\xEF\xBF\xBD\"");
}

TEST(JsonText, WritesNumbersThatReadBack) {
  EXPECT_EQ(JsonNumber(0), "0");
  EXPECT_EQ(JsonNumber(0.1), "0.10000000000000001");
  EXPECT_DEATH(JsonNumber(std::numeric_limits<double>::infinity()), "JSON has no inf");
}

}  // namespace
}  // namespace json_text_test_cc
}  // namespace orrery
