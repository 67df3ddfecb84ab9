#include "support/json_number.h"

#include <gtest/gtest.h>

#include <limits>

#include "nlohmann/json.hpp"

namespace orrery {
namespace json_number_test_cc {
namespace {

std::optional<int64_t> Read(const char* text) { return WholeNumber(nlohmann::json::parse(text)); }

TEST(WholeNumber, IsReadHoweverItIsWritten) {
  EXPECT_EQ(Read("8"), 8);
  EXPECT_EQ(Read("-8"), -8);
  EXPECT_EQ(Read("8.0"), 8);
  EXPECT_EQ(Read("-8e2"), -800);
  EXPECT_EQ(Read("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Read("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Read("-9223372036854775808.0"), std::numeric_limits<int64_t>::min());
}

TEST(WholeNumber, IsNothingElse) {
  for (const char* text :
       {"0.5", "-1e-300", "1e308", "-1e308", "9223372036854775808", "9223372036854775808.0",
        "18446744073709551615", "true", "null", "\"8\"", "[8]", "{}"}) {
    EXPECT_EQ(Read(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace json_number_test_cc
}  // namespace orrery
