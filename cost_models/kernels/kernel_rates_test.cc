#include "cost_models/kernels/kernel_rates.h"

#include <gtest/gtest.h>

#include "cluster/device.h"

namespace orrery::cost_models {
namespace kernel_rates_test_cc {
namespace {

TEST(KernelRates, AreSharesOfWhatThereIs) {
  for (const cluster::Device& device : cluster::AllDevices()) {
    const KernelRates& rates = KernelRatesOf(device.name);
    EXPECT_FALSE(rates.source.empty()) << device.name;
    for (const double share :
         {rates.half.efficiency, rates.half.memory, rates.quarter.efficiency, rates.quarter.memory,
          rates.other_products, rates.sustained, rates.sustained_quarter, rates.half.wave_weight,
          rates.quarter.wave_weight, rates.half.unaligned, rates.half.unaligned_batch,
          rates.quarter.unaligned}) {
      EXPECT_GT(share, 0) << device.name;
      EXPECT_LE(share, 1) << device.name;
    }
    EXPECT_GE(rates.cores, 1) << device.name;
    for (size_t i = 0; i < kAttentionClassNames.size(); ++i) {
      const AttentionRates& attention = rates.attention.Of(static_cast<AttentionClass>(i));
      EXPECT_GT(attention.efficiency, 0) << device.name << " " << kAttentionClassNames[i];
      EXPECT_LE(attention.efficiency, 1) << device.name << " " << kAttentionClassNames[i];
      EXPECT_GT(attention.backward, 0) << device.name << " " << kAttentionClassNames[i];
      EXPECT_LE(attention.backward, 1) << device.name << " " << kAttentionClassNames[i];
      EXPECT_GE(attention.width_power, 0) << device.name << " " << kAttentionClassNames[i];
    }
  }
}

TEST(KernelRates, HaveAClockForEachWidth) {
  const KernelRates& b200 = KernelRatesOf("b200");
  EXPECT_EQ(b200.clock(ir::DType::kBF16), b200.sustained);
  EXPECT_EQ(b200.clock(ir::DType::kF8), b200.sustained_quarter);
  EXPECT_LT(b200.clock(ir::DType::kF8), b200.clock(ir::DType::kBF16));
  EXPECT_EQ(b200.clock(ir::DType::kF4), b200.sustained_eighth);
}

TEST(KernelRates, AreThoseOfTheCores) {
  EXPECT_EQ(&KernelRatesOf("gh200"), &KernelRatesOf("h100-80gb"));
  EXPECT_EQ(&KernelRatesOf("gb300"), &KernelRatesOf("b300"));
  EXPECT_EQ(KernelRatesOf("gb300").half.efficiency, KernelRatesOf("b200").half.efficiency);
  EXPECT_GT(KernelRatesOf("gb300").sustained, KernelRatesOf("gb200").sustained);
  EXPECT_EQ(&KernelRatesOf("h200"), &KernelRatesOf("h100-80gb"));
  EXPECT_EQ(&KernelRatesOf("gb200"), &KernelRatesOf("b200"));
  EXPECT_EQ(KernelRatesOf("a100-40gb").cores, 108);
  EXPECT_LT(KernelRatesOf("a100-80gb-pcie").sustained, KernelRatesOf("a100-80gb").sustained);
}

TEST(KernelRates, OfAnUnknownDeviceSaySo) {
  EXPECT_FALSE(KernelRatesOf("tpu-v4").measured);
  EXPECT_FALSE(KernelRatesOf("mine").measured);
  EXPECT_TRUE(KernelRatesOf("b200").measured);
}

TEST(KernelRates, AreOfAnElementType) {
  const KernelRates& rates = KernelRatesOf("h100-80gb");
  EXPECT_EQ(&rates.products(ir::DType::kF8), &rates.quarter);
  EXPECT_EQ(&rates.products(ir::DType::kF4), &rates.eighth);
  EXPECT_EQ(rates.eighth.efficiency, rates.quarter.efficiency) << "an H100 has none of 4 bits";
  EXPECT_LT(KernelRatesOf("b200").eighth.efficiency, KernelRatesOf("b200").quarter.efficiency);
  EXPECT_EQ(&rates.products(ir::DType::kBF16), &rates.half);
  EXPECT_EQ(&rates.products(ir::DType::kF32), &rates.half);
}

}  // namespace
}  // namespace kernel_rates_test_cc
}  // namespace orrery::cost_models
