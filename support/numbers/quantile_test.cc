#include "support/numbers/quantile.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace quantile_test_cc {
namespace {

TEST(Quantile, IsNumpysPercentile) {
  const std::vector<double> values = {1, 2, 3, 4, 10};
  EXPECT_DOUBLE_EQ(QuantileOf(values, 0), 1);
  EXPECT_DOUBLE_EQ(QuantileOf(values, 0.05), 1.2);
  EXPECT_DOUBLE_EQ(QuantileOf(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(QuantileOf(values, 0.95), 8.8);
  EXPECT_DOUBLE_EQ(QuantileOf(values, 1), 10);
  EXPECT_DOUBLE_EQ(QuantileOf(std::vector<double>{7}, 0.3), 7);
}

}  // namespace
}  // namespace quantile_test_cc
}  // namespace orrery
