#include "search/spaces/value_numbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace orrery::search {
namespace value_numbers_test_cc {
namespace {

std::vector<uint32_t> AllOf(const ValueNumbers& numbers) {
  std::vector<uint32_t> all;
  for (size_t i = 0; i < numbers.size(); ++i) all.push_back(numbers[i]);
  return all;
}

TEST(ValueNumbers, StandBehindZeros) {
  ValueNumbers numbers;
  EXPECT_TRUE(numbers.empty());
  numbers.Add(3, 7);
  numbers.Add(4, 255);
  EXPECT_EQ(AllOf(numbers), (std::vector<uint32_t>{0, 0, 0, 7, 255}));
  EXPECT_EQ(numbers.back(), 255u);
}

// In two bytes each from the first that wants them on.
TEST(ValueNumbers, MayBeLarge) {
  ValueNumbers numbers;
  numbers.Add(1, 255);
  numbers.Add(3, 256);
  numbers.Add(4, 65'535);
  numbers.ShrinkToFit();
  EXPECT_EQ(AllOf(numbers), (std::vector<uint32_t>{0, 255, 0, 256, 65'535}));
  numbers.RemoveLast();
  EXPECT_EQ(numbers.back(), 256u);
  for (int i = 0; i < 4; ++i) numbers.RemoveLast();
  EXPECT_TRUE(numbers.empty());
  numbers.Add(0, 9);
  EXPECT_EQ(AllOf(numbers), (std::vector<uint32_t>{9}));
}

TEST(ValueNumbersDeathTest, EndBeforeTheLargest) {
  ValueNumbers numbers;
  EXPECT_DEATH(numbers.Add(0, 65'536), "65536 at 0");
}

}  // namespace
}  // namespace value_numbers_test_cc
}  // namespace orrery::search
