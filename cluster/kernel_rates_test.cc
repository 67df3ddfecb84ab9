#include "cluster/kernel_rates.h"

#include <gtest/gtest.h>

#include "cluster/device.h"

namespace orrery::cluster {
namespace kernel_rates_test_cc {
namespace {

KernelRates Of(absl::string_view device) { return FindDevice(device)->rates; }

TEST(KernelRates, OfEachDeviceHaveASource) {
  for (const Device& device : AllDevices())
    EXPECT_FALSE(device.rates.source.empty()) << device.name;
}

TEST(KernelRates, AreThoseOfTheCores) {
  EXPECT_EQ(Of("gh200"), Of("h100-80gb"));
  EXPECT_EQ(Of("gb300"), Of("b300"));
  EXPECT_EQ(Of("gb300").half.efficiency, Of("b200").half.efficiency);
  EXPECT_GT(Of("gb300").sustained, Of("gb200").sustained);
  EXPECT_EQ(Of("h200"), Of("h100-80gb"));
  EXPECT_EQ(Of("gb200"), Of("b200"));
  EXPECT_EQ(Of("a100-40gb").cores, 108);
  EXPECT_LT(Of("a100-80gb-pcie").sustained, Of("a100-80gb").sustained);
  EXPECT_LT(Of("h100-96gb-hbm2e").sustained, Of("h100-80gb").sustained);
}

TEST(KernelRates, OfAnUnknownDeviceSaySo) {
  EXPECT_FALSE(Of("tpu-v4").measured);
  EXPECT_LT(Of("tpu-v6e").half.efficiency, Of("tpu-v4").half.efficiency);
  EXPECT_EQ(Device().rates, AssumedKernelRates());
  EXPECT_FALSE(AssumedKernelRates().measured);
  EXPECT_EQ(PresetKernelRates("mine"), AssumedKernelRates());
  EXPECT_TRUE(Of("b200").measured);
}

}  // namespace
}  // namespace kernel_rates_test_cc
}  // namespace orrery::cluster
