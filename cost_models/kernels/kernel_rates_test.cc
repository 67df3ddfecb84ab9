#include "cost_models/kernels/kernel_rates.h"

#include <gtest/gtest.h>

#include "cluster/device.h"

namespace orrery::cost_models {
namespace kernel_rates_test_cc {
namespace {

KernelRates Of(absl::string_view device) { return cluster::FindDevice(device)->rates; }

TEST(KernelRates, HaveAClockForEachWidth) {
  const KernelRates b200 = Of("b200");
  EXPECT_EQ(ClockOf(b200, ir::DType::kBF16), b200.sustained);
  EXPECT_EQ(ClockOf(b200, ir::DType::kF8), b200.sustained_quarter);
  EXPECT_LT(ClockOf(b200, ir::DType::kF8), ClockOf(b200, ir::DType::kBF16));
  EXPECT_EQ(ClockOf(b200, ir::DType::kF8Block), b200.sustained_quarter);
  EXPECT_EQ(ClockOf(b200, ir::DType::kF4), b200.sustained_eighth);
}

TEST(KernelRates, AreOfAnElementType) {
  const KernelRates rates = Of("h100-80gb");
  EXPECT_EQ(&ProductRatesOf(rates, ir::DType::kF8), &rates.quarter);
  EXPECT_EQ(&ProductRatesOf(rates, ir::DType::kF8Block), &rates.blocks);
  EXPECT_LT(rates.blocks.efficiency, rates.quarter.efficiency) << "sums are scaled each 128";
  EXPECT_EQ(&ProductRatesOf(rates, ir::DType::kF4), &rates.eighth);
  EXPECT_EQ(rates.eighth.efficiency, rates.quarter.efficiency) << "an H100 has none of 4 bits";
  EXPECT_LT(Of("b200").eighth.efficiency, Of("b200").quarter.efficiency);
  EXPECT_EQ(&ProductRatesOf(rates, ir::DType::kBF16), &rates.half);
  EXPECT_EQ(&ProductRatesOf(rates, ir::DType::kF32), &rates.half);
}

TEST(KernelRates, AreOfAClassOfAttention) {
  const KernelRates rates = Of("h100-80gb");
  const AttentionRates* const classes[] = {&rates.attention.cudnn,  &rates.attention.flash3,
                                           &rates.attention.flash2, &rates.attention.flash1,
                                           &rates.attention.triton, &rates.attention.cudnn8};
  for (size_t i = 0; i < kAttentionClassNames.size(); ++i) {
    EXPECT_EQ(&AttentionRatesOf(rates, static_cast<AttentionClass>(i)), classes[i]);
  }
}

}  // namespace
}  // namespace kernel_rates_test_cc
}  // namespace orrery::cost_models
