#include "cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace orrery::cluster {
namespace {

Cluster Parse(absl::string_view spec) {
  const auto cluster = ParseCluster(spec);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return cluster.value_or(Cluster());
}

std::string ErrorOf(absl::string_view spec) {
  const absl::Status status = ParseCluster(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec;
  return std::string(status.message());
}

TEST(ParseCluster, Uniform) {
  const Cluster cluster = Parse("uniform:16@200Gbps");
  EXPECT_EQ(cluster.name, "uniform:16@200Gbps");
  EXPECT_EQ(cluster.device.name, "v100-32gb");
  EXPECT_EQ(cluster.size(), 16);
  EXPECT_EQ(cluster.topology.kind().name, "fully_connected");
  EXPECT_EQ(cluster.topology.Path(DeviceId(0), DeviceId(15)),
            (PathInfo{Bandwidth(25'000'000'000), Duration(0)}));
}

TEST(ParseCluster, UniformOfAnotherDevice) {
  const Cluster cluster = Parse("uniform:4@300GB/s,device=h100-80gb");
  EXPECT_EQ(cluster.device.name, "h100-80gb");
  EXPECT_EQ(cluster.topology.Path(DeviceId(0), DeviceId(1)).rate, Bandwidth(300'000'000'000));
}

TEST(ParseCluster, DgxA100) {
  const Cluster cluster = Parse("dgx-a100:4");
  EXPECT_EQ(cluster.name, "dgx-a100:4");
  EXPECT_EQ(cluster.device.name, "a100-80gb");
  EXPECT_EQ(cluster.size(), 32);
  EXPECT_EQ(cluster.topology.shape().devices_per_node, 8);
  EXPECT_EQ(cluster.topology.Path(DeviceId(0), DeviceId(7)),
            (PathInfo{Bandwidth(300'000'000'000), Duration(2'000'000)}));
  EXPECT_EQ(cluster.topology.Path(DeviceId(7), DeviceId(8)),
            (PathInfo{Bandwidth(25'000'000'000), Duration(3'700'000)}));
}

TEST(ParseCluster, DgxH100) {
  const Cluster cluster = Parse("dgx-h100:16");
  EXPECT_EQ(cluster.device.name, "h100-80gb");
  EXPECT_EQ(cluster.size(), 128);
  EXPECT_EQ(cluster.topology.Path(DeviceId(0), DeviceId(7)).rate, Bandwidth(450'000'000'000));
  EXPECT_EQ(cluster.topology.Path(DeviceId(0), DeviceId(8)).rate, Bandwidth(50'000'000'000));
}

TEST(ParseCluster, SizesFromOneToTheMost) {
  EXPECT_EQ(Parse("uniform:1@1Mbps").size(), 1);
  EXPECT_EQ(Parse("uniform:1048576@200Gbps").size(), 1048576);
  EXPECT_EQ(Parse("dgx-a100:1").size(), 8);
  EXPECT_EQ(Parse("dgx-h100:131072").size(), 1048576);
}

// Holds for every row that is added to the table.
TEST(ClusterPresets, BuildACluster) {
  for (const ClusterPreset& preset : AllClusterPresets()) {
    const Cluster cluster = Parse(absl::StrCat(preset.name, ":2"));
    EXPECT_EQ(cluster.size(), 2 * preset.devices_per_node) << preset.name;
    EXPECT_EQ(cluster.device.name, preset.device);
    EXPECT_GE(cluster.topology.Path(DeviceId(0), DeviceId(1)).rate,
              cluster.topology.Path(DeviceId(0), DeviceId(cluster.size() - 1)).rate)
        << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
  }
}

TEST(ParseClusterErrors, UnknownKind) {
  EXPECT_THAT(ErrorOf("dgx-z9:4"),
              testing::AllOf(testing::StartsWith("--cluster 'dgx-z9:4': got kind 'dgx-z9'; wanted "
                                                 "uniform or one of dgx-a100, dgx-h100"),
                             testing::EndsWith(", as in uniform:16@200Gbps")));
  EXPECT_THAT(ErrorOf(""), testing::StartsWith("--cluster '': got kind ''; wanted uniform"));
  EXPECT_THAT(ErrorOf("Uniform:2@1Gbps"), testing::HasSubstr("got kind 'Uniform'"));
}

TEST(ParseClusterErrors, NumberOfDevices) {
  EXPECT_EQ(ErrorOf("uniform:0@200Gbps"),
            "--cluster 'uniform:0@200Gbps': got '0' devices; wanted 1 to 1048576, as in "
            "uniform:16@200Gbps");
  for (const char* count : {"", "-1", "+4", " 4", "4 ", "1.5", "1e3", "0x10", "sixteen", "NaN",
                            "1048577", "2147483648", "99999999999999999999"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("uniform:", count, "@200Gbps")),
                testing::HasSubstr(absl::StrCat("got '", count, "' devices; wanted 1 to 1048576")));
  }
}

TEST(ParseClusterErrors, NumberOfNodes) {
  EXPECT_EQ(ErrorOf("dgx-a100:0"),
            "--cluster 'dgx-a100:0': got '0' nodes; wanted 1 to 131072, as in dgx-a100:4");
  for (const char* count : {"", "-4", "131073", "268435456", "4x", "4:4", "4@"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("dgx-h100:", count)),
                testing::HasSubstr(absl::StrCat("got '", count, "' nodes; wanted 1 to 131072")));
  }
}

TEST(ParseClusterErrors, Bandwidth) {
  EXPECT_EQ(ErrorOf("uniform:16@200"),
            "--cluster 'uniform:16@200': '200' is no bandwidth; wanted a positive number with a "
            "unit, such as 200Gbps (bits) or 300GB/s (bytes)");
  for (const char* rate : {"", "Gbps", "0Gbps", "-1Gbps", "nanGbps", "infGbps", "1e300Gbps",
                           "200Gb", "200Gbps trailing", "200Gbps@200Gbps", "200 200Gbps"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("uniform:16@", rate)),
                testing::HasSubstr(absl::StrCat("'", rate, "' is no bandwidth")));
  }
  EXPECT_THAT(ErrorOf("uniform:16"), testing::HasSubstr("'' is no bandwidth"));
}

TEST(ParseClusterErrors, Options) {
  EXPECT_EQ(ErrorOf("uniform:16@200Gbps,gpu=a100-80gb"),
            "--cluster 'uniform:16@200Gbps,gpu=a100-80gb': got option 'gpu=a100-80gb'; wanted "
            "device=NAME, as in uniform:16@200Gbps,device=a100-80gb");
  EXPECT_THAT(ErrorOf("uniform:16@200Gbps,"), testing::HasSubstr("got option ''"));
  EXPECT_THAT(ErrorOf("uniform:16@200Gbps,device=abacus"),
              testing::HasSubstr("device 'abacus' is unknown; wanted one of v100-32gb"));
  EXPECT_THAT(ErrorOf("uniform:16@200Gbps,device=h200,device=h200"),
              testing::HasSubstr("device 'h200,device=h200' is unknown"));
}

TEST(ParseClusterErrors, AreOneLineWhateverTheInput) {
  EXPECT_EQ(
      ErrorOf("uniform:16\n@200Gbps"),
      "--cluster 'uniform:16\\n@200Gbps': got a character that does not print; wanted at most "
      "200 printable ones, as in uniform:16@200Gbps");
  EXPECT_THAT(ErrorOf(std::string(1'000'000, 'x')),
              testing::HasSubstr("xxx...': got 1000000 characters; wanted at most 200"));
  EXPECT_LT(ErrorOf(std::string(1'000'000, 'x')).size(), 200u);
  EXPECT_THAT(ErrorOf(absl::string_view("uniform:1\0@1Gbps", 16)), testing::HasSubstr("\\000"));
  EXPECT_THAT(ErrorOf("uniform:\xff"), testing::HasSubstr("\\377"));
}

}  // namespace
}  // namespace orrery::cluster
