#include "support/numbers/median.h"

#include <gtest/gtest.h>

namespace orrery {
namespace median_test_cc {
namespace {

TEST(Median, IsInTheMiddle) {
  EXPECT_EQ(MedianOf({}), 0);
  EXPECT_EQ(MedianOf({7}), 7);
  EXPECT_EQ(MedianOf({9, 1, 2}), 2);
  EXPECT_EQ(MedianOf({9, 1, 2, 4}), 3);
}

}  // namespace
}  // namespace median_test_cc
}  // namespace orrery
