#include "lowering/blocks/expert_exchange.h"

#include <gtest/gtest.h>

namespace orrery::lowering {
namespace expert_exchange_test_cc {
namespace {

TEST(DistinctShare, IsOfPlacesDrawnEvenly) {
  EXPECT_EQ(DistinctShare(1, 8), 1);
  EXPECT_EQ(DistinctShare(0, 8), 1);
  EXPECT_DOUBLE_EQ(DistinctShare(8, 1), 1.0 / 8);  // all of one place are one
  EXPECT_DOUBLE_EQ(DistinctShare(2, 2), 0.75);     // the second is elsewhere half of the time
  // DeepSeek-V3 over four nodes: 3.6 of 8.
  EXPECT_NEAR(DistinctShare(8, 4), 4 * (1 - 0.10011) / 8, 1e-5);
  EXPECT_NEAR(DistinctShare(8, 1'000'000), 1, 1e-5);
}

}  // namespace
}  // namespace expert_exchange_test_cc
}  // namespace orrery::lowering
