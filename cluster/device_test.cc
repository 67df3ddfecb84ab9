#include "cluster/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace orrery::cluster {
namespace device_test_cc {
namespace {

TEST(Devices, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Device& device : AllDevices()) EXPECT_TRUE(names.insert(device.name).second);
  EXPECT_THAT(names, testing::IsSupersetOf({"v100-32gb", "a100-40gb", "a100-80gb", "h100-80gb"}));
}

// Holds for every data sheet that is added: catches a slipped column or a wrong unit.
TEST(Devices, AreAcceleratorsOfThisAge) {
  for (const Device& device : AllDevices()) {
    SCOPED_TRACE(device.name);
    EXPECT_GT(device.fp32, FlopRate(5e12));
    EXPECT_GE(device.tf32, device.fp32);
    EXPECT_LE(device.tf32, device.fp16);
    EXPECT_GE(device.host.rate, Bandwidth::FromGigabytesPerSecond(10));
    EXPECT_LE(device.host.rate, Bandwidth::FromGigabytesPerSecond(100));
    EXPECT_EQ(device.communication_slowdown, 0) << "a measurement, not a data sheet, says it";
    EXPECT_TRUE(CheckDevice(device).ok());
    EXPECT_FALSE(DeviceSource(device.name).empty());
    EXPECT_GE(device.fp16, device.fp32);
    EXPECT_GE(device.fp8, device.fp16);
    EXPECT_GE(device.fp4, device.fp8);
    EXPECT_LT(device.fp4, FlopRate(1e17));
    EXPECT_GE(device.memory, Bytes(16'000'000'000));
    EXPECT_LE(device.memory, Bytes(1'000'000'000'000));
    EXPECT_GE(device.memory_bandwidth, Bandwidth::FromGigabytesPerSecond(500));
    EXPECT_LE(device.memory_bandwidth, Bandwidth::FromGigabytesPerSecond(50'000));
    EXPECT_GT(device.launch_overhead, Duration(0));
    EXPECT_LE(device.launch_overhead, Duration(20'000'000));
  }
}

TEST(FindDevice, ReadsTheDataSheetInBaseUnits) {
  const auto device = FindDevice("a100-80gb");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->fp32, FlopRate(19.5e12));
  EXPECT_EQ(device->fp16, FlopRate(312e12));
  EXPECT_EQ(device->fp8, device->fp16) << "an A100 has no fp8";
  EXPECT_EQ(FindDevice("h100-80gb")->fp4, FindDevice("h100-80gb")->fp8) << "nor an H100 fp4";
  EXPECT_EQ(FindDevice("b200")->fp4, FlopRate(9e15));
  EXPECT_EQ(device->memory, Bytes(80'000'000'000)) << "decimal gigabytes";
  EXPECT_EQ(device->memory_bandwidth, Bandwidth(2'000'000'000'000));
  EXPECT_EQ(device->launch_overhead, Duration(5'000'000)) << "5 us";
}

// GeForce cards accumulate in fp32 at half the rate that NVIDIA's "AI TOPS" are of; a Titan does
// not.
TEST(FindDevice, HasCardsWithTheirRatesOfTraining) {
  EXPECT_EQ(FindDevice("titan-rtx")->fp16, FlopRate(130.5e12));
  EXPECT_EQ(FindDevice("rtx-3090")->fp16, FlopRate(71e12));
  EXPECT_EQ(FindDevice("rtx-4090")->fp8, FlopRate(330.3e12));
  EXPECT_EQ(FindDevice("rtx-5090")->fp16, FlopRate(209.5e12));
  EXPECT_EQ(FindDevice("rtx-pro-6000-server")->fp4, FlopRate(1920e12));
  EXPECT_FALSE(FindDevice("rtx-5090")->rates.measured);
}

TEST(FindDevice, HasTheCustomH100OfTorchtitan) {
  const auto device = FindDevice("h100-96gb-hbm2e");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->memory, Bytes(96'000'000'000));
  EXPECT_EQ(device->memory_bandwidth, Bandwidth(2'400'000'000'000));
}

TEST(FindDevice, HalfAModuleIsADevice) {
  const Device module = FindDevice("mi250x").value();
  const Device die = FindDevice("mi250x-gcd").value();
  EXPECT_EQ(die.fp16.flops_per_second() * 2, module.fp16.flops_per_second());
  EXPECT_EQ(die.memory * 2, module.memory);
}

TEST(CheckDevice, SaysWhatIsImpossible) {
  const auto error_of = [](auto change) {
    Device device = FindDevice("h200").value();
    change(device);
    return std::string(CheckDevice(device).message());
  };
  EXPECT_EQ(error_of([](Device& device) { device.fp4 = FlopRate(0); }),
            "got fp4 of 0 flops/s; wanted more than 0, at most 1e+21");
  EXPECT_EQ(error_of([](Device& device) { device.fp8 = FlopRate(0); }),
            "got fp8 of 0 flops/s; wanted more than 0, at most 1e+21");
  EXPECT_EQ(error_of([](Device& device) { device.memory = Bytes(0); }),
            "got memory of 0 B at 4800 GB/s; wanted more than 0 of both");
  EXPECT_EQ(error_of([](Device& device) { device.communication_slowdown = 1; }),
            "got communication_slowdown of 1; wanted 0 to less than 1");
}

TEST(FindDevice, FindsEachByItsName) {
  for (const Device& device : AllDevices()) {
    ASSERT_TRUE(FindDevice(device.name).ok());
    EXPECT_EQ(FindDevice(device.name)->name, device.name);
  }
}

TEST(FindDevice, ErrorListsTheNames) {
  EXPECT_THAT(FindDevice("a100").status().ToString(),
              testing::StartsWith("INVALID_ARGUMENT: device 'a100' is unknown; wanted one of "
                                  "v100-32gb, v100-16gb, a100-40gb, a100-80gb, "));
}

}  // namespace
}  // namespace device_test_cc
}  // namespace orrery::cluster
