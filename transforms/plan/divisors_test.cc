#include "transforms/plan/divisors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::transforms {
namespace divisors_test_cc {
namespace {

using ::testing::ElementsAre;

TEST(Divisors, AreAllOfThemAscending) {
  EXPECT_THAT(Divisors(1), ElementsAre(1));
  EXPECT_THAT(Divisors(12), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(Divisors(36), ElementsAre(1, 2, 3, 4, 6, 9, 12, 18, 36));
  EXPECT_THAT(Divisors(1'000'000'007), ElementsAre(1, 1'000'000'007));
  for (int64_t n = 1; n <= 200; ++n) {
    std::vector<int64_t> expected;
    for (int64_t d = 1; d <= n; ++d) {
      if (n % d == 0) expected.push_back(d);
    }
    EXPECT_EQ(Divisors(n), expected);
  }
}

}  // namespace
}  // namespace divisors_test_cc
}  // namespace orrery::transforms
