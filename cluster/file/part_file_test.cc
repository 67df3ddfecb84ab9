#include "cluster/part_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "support/file.h"

namespace orrery::cluster {
namespace part_file_test_cc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Of this process: tests run side by side.
std::string FileOf(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/part_", getpid(), "_", name);
  EXPECT_TRUE(WriteFile(path, text).ok());
  return path;
}

absl::StatusOr<Device> Read(const std::string& text) {
  return FindDeviceOrFile(FileOf("device.textproto", text));
}

std::string ErrorOf(const std::string& rates) {
  const auto kind =
      Read(absl::StrCat("device_kinds {\n  name: \"mine\" like: \"h100-80gb\"\n", rates, "\n}\n"));
  EXPECT_FALSE(kind.ok()) << rates;
  const std::string message(kind.status().message());
  return message.substr(message.find("device.textproto"));
}

TEST(DeviceFile, ReadsWhatIsPrinted) {
  for (const Device& device : AllDevices()) {
    const std::string text = PrintDevice(device);
    const auto back = Read(text);
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << text;
    EXPECT_EQ(*back, device) << text;
  }
  Device odd = FindDevice("b200").value();
  odd.name = "odd \"one\"";
  odd.fp64 = FlopRate(37e12);
  odd.communication_slowdown = 0.3;
  odd.cores = {.like = "h200", .count = 60};
  odd.rates.source = "a\nline";
  odd.rates.half.efficiency = 1.0 / 3;
  odd.rates.start = Duration(1);
  odd.host = {};
  odd.host_memory_bandwidth = {};
  EXPECT_EQ(Read(PrintDevice(odd))->rates.half.efficiency, odd.rates.half.efficiency);
  EXPECT_EQ(Read(PrintDevice(odd))->rates.start, odd.rates.start);
  EXPECT_EQ(Read(PrintDevice(odd))->communication_slowdown, 0.3);
  EXPECT_EQ(Read(PrintDevice(odd))->cores, odd.cores);
}

TEST(DeviceFile, TakesOverWhatItDoesNotSay) {
  const Device h100 = FindDevice("h100-80gb").value();
  const Device mine = Read(R"(device_kinds {
  name: "mine" like: "h100-80gb"
  rates { sustained: 0.7 half { step: "90ns" } attention { cudnn { backward: 0.9 } } }
})")
                          .value();
  KernelRates wanted = h100.rates;
  wanted.sustained = 0.7;
  wanted.half.step = Duration(90'000);
  wanted.attention.cudnn.backward = 0.9;
  wanted.source = "its cluster file; what that does not say: " + h100.rates.source;
  EXPECT_EQ(mine.rates, wanted);

  const Device other = Read(R"(device_kinds { name: "x" like: "v100-32gb"
    rates { like: "a100-80gb" cores: 80 source: "my machine" } })")
                           .value();
  wanted = FindDevice("a100-80gb")->rates;
  wanted.cores = 80;
  wanted.source = "my machine";
  EXPECT_EQ(other.rates, wanted);
  EXPECT_EQ(other.fp16, FlopRate(125e12));
  EXPECT_TRUE(other.rates.measured);

  EXPECT_EQ(Read("device_kinds { name: \"x\" like: \"h200\" }")->rates, h100.rates);
  // A name alone says nothing of the cores.
  const std::string peaks =
      "fp32: \"60Tflops\" memory: \"80GB\" memory_bandwidth: \"3TB/s\" fp16: \"900Tflops\"";
  EXPECT_EQ(Read("device_kinds { name: \"h100-mine\" " + peaks + " }")->rates,
            AssumedKernelRates());
}

TEST(DeviceFile, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(ErrorOf("  rates {\n    sustained: 1.5 }"),
            "device.textproto:4: device_kinds[0].rates.sustained: got 1.5; wanted 0.001 to 1");
  EXPECT_EQ(
      ErrorOf("  rates { half {\n efficiency: nan } }"),
      "device.textproto:4: device_kinds[0].rates.half.efficiency: got nan; wanted 0.001 to 1");
  EXPECT_EQ(ErrorOf("  rates { start: \"2s\" }"),
            "device.textproto:3: device_kinds[0].rates.start: got 2000ms; wanted 0us to 1e+06us");
  EXPECT_EQ(ErrorOf("  rates { start: \"2\" }"),
            "device.textproto:3: device_kinds[0].rates.start: '2' is no duration; wanted 0 or more "
            "with a unit, such as 1.8us or 500ns");
  EXPECT_EQ(ErrorOf("  rates { cores: 0 }"),
            "device.textproto:3: device_kinds[0].rates.cores: got 0; wanted 1 to 1e+06");
  EXPECT_THAT(ErrorOf("  rates { like: \"abacus\" }"),
              StartsWith("device.textproto:3: device_kinds[0].rates.like: device 'abacus' is "
                         "unknown; wanted one of v100-32gb"));
  EXPECT_THAT(ErrorOf("  rates { speed: 1 }"), HasSubstr("speed"));
}

TEST(DeviceFile, HasOneKind) {
  const auto two = Read(
      "device_kinds { name: \"a\" like: \"h200\" } device_kinds { name: \"b\" like: \"h200\" }");
  EXPECT_THAT(std::string(two.status().message()), HasSubstr("got 2 kinds of device; wanted one"));
  EXPECT_THAT(std::string(Read("").status().message()), HasSubstr("got 0 kinds of device"));
}

// Wherever a cluster is spelled with device=.
TEST(DeviceFile, IsADeviceOfPresetsAndTopologies) {
  const std::string path = FileOf(
      "mine.textproto", "device_kinds { name: \"mine\" like: \"h200\" rates { sustained: 0.5 } }");
  for (const std::string spec : {"dgx-h100:2,device=", "uniform:4@1GB/s,device=",
                                 "ring:4@1GB/s,device=", "tpu-v4:2,device="}) {
    const auto cluster = ParseCluster(absl::StrCat(spec, path));
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(cluster->device.name, "mine");
    EXPECT_EQ(cluster->device.rates.sustained, 0.5);
    EXPECT_EQ(cluster->name, absl::StrCat(spec, path));
  }
  EXPECT_THAT(std::string(ParseCluster("dgx-h100:2,device=no.textproto").status().message()),
              HasSubstr("no.textproto"));
}

TEST(CollectivesFile, ReadsWhatIsPrinted) {
  for (const absl::string_view name : CollectiveProfileNames()) {
    const CollectiveProfile profile = FindCollectiveProfile(name).value();
    if (profile.ideal()) continue;
    const std::string path = FileOf("collectives.textproto", PrintCollectives(profile));
    EXPECT_EQ(FindCollectivesOrFile(path).value(), profile) << name;
    const auto cluster = ParseCluster(absl::StrCat("dgx-a100:2,collectives=", path));
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(cluster->topology.collective_profile(), profile);
  }
}

TEST(CollectivesFile, NeedsCollectives) {
  const std::string path = FileOf("none.textproto", "device_kinds { name: \"a\" like: \"h200\" }");
  EXPECT_THAT(std::string(FindCollectivesOrFile(path).status().message()),
              HasSubstr("got no collectives; wanted such as collectives {"));
}

// A cluster needs more than a device.
TEST(DeviceFile, IsNoCluster) {
  const std::string path = FileOf("alone.textproto", PrintDevice(FindDevice("h200").value()));
  EXPECT_THAT(std::string(ParseCluster(path).status().message()),
              HasSubstr("got no devices; wanted"));
}

}  // namespace
}  // namespace part_file_test_cc
}  // namespace orrery::cluster
