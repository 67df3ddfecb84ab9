#include "cost_models/kernels/attention_in_parts.h"

#include <gtest/gtest.h>

#include "cost_models/kernels/matrix_product.h"

namespace orrery::cost_models {
namespace attention_in_parts_test_cc {
namespace {

cluster::Device A100() { return *cluster::FindDevice("a100-80gb"); }
KernelRates Rates() { return cluster::FindDevice("a100-80gb")->rates; }

double SecondsOf(const AttentionInParts& attention) {
  return PriceAttentionInParts(attention, A100(), Rates()).seconds();
}

// Megatron's 22B model, a rank of eight (Korthikanti et al. 2022, Table 4): to compute the core of
// attention once more takes 1.3 ms of a layer's backward.
constexpr AttentionInParts kOf22B = {.batch = 4,
                                     .heads = 8,
                                     .queries = 2048,
                                     .keys = 2048,
                                     .width = 96,
                                     .value_width = 96,
                                     .visible = 0.5,
                                     .dropout = true};

TEST(AttentionInParts, IsAsMeasured) {
  const double all = SecondsOf(kOf22B) + KernelsOf(kOf22B) * Rates().start.seconds();
  EXPECT_GT(all, 1.0e-3);
  EXPECT_LT(all, 1.4e-3);
}

TEST(AttentionInParts, IsItsProductsAndWhatGoesOverScores) {
  const double scores = 4.0 * 8 * 2048 * 2048;
  const double rate =
      static_cast<double>(A100().memory_bandwidth.bytes_per_second()) * Rates().half.memory;
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return PriceProduct({.batch = 32, .m = m, .n = n, .k = k}, {}, A100(), Rates().sustained)
        .time.seconds();
  };
  // Softmax reads what is visible and writes all; dropout reads and writes, and its mask.
  const double forward = product(2048, 2048, 96) + product(2048, 96, 2048);
  EXPECT_NEAR(SecondsOf(kOf22B), forward + scores * (3 + 5) / rate, 1e-9);
  AttentionInParts plain = kOf22B;
  plain.dropout = false;
  EXPECT_NEAR(SecondsOf(plain), forward + scores * 3 / rate, 1e-9);
  EXPECT_EQ(KernelsOf(plain) + 1, KernelsOf(kOf22B));
  AttentionInParts back = kOf22B;
  back.backward = true;
  EXPECT_NEAR(SecondsOf(back),
              product(2048, 2048, 96) + 3 * product(2048, 96, 2048) + scores * (4 + 5) / rate,
              1e-8);
}

// Two heads of a sample are no four rows of a block: softmax is five kernels in fp32.
TEST(AttentionInParts, FusesSoftmaxOfHeadsInFours) {
  const double rate =
      static_cast<double>(A100().memory_bandwidth.bytes_per_second()) * Rates().half.memory;
  for (const auto& [backward, bytes] : {std::pair(false, 37 - 3), {true, 41 - 4}}) {
    AttentionInParts fours = kOf22B, twos = kOf22B;
    fours.backward = twos.backward = backward;
    fours.batch = twos.batch = 1;
    fours.heads = 4;
    twos.heads = 2;
    AttentionInParts pair = fours;  // as many products as of twos
    pair.batch = 2;
    EXPECT_EQ(KernelsOf(pair), KernelsOf(fours));
    EXPECT_EQ(KernelsOf(twos), KernelsOf(fours) + 4);
    EXPECT_GT(SecondsOf(twos), SecondsOf(fours) / 2 + 2.0 * 2048 * 2048 * bytes / rate * 0.99);
  }
}

TEST(AttentionInParts, OfWidthsThatAreNoMultipleOfEightIsSlow) {
  AttentionInParts aligned = kOf22B, unaligned = kOf22B;
  aligned.width = aligned.value_width = 112;
  unaligned.width = unaligned.value_width = 108;
  EXPECT_GT(SecondsOf(unaligned), 3 * SecondsOf(aligned));
}

TEST(AttentionInParts, OfNothingTakesNothing) {
  AttentionInParts none = kOf22B;
  none.keys = 0;
  EXPECT_EQ(SecondsOf(none), 0);
}

}  // namespace
}  // namespace attention_in_parts_test_cc
}  // namespace orrery::cost_models
