#include "cluster/multiprocessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "cluster/device.h"

// What cores have room for, as NVIDIA's table says.

namespace orrery::cluster {
namespace multiprocessor_test_cc {
namespace {

std::string LineOf(absl::string_view name) {
  const auto core = FindMultiprocessor(*FindDevice(name));
  if (!core.has_value()) return absl::StrCat(name, " none");
  return absl::StrJoin(
      std::vector<std::string>{std::string(name), std::string(core->architecture),
                               absl::StrCat(core->cores), absl::StrCat(core->lanes),
                               absl::StrCat(core->threads), absl::StrCat(core->blocks),
                               absl::StrCat(core->shared_memory_a_block.count() / 1024),
                               absl::StrCat(core->cache.count() / 1024)},
      " | ");
}

// cores | lanes | threads | blocks | KiB of shared memory for a block | KiB of cache
TEST(Multiprocessor, IsAsTheTableHasIt) {
  std::vector<std::string> lines;
  for (const char* name : {"v100-32gb", "titan-rtx", "a100-80gb-pcie", "rtx-3090", "l40s",
                           "h100-80gb", "h100-80gb-pcie", "b200", "rtx-5090", "mi300x", "tpu-v4"}) {
    lines.push_back(LineOf(name));
  }
  EXPECT_THAT(
      lines,
      testing::ElementsAre(
          "v100-32gb | Volta, compute capability 7.0 | 80 | 64 | 2048 | 32 | 96 | 128",
          "titan-rtx | Turing, compute capability 7.5 | 72 | 64 | 1024 | 16 | 64 | 96",
          "a100-80gb-pcie | Ampere, compute capability 8.0 | 108 | 64 | 2048 | 32 | 163 | 192",
          "rtx-3090 | Ampere, compute capability 8.6 | 82 | 128 | 1536 | 16 | 99 | 128",
          "l40s | Ada, compute capability 8.9 | 142 | 128 | 1536 | 24 | 99 | 128",
          "h100-80gb | Hopper, compute capability 9.0 | 132 | 128 | 2048 | 32 | 227 | 256",
          "h100-80gb-pcie | Hopper, compute capability 9.0 | 114 | 128 | 2048 | 32 | 227 | 256",
          "b200 | Blackwell, compute capability 10.0 | 148 | 128 | 2048 | 32 | 227 | 256",
          "rtx-5090 | Blackwell, compute capability 12.0 | 170 | 128 | 1536 | 24 | 99 | 128",
          "mi300x none", "tpu-v4 none"));
}

// The clocks that follow from data sheets are boost clocks: 1.41 GHz of an A100, 1.53 of a V100,
// 1.98 of an H100, 1.755 of one on PCIe.
TEST(Multiprocessor, HasTheClockOfTheDataSheet) {
  const auto clock = [](absl::string_view name) {
    const Device device = *FindDevice(name);
    return FindMultiprocessor(device)->Clock(device) / 1e9;
  };
  EXPECT_NEAR(clock("a100-80gb"), 1.41, 0.01);
  EXPECT_NEAR(clock("v100-16gb"), 1.53, 0.01);
  EXPECT_NEAR(clock("h100-80gb"), 1.98, 0.01);
  EXPECT_NEAR(clock("h100-80gb-pcie"), 1.755, 0.01);
  EXPECT_NEAR(clock("rtx-4090"), 2.52, 0.01);
}

// What was measured of a device was measured with its cores.
TEST(Multiprocessor, HasTheCoresOfItsRates) {
  for (const Device& device : AllDevices()) {
    const auto core = FindMultiprocessor(device);
    if (core.has_value() && device.rates.measured) {
      EXPECT_EQ(core->cores, device.rates.cores) << device.name;
    }
  }
}

// The kind of a file, with these fields behind its name; "none", or its architecture and cores.
std::string CoresOf(const std::string& name, const std::string& fields) {
  const auto cluster = ParseClusterText(
      absl::StrCat("device_kinds { name: \"", name,
                   "\" fp32: \"50Tflops\" memory: \"80GB\" memory_bandwidth: \"2TB/s\" ", fields,
                   " }\ndevices { count: 2 kind: \"", name,
                   "\" }\ntopology { kind: \"switch\" port { rate: \"1GB/s\" } }"),
      ClusterFormat::kText, "f");
  if (!cluster.ok()) return std::string(cluster.status().message());
  for (const ClusterFormat format : {ClusterFormat::kText, ClusterFormat::kJson}) {
    const auto again = ParseClusterText(PrintCluster(*cluster, format), format, "f");
    EXPECT_TRUE(again.ok() && again->device.cores == cluster->device.cores)
        << fields << again.status();
  }
  const auto core = FindMultiprocessor(cluster->device);
  return core.has_value() ? absl::StrCat(core->architecture, ", ", core->cores) : "none";
}

// A file's device has the cores of what it is like, whatever it is called.
TEST(Multiprocessor, IsThatOfWhatAFileIsLike) {
  EXPECT_EQ(CoresOf("mine", "like: \"h100-80gb\""), "Hopper, compute capability 9.0, 132");
  EXPECT_EQ(CoresOf("h100-mine", "like: \"mi300x\""), "none");
  EXPECT_EQ(CoresOf("h100-mine", ""), "none");
  EXPECT_EQ(CoresOf("a100-80gb", "like: \"l40s\""), "Ada, compute capability 8.9, 142");
}

// As many as its rates say in so many words, and not as rates of another kind have them.
TEST(Multiprocessor, ObeysAFilesCores) {
  const std::string like = "like: \"l40s\" ", ada = "Ada, compute capability 8.9, ";
  EXPECT_EQ(CoresOf("x", like + "rates { sustained: 0.7 }"), ada + "142");
  EXPECT_EQ(CoresOf("x", like + "rates { like: \"a100-80gb\" }"), ada + "142");
  EXPECT_EQ(CoresOf("x", like + "rates { cores: 100 }"), ada + "100");
  EXPECT_EQ(CoresOf("x", like + "cores { count: 90 } rates { cores: 100 }"), ada + "90");
  EXPECT_EQ(CoresOf("x", like + "cores { like: \"a100-80gb\" }"),
            "Ampere, compute capability 8.0, 108");
  EXPECT_EQ(CoresOf("x", "cores { like: \"v100-32gb\" count: 84 }"),
            "Volta, compute capability 7.0, 84");
}

TEST(Multiprocessor, SaysWhatIsWrongWithAFilesCores) {
  EXPECT_EQ(CoresOf("x", "cores { count: 84 }"),
            "f:1: device_kinds[0].cores: does not say whose cores they are; wanted such as cores { "
            "like: 'a100-80gb' }");
  EXPECT_EQ(CoresOf("x", "like: \"h200\" cores { count: 0 }"),
            "f:1: device_kinds[0].cores.count: got 0; wanted 1 to 1000000");
  EXPECT_THAT(CoresOf("x", "cores { like: \"abacus\" }"),
              testing::StartsWith("f:1: device_kinds[0].cores.like: device 'abacus' is unknown"));
}

}  // namespace
}  // namespace multiprocessor_test_cc
}  // namespace orrery::cluster
