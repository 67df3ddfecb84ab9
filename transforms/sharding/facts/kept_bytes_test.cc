#include "transforms/sharding/facts/kept_bytes.h"

#include <gtest/gtest.h>

namespace orrery::transforms {
namespace kept_bytes_test_cc {
namespace {

TEST(KeptBytes, CountByWhatTheyAreKeptAs) {
  KeptBytes kept;
  kept.Add(KeptAs::kParameter, 100);
  kept.Add(KeptAs::kActivation, 10);
  kept.EndGroup();
  kept.Add(KeptAs::kGradient, 40);
  kept.Add(KeptAs::kState, 80);
  kept.Add(KeptAs::kData, 1);
  kept.Add(KeptAs::kNothing, 1000);
  EXPECT_EQ(kept.Sum(FactorsOf({}, 1)), 231);
  EXPECT_EQ(kept.Sum(FactorsOf({}, 4)), 261);
  EXPECT_EQ(kept.Sum(FactorsOf({.parameters = 0.5, .gradients = 0.25, .states = 0.125}, 2)), 91);
}

// To the bit as a loop over nodes adds it up: a tenth and a third have no exact double.
TEST(KeptBytes, AddUpGroupByGroup) {
  KeptBytes kept;
  double sum = 0;
  for (int i = 1; i < 100; ++i) {
    double group = 0;
    for (int k = 0; k < i % 4; ++k) {
      kept.Add(KeptAs::kState, i + k);
      group += 1.0 / 3 * (i + k);
    }
    kept.EndGroup();
    sum += group;
  }
  EXPECT_EQ(kept.Sum(FactorsOf({.states = 1.0 / 3}, 1)), sum);
}

TEST(KeptBytes, OfNothingAreNone) {
  KeptBytes kept;
  kept.EndGroup();
  EXPECT_EQ(kept.Sum(FactorsOf({}, 1)), 0);
  EXPECT_EQ(kept.held_bytes(), 0);
}

}  // namespace
}  // namespace kept_bytes_test_cc
}  // namespace orrery::transforms
