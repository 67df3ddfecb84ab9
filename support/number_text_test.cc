#include "support/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

namespace orrery {
namespace number_text_test_cc {
namespace {

TEST(NumberText, WritesEachNumberInThreeWays) {
  struct Row {
    double value;
    const char *shortest, *fewest, *seventeen;
  };
  const Row rows[] = {
      {0, "0", "0", "0"},
      {-0.0, "-0", "-0", "-0"},
      {0.5, "0.5", "0.5", "0.5"},
      {10, "10", "1e+01", "10"},
      {16, "16", "16", "16"},
      {0.1, "0.1", "0.1", "0.10000000000000001"},
      {0.0001, "1e-04", "0.0001", "0.0001"},
      {0.00015, "0.00015", "0.00015", "0.00014999999999999999"},
      {120000, "120000", "1.2e+05", "120000"},
      {1e6, "1e+06", "1e+06", "1000000"},
      {-2.5e-9, "-2.5e-09", "-2.5e-09", "-2.5000000000000001e-09"},
      {1.0 / 3, "0.3333333333333333", "0.3333333333333333", "0.33333333333333331"},
      {1e300, "1e+300", "1e+300", "1.0000000000000001e+300"},
      {std::numeric_limits<double>::infinity(), "inf", "inf", "inf"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ShortestText(row.value), row.shortest);
    EXPECT_EQ(FewestDigits(row.value), row.fewest);
    EXPECT_EQ(SeventeenDigits(row.value), row.seventeen);
  }
  EXPECT_EQ(ShortestText(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(NumberText, ReadsBackAsTheSameNumber) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value) || !std::isnormal(value)) continue;
    for (const std::string& text :
         {ShortestText(value), FewestDigits(value), SeventeenDigits(value)}) {
      EXPECT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    }
    EXPECT_LE(ShortestText(value).size(), FewestDigits(value).size());
  }
}

TEST(ShortNumber, HasFourFiguresAndAPrefix) {
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(0.0125), "0.0125");
  EXPECT_EQ(ShortNumber(11.7), "11.7");
  EXPECT_EQ(ShortNumber(1034.09), "1034");
  EXPECT_EQ(ShortNumber(9999.4), "9999");
  EXPECT_EQ(ShortNumber(9999.96), "10 k");
  EXPECT_EQ(ShortNumber(493609.65), "493.6 k");
  EXPECT_EQ(ShortNumber(999960), "1 M");
  EXPECT_EQ(ShortNumber(3225893.94), "3.226 M");
  EXPECT_EQ(ShortNumber(-47.73e9), "-47.73 G");
  EXPECT_EQ(ShortNumber(2.5e15), "2500 T");
}

}  // namespace
}  // namespace number_text_test_cc
}  // namespace orrery
