#include "support/numbers/mix_bits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace orrery {
namespace mix_bits_test_cc {
namespace {

// The first numbers of SplitMix64 with the seed 1234567, as its authors' program prints them.
TEST(MixBits, AreSplitMix64) {
  constexpr uint64_t kSeed = 1'234'567;
  EXPECT_EQ(MixBits(kSeed + kMixStep), 6'457'827'717'110'365'317u);
  EXPECT_EQ(MixBits(kSeed + 2 * kMixStep), 3'203'168'211'198'807'973u);
  EXPECT_EQ(MixBits(0), 0u);
}

TEST(MixBits, OpenUnitHasNoEnds) {
  EXPECT_GT(OpenUnit(0), 0);
  EXPECT_LT(OpenUnit(std::numeric_limits<uint64_t>::max()), 1);
  EXPECT_DOUBLE_EQ(OpenUnit(uint64_t{1} << 63), 0.5);
}

}  // namespace
}  // namespace mix_bits_test_cc
}  // namespace orrery
