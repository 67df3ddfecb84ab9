#include "cost_models/collectives/slower.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace orrery::cost_models {
namespace slower_test_cc {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

struct Parts {
  int64_t count = 0;
  int64_t rate = 1;
};

bool IsSlower(const Parts& a, const Parts& b) {
  return Slower(a.count, Bandwidth(a.rate), b.count, Bandwidth(b.rate));
}

// a.count / a.rate > b.count / b.rate, by whole parts and what is left of them: nothing is
// multiplied. Rates are positive.
bool IsSlowerByDivision(Parts a, Parts b) {
  while (true) {
    const int64_t whole_a = a.count / a.rate, whole_b = b.count / b.rate;
    if (whole_a != whole_b) return whole_a > whole_b;
    const int64_t left_a = a.count % a.rate, left_b = b.count % b.rate;
    if (left_a == 0 || left_b == 0) return left_a > 0;
    // p/q > r/s where s/r > q/p.
    const Parts swapped_a = {.count = b.rate, .rate = left_b};
    b = {.count = a.rate, .rate = left_a};
    a = swapped_a;
  }
}

TEST(Slower, ComparesPartsOverRates) {
  EXPECT_TRUE(IsSlower({3, 2}, {1, 1}));  // 1.5 > 1
  EXPECT_FALSE(IsSlower({1, 1}, {3, 2}));
  EXPECT_TRUE(IsSlower({2, 10}, {1, 10}));
  EXPECT_TRUE(IsSlower({1, 10}, {1, 11}));  // the same parts at a lower rate
  EXPECT_FALSE(IsSlower({1, 11}, {1, 10}));
}

TEST(Slower, IsStrict) {
  EXPECT_FALSE(IsSlower({1, 1}, {1, 1}));
  EXPECT_FALSE(IsSlower({2, 4}, {3, 6}));
  EXPECT_FALSE(IsSlower({3, 6}, {2, 4}));
  EXPECT_FALSE(IsSlower({0, 7}, {0, 3}));
}

TEST(Slower, NothingIsFasterThanNoParts) {
  EXPECT_TRUE(IsSlower({1, kMost}, {0, 1}));
  EXPECT_FALSE(IsSlower({0, 1}, {1, kMost}));
}

// Nothing ever arrives at a rate of 0.
TEST(Slower, ARateOfZeroIsTheSlowest) {
  EXPECT_TRUE(IsSlower({1, 0}, {kMost, 1}));
  EXPECT_FALSE(IsSlower({kMost, 1}, {1, 0}));
}

// Products of two such numbers have 126 bits; as doubles all four would be equal.
TEST(Slower, IsExactForTheLargestNumbers) {
  EXPECT_TRUE(IsSlower({kMost, kMost - 1}, {kMost - 1, kMost - 1}));
  EXPECT_TRUE(IsSlower({kMost, kMost - 1}, {kMost, kMost}));
  EXPECT_FALSE(IsSlower({kMost - 1, kMost}, {kMost, kMost}));
  EXPECT_FALSE(IsSlower({kMost, kMost}, {kMost, kMost}));
}

TEST(Slower, AgreesWithLongDivision) {
  constexpr unsigned kSeed = 20260511;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  // Few numbers and all numbers: equal quotients, and large ones.
  for (const int64_t most : {int64_t{4}, int64_t{1000}, kMost}) {
    std::uniform_int_distribution<int64_t> count(0, most), rate(1, most);
    for (int i = 0; i < 2000; ++i) {
      const Parts a = {count(random), rate(random)}, b = {count(random), rate(random)};
      ASSERT_EQ(IsSlower(a, b), IsSlowerByDivision(a, b))
          << a.count << "/" << a.rate << " and " << b.count << "/" << b.rate;
      ASSERT_FALSE(IsSlower(a, b) && IsSlower(b, a));
    }
  }
}

}  // namespace
}  // namespace slower_test_cc
}  // namespace orrery::cost_models
