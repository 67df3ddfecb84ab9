#include "cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace orrery::cluster {
namespace cluster_test_cc {
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
    EXPECT_FALSE(preset.summary.empty()) << preset.name;
    EXPECT_EQ(cluster.topology.collective_profile(), *FindCollectiveProfile(preset.collectives));
  }
}

TEST(ClusterPresets, TakeBoards) {
  const Cluster boards = Parse("dgx-a100:2,boards=2,bridge=126GB/s");
  EXPECT_EQ(boards.topology.shape().boards_per_node, 2);
  EXPECT_EQ(boards.topology.shape().bridge.rate, Bandwidth(126'000'000'000));
  EXPECT_EQ(
      Parse("nodes:2x8@300GB/s,nic=25GB/s,boards=4,bridge=1GB/s").topology.shape().boards_per_node,
      4);
  const Cluster cards = Parse("l40s:2");
  EXPECT_EQ(cards.topology.shape().boards_per_node, 2);
  EXPECT_EQ(cards.topology.shape().bridge.rate, Bandwidth(2'500'000'000));
  EXPECT_EQ(Parse("l40s:2,used=4").topology.shape().boards_per_node, 1) << "on one socket";
  EXPECT_EQ(Parse("l40s:2,boards=1").topology.shape().bridge.rate, Bandwidth(0));
  EXPECT_EQ(ErrorOf("dgx-a100:2,boards=2"),
            "`cluster` 'dgx-a100:2,boards=2': got a bridge of 0 bytes/s; wanted a positive rate");
  EXPECT_EQ(ErrorOf("dgx-a100:2,bridge=1GB/s"),
            "`cluster` 'dgx-a100:2,bridge=1GB/s': got a bridge where nodes are one board; wanted "
            "how many they have, or no bridge");
  EXPECT_EQ(ErrorOf("dgx-a100:2,boards=3,bridge=1GB/s"),
            "`cluster` 'dgx-a100:2,boards=3,bridge=1GB/s': got 3 boards for 8 devices; wanted as "
            "many devices on each");
  EXPECT_EQ(ErrorOf("dgx-a100:2,rails,boards=2,bridge=1GB/s"),
            "`cluster` 'dgx-a100:2,rails,boards=2,bridge=1GB/s': got rails and boards=; wanted one "
            "of them, as in dgx-a100:16,boards=2,bridge=126GB/s");
}

TEST(ClusterPresets, TakeOptions) {
  const Cluster slow = Parse("dgx-h100:16,nic=hdr,device=h200");
  EXPECT_EQ(slow.device.name, "h200");
  EXPECT_EQ(slow.topology.Path(DeviceId(0), DeviceId(8)),
            (PathInfo{Bandwidth(25'000'000'000), Duration(3'700'000)}));
  EXPECT_EQ(Parse("dgx-h100:2,nic=200Gbps").topology.Path(DeviceId(0), DeviceId(8)),
            (PathInfo{Bandwidth(25'000'000'000), Duration(3'700'000)}));
  const Cluster rails = Parse("dgx-h100:16,oversubscription=4");
  EXPECT_EQ(rails.topology.kind().name, "rails");
  EXPECT_EQ(rails.topology.Path(DeviceId(0), DeviceId(8)),
            (PathInfo{Bandwidth(50'000'000'000), Duration(2'800'000)}));
  EXPECT_EQ(rails.topology.Path(DeviceId(0), DeviceId(9)).latency, Duration(3'700'000));
  // Whether the preset or the option says which InfiniBand; a latency that is given stands.
  for (const auto& [options, latency] : {std::pair{"rails", 2'800'000},
                                         {"nic=ndr,rails", 2'800'000},
                                         {"nic=hdr,rails", 2'800'000},
                                         {"nic=50GB/s,rails", 2'800'000},
                                         {"nic=50GB/s+2us,rails", 4'000'000},
                                         {"nic-latency=1.85us,rails", 3'700'000}}) {
    const Cluster cluster = Parse(absl::StrCat("dgx-h100:4,", options));
    EXPECT_EQ(cluster.topology.Path(DeviceId(0), DeviceId(8)).latency, Duration(latency))
        << options;
  }
  const Cluster ethernet = Parse("dgx-h100:4,nic=400gbe,rails");
  EXPECT_EQ(ethernet.topology.Path(DeviceId(0), DeviceId(8)).latency, Duration(3'600'000));
  EXPECT_EQ(ethernet.topology.Path(DeviceId(0), DeviceId(9)).latency, Duration(5'600'000));
  EXPECT_EQ(rails.topology.shape().spine.rate, Bandwidth(16 * 50'000'000'000 / 4));
  const Cluster shared = Parse("dgx-a100:2,nics=2");
  EXPECT_EQ(shared.topology.shape().nics_per_node, 2);
  EXPECT_EQ(shared.topology.shape().host.rate, Bandwidth(31'500'000'000));
  const Cluster aligned = Parse("gb200-nvl72:2,used=64");
  EXPECT_EQ(aligned.topology.devices(), 128);
  EXPECT_EQ(aligned.topology.shape().devices_per_node, 64);
  EXPECT_EQ(ErrorOf("gb200-nvl72:2,used=73"),
            "`cluster` 'gb200-nvl72:2,used=73': got used=73; wanted 1 to all 72 devices of a node");
  EXPECT_EQ(ErrorOf("dgx-v100:2,rails"),
            "`cluster` 'dgx-v100:2,rails': got rails for 4 NICs that devices share; wanted a NIC "
            "for each, as in dgx-h100:16,rails");
  EXPECT_EQ(ErrorOf("dgx-a100:2,gpu=h200"),
            "`cluster` 'dgx-a100:2,gpu=h200': got option 'gpu=h200'; wanted device, port, nic, "
            "nic-latency, nics, boards, bridge, used, rails, oversubscription, collectives, "
            "ideal-collectives, as in "
            "dgx-a100:4,device=h200");
  EXPECT_EQ(Parse("dgx-h100:2").topology.collective_profile().name, "nccl-hopper");
  EXPECT_TRUE(Parse("dgx-h100:2,ideal-collectives").topology.collective_profile().ideal());
  EXPECT_TRUE(Parse("mi300x:2,ideal-collectives").topology.collective_profile().ideal());
  const Cluster other = Parse("dgx-a100:2,collectives=nccl-ampere-2023");
  EXPECT_EQ(other.topology.collective_profile().name, "nccl-ampere-2023");
  EXPECT_TRUE(Parse("dgx-a100:2,collectives=ideal").topology.collective_profile().ideal());
  EXPECT_THAT(ErrorOf("dgx-a100:2,collectives=nccl"),
              testing::HasSubstr("'nccl' are unknown; wanted one"));
  EXPECT_THAT(ErrorOf("dgx-a100:2,collectives=ideal,ideal-collectives"),
              testing::HasSubstr("got collectives= and ideal-collectives; wanted one of them"));
  EXPECT_THAT(ErrorOf("dgx-a100:2,nic=hdr,nic=hdr"), testing::HasSubstr("'nic=hdr' again"));
  EXPECT_THAT(ErrorOf("dgx-a100:2,nic=fast"), testing::HasSubstr("nic: 'fast' is no bandwidth"));
  EXPECT_THAT(ErrorOf("dgx-a100:2,"), testing::HasSubstr("got no option after ','"));
}

TEST(ClusterPresets, TorusesTakeSizesOrHosts) {
  EXPECT_EQ(Parse("tpu-v4:4x4x8").size(), 128);
  const Cluster hosts = Parse("tpu-v5p:16");
  ASSERT_EQ(hosts.topology.shape().levels.size(), 3u);
  for (const Level& level : hosts.topology.shape().levels) EXPECT_EQ(level.size, 4);
  EXPECT_EQ(Parse("tpu-v5e:64").topology.shape().levels[1].size, 16);
  EXPECT_THAT(ErrorOf("tpu-v4:4x4"), testing::HasSubstr("got sizes '4x4'; wanted 3 of them"));
}

TEST(ParseCluster, TopologiesByName) {
  const auto shape = [](absl::string_view spec) { return Parse(spec).topology.shape(); };
  EXPECT_EQ(shape("ring:8@50GB/s,latency=500ns").port,
            (PathInfo{Bandwidth(50'000'000'000), Duration(500'000)}));
  EXPECT_TRUE(shape("ring:8@50GB/s,one-way").one_way);
  EXPECT_EQ(shape("switch:8@ndr").port, (PathInfo{Bandwidth(50'000'000'000), Duration(1'850'000)}));
  EXPECT_TRUE(shape("switch:8@400GB/s,reduces").port_switch_reduces);
  EXPECT_EQ(shape("torus:4x4x2@50GB/s").devices, 32);
  EXPECT_EQ(shape("rails:16x8@450GB/s,nic=ndr,oversubscription=2").spine.rate,
            Bandwidth(16 * 50'000'000'000 / 2));
  EXPECT_EQ(shape("dragonfly:4x8x9@25GB/s").levels[2].parents, 1);
  const TopologyShape product = shape("product:ring(4)@100GB/s+1us,switch(8)@50GB/s,device=h200");
  ASSERT_EQ(product.levels.size(), 2u);
  EXPECT_EQ(product.levels[0].speed.latency, Duration(1'000'000));
  EXPECT_EQ(product.levels[1].kind, LevelKind::kSwitch);
  EXPECT_EQ(Parse("product:ring(4)@100GB/s,device=h200").device.name, "h200");
}

TEST(ParseCluster, FatTreesByRadix) {
  const TopologyShape two = Parse("fat-tree:1024@50GB/s,radix=64").topology.shape();
  ASSERT_EQ(two.levels.size(), 2u);
  EXPECT_EQ(two.levels[0].size, 32);
  EXPECT_EQ(two.levels[1].size, 32);
  EXPECT_EQ(two.levels[1].parents, 32);
  const TopologyShape three =
      Parse("fat-tree:16384@50GB/s,radix=64,oversubscription=2").topology.shape();
  ASSERT_EQ(three.levels.size(), 3u);
  EXPECT_EQ(three.levels[1].parents, 16);
  EXPECT_EQ(three.levels[2].size, 16);
  EXPECT_EQ(three.levels[2].parents, 32);
  EXPECT_EQ(Parse("fat-tree:100@50GB/s,radix=64").size(), 100) << "partly filled";
  EXPECT_THAT(ErrorOf("fat-tree:64@50GB/s,radix=8,oversubscription=3"),
              testing::HasSubstr("got radix 8 with oversubscription 3; wanted an even radix"));
}

TEST(ParseClusterErrors, OfTopologiesShowAnExample) {
  EXPECT_EQ(ErrorOf("ring:8"),
            "`cluster` 'ring:8': got '8' with no rate; wanted one, as in "
            "ring:8@50GB/s,latency=500ns");
  EXPECT_EQ(ErrorOf("torus:4xx4@50GB/s"),
            "`cluster` 'torus:4xx4@50GB/s': got sizes '4xx4'; wanted 1 to 8 numbers of at least 1 "
            "for at most 1048576 devices, as in torus:4x4x4@50GB/s");
  EXPECT_EQ(ErrorOf("ring:8@50GB/s,nic=hdr"),
            "`cluster` 'ring:8@50GB/s,nic=hdr': got option 'nic=hdr'; wanted device, latency, "
            "one-way, as in ring:8@50GB/s,latency=500ns");
  EXPECT_EQ(ErrorOf("switch:8@50GB/s,reduces=no"),
            "`cluster` 'switch:8@50GB/s,reduces=no': got reduces=no; wanted reduces without a "
            "value, or nothing, as in switch:64@400GB/s");
  EXPECT_THAT(ErrorOf("dgx-a100:2,rails=2"), testing::HasSubstr("got rails=2; wanted rails"));
  EXPECT_THAT(ErrorOf("nodes:2x8@450GB/s"), testing::HasSubstr("got a nic of 0 bytes/s; wanted"));
  EXPECT_THAT(ErrorOf("product:star(4)@1GB/s"),
              testing::HasSubstr("got level 'star(4)@1GB/s'; wanted KIND(SIZE)@RATE, KIND one of "
                                 "ring, one-way-ring, line, fully-connected, switch, as in"));
  EXPECT_THAT(ErrorOf("dragonfly:4x8@1GB/s"), testing::HasSubstr("got 2 levels; wanted 3"));
  EXPECT_THAT(ErrorOf("graph:4@1GB/s"), testing::HasSubstr("got kind 'graph'"));
}

TEST(ListClusters, ExamplesReadAndSayWhatTheyAre) {
  for (const ClusterSpelling& spelling : ListClusters()) {
    EXPECT_FALSE(spelling.summary.empty()) << spelling.example;
    if (spelling.example == "cluster.textproto") continue;
    EXPECT_GT(Parse(spelling.example).size(), 1) << spelling.example;
  }
}

TEST(LinkGenerations, HaveRatesLatenciesAndSources) {
  for (const LinkGeneration& generation : AllLinkGenerations()) {
    EXPECT_GT(generation.speed.rate, Bandwidth(1'000'000'000)) << generation.name;
    EXPECT_GT(generation.speed.latency, Duration(0)) << generation.name;
    EXPECT_FALSE(generation.source.empty()) << generation.name;
  }
}

TEST(ParseClusterErrors, UnknownKind) {
  EXPECT_THAT(ErrorOf("dgx-z9:4"),
              testing::AllOf(
                  testing::StartsWith("`cluster` 'dgx-z9:4': got kind 'dgx-z9'; wanted "
                                      "uniform or one of dgx-a100, dgx-h100"),
                  testing::EndsWith(", or a .textproto or .json file, as in uniform:16@200Gbps")));
  EXPECT_THAT(ErrorOf(""), testing::StartsWith("`cluster` '': got kind ''; wanted uniform"));
  EXPECT_THAT(ErrorOf("Uniform:2@1Gbps"), testing::HasSubstr("got kind 'Uniform'"));
}

TEST(ParseClusterErrors, NumberOfDevices) {
  EXPECT_EQ(ErrorOf("uniform:0@200Gbps"),
            "`cluster` 'uniform:0@200Gbps': got '0' devices; wanted 1 to 1048576, as in "
            "uniform:16@200Gbps");
  EXPECT_THAT(ErrorOf("uniform:@200Gbps"),
              testing::HasSubstr("got no number of devices; wanted 1 to 1048576"));
  for (const char* count : {"-1", "+4", " 4", "4 ", "1.5", "1e3", "0x10", "sixteen", "NaN",
                            "1048577", "2147483648", "99999999999999999999"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("uniform:", count, "@200Gbps")),
                testing::HasSubstr(absl::StrCat("got '", count, "' devices; wanted 1 to 1048576")));
  }
}

TEST(ParseClusterErrors, NumberOfNodes) {
  EXPECT_EQ(ErrorOf("dgx-a100:0"),
            "`cluster` 'dgx-a100:0': got '0' nodes; wanted 1 to 131072, as in dgx-a100:4");
  for (const char* spelled : {"dgx-h100", "dgx-h100:"}) {
    EXPECT_THAT(ErrorOf(spelled), testing::HasSubstr("got no number of nodes; wanted 1 to 131072"));
  }
  for (const char* count : {"-4", "131073", "268435456", "4x", "4:4", "4@"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("dgx-h100:", count)),
                testing::HasSubstr(absl::StrCat("got '", count, "' nodes; wanted 1 to 131072")));
  }
}

TEST(ParseClusterErrors, Bandwidth) {
  EXPECT_EQ(ErrorOf("uniform:16@200"),
            "`cluster` 'uniform:16@200': '200' is no bandwidth; wanted a positive number with a "
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
            "`cluster` 'uniform:16@200Gbps,gpu=a100-80gb': got option 'gpu=a100-80gb'; wanted "
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
      "`cluster` 'uniform:16\\n@200Gbps': got a character that does not print; wanted at most "
      "200 printable ones, as in uniform:16@200Gbps");
  EXPECT_THAT(ErrorOf(std::string(1'000'000, 'x')),
              testing::HasSubstr("xxx...': got 1000000 characters; wanted at most 200"));
  EXPECT_LT(ErrorOf(std::string(1'000'000, 'x')).size(), 200u);
  EXPECT_THAT(ErrorOf(absl::string_view("uniform:1\0@1Gbps", 16)), testing::HasSubstr("\\000"));
  EXPECT_THAT(ErrorOf("uniform:\xff"), testing::HasSubstr("\\377"));
}

}  // namespace
}  // namespace cluster_test_cc
}  // namespace orrery::cluster
