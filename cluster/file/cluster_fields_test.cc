#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "cluster/device.h"

// What each field of a cluster file is read as, and printed as; and fields that are wrong.

namespace orrery::cluster {
namespace cluster_fields_test_cc {
namespace {

using testing::StartsWith;

absl::StatusOr<Cluster> Parse(const std::string& text) {
  return ParseClusterText(text, ClusterFormat::kText, "f");
}

// The error, or "" where there is none.
std::string ErrorOf(const std::string& text) { return std::string(Parse(text).status().message()); }

const char* const kSwitch = "topology { kind: \"switch\" port { rate: \"100GB/s\" } }\n";

// A cluster of 4 of a kind with these fields.
std::string OfKind(const std::string& fields) {
  return absl::StrCat("device_kinds { name: \"x\" memory: \"1GB\" memory_bandwidth: \"1GB/s\" ",
                      fields, " }\ndevices { count: 4 kind: \"x\" }\n", kSwitch);
}

// The rates of compute: fp64, fp32, tf32, fp16, fp8, fp4, in GFLOP/s.
std::string RatesOf(const std::string& fields) {
  const auto cluster = Parse(OfKind(fields));
  if (!cluster.ok()) return std::string(cluster.status().message());
  const Device& device = cluster->device;
  std::string rates;
  for (const FlopRate rate :
       {device.fp64, device.fp32, device.tf32, device.fp16, device.fp8, device.fp4}) {
    absl::StrAppend(&rates, rates.empty() ? "" : " ", rate.flops_per_second() / 1e9);
  }
  return rates;
}

TEST(DeviceKinds, RunNarrowTypesOnUnitsOfWiderOnes) {
  EXPECT_EQ(RatesOf("fp32: \"1Tflops\""), "0 1000 1000 1000 1000 1000");
  EXPECT_EQ(RatesOf("fp32: \"1Tflops\" fp16: \"3Tflops\""), "0 1000 1000 3000 3000 3000");
  EXPECT_EQ(RatesOf("fp32: \"1Tflops\" tf32: \"2Tflops\""), "0 1000 2000 2000 2000 2000");
  EXPECT_EQ(RatesOf("fp64: \"5Tflops\" fp32: \"1Tflops\" tf32: \"2Tflops\" fp16: \"3Tflops\" "
                    "fp8: \"4Tflops\""),
            "5000 1000 2000 3000 4000 4000");
  EXPECT_EQ(RatesOf("fp32: \"1Tflops\" fp8: \"4Tflops\" fp4: \"9Tflops\""),
            "0 1000 1000 1000 4000 9000");
}

TEST(DeviceKinds, HaveOfOthersWhatTheyDoNotSay) {
  const Device like = *FindDevice("h100-80gb");
  const Device device = Parse(
                            "device_kinds { name: \"x\" like: \"h100-80gb\" fp32: \"1Tflops\" }\n"
                            "devices { count: 4 kind: \"x\" }\n" +
                            std::string(kSwitch))
                            .value()
                            .device;
  EXPECT_EQ(device.name, "x");
  EXPECT_EQ(device.fp32.flops_per_second(), 1e12);
  EXPECT_EQ(device.tf32, like.tf32);
  EXPECT_EQ(device.fp16, like.fp16);
  EXPECT_EQ(device.fp8, like.fp8);
  EXPECT_EQ(device.memory, like.memory);
}

TEST(DeviceKinds, AreReadFieldByField) {
  const Device device =
      Parse(OfKind("fp32: \"1Tflops\" launch_overhead: \"5us\" host { rate: \"32GB/s\" latency: "
                   "\"2us\" } host_memory_bandwidth: \"200GB/s\" communication_slowdown: 0.25"))
          .value()
          .device;
  EXPECT_EQ(device.memory, Bytes(1'000'000'000));
  EXPECT_EQ(device.memory_bandwidth, Bandwidth(1'000'000'000));
  EXPECT_EQ(device.launch_overhead, Duration(5'000'000));
  EXPECT_EQ(device.host, (PathInfo{Bandwidth(32'000'000'000), Duration(2'000'000)}));
  EXPECT_EQ(device.host_memory_bandwidth, Bandwidth(200'000'000'000));
  EXPECT_EQ(device.communication_slowdown, 0.25);
}

TEST(DeviceKinds, NeedNames) {
  EXPECT_EQ(ErrorOf("device_kinds { fp32: \"1Tflops\" }\ndevices { kind: \"h200\" count: 2 }\n" +
                    std::string(kSwitch)),
            "f:1: device_kinds[0]: got no name; wanted one for devices to call it");
}

// 2^20 in all, in groups of at least one.
TEST(Devices, AreCounted) {
  const auto devices = [](const std::string& first, const std::string& second) {
    return ErrorOf(absl::StrCat("devices { kind: \"h200\" ", first,
                                " }\ndevices { kind: \"h100-80gb\" ", second, " }\n", kSwitch));
  };
  EXPECT_EQ(devices("count: 1048575", "count: 1"), "");
  EXPECT_EQ(devices("count: 1048575", "count: 2"),
            "f:2: devices[1].count: got 2 devices, 1048577 in all; wanted 1 or more, and at most "
            "1048576 in all");
  EXPECT_THAT(devices("count: 1", ""),
              StartsWith("f:2: devices[1].count: got 0 devices, 1 in all"));
  EXPECT_THAT(devices("count: -1", "count: 3"),
              StartsWith("f:1: devices[0].count: got -1 devices"));
  EXPECT_EQ(ErrorOf("devices { kind: \"h200\" }\n" + std::string(kSwitch)),
            "f:2: topology: does not say how many devices there are; wanted their count in "
            "devices");
}

TEST(Collectives, AreReadFieldByField) {
  const Cluster cluster =
      Parse(absl::StrCat("devices { count: 4 kind: \"h200\" }\n", kSwitch, R"(collectives {
  name: "mine"
  protocols { name: "slow" rate: 0.5 rate_between_nodes: 0.25 start_up: "1us" step_in_node: "2us"
              step_between_nodes: "3us" part_rate: "4GB/s" in_network: true }
  protocols { name: "plain" }
  protocols { name: "p2p" sends: true }
})"))
          .value();
  const CollectiveProfile& profile = cluster.topology.collective_profile();
  EXPECT_EQ(profile.name, "mine");
  ASSERT_EQ(profile.protocols.size(), 3);
  const CollectiveProtocol& slow = profile.protocols[0];
  EXPECT_EQ(slow.name, "slow");
  EXPECT_EQ(slow.rate, 0.5);
  EXPECT_EQ(slow.rate_between_nodes, 0.25);
  EXPECT_EQ(slow.start_up, Duration(1'000'000));
  EXPECT_EQ(slow.step_in_node, Duration(2'000'000));
  EXPECT_EQ(slow.step_between_nodes, Duration(3'000'000));
  EXPECT_EQ(slow.part_rate, Bandwidth(4'000'000'000));
  EXPECT_FALSE(slow.sends);
  EXPECT_TRUE(slow.in_network);
  EXPECT_EQ(profile.protocols[1].rate, 1);
  EXPECT_FALSE(profile.protocols[1].in_network);
  EXPECT_FALSE(profile.protocols[1].sends);
  EXPECT_TRUE(profile.protocols[2].sends);
}

TEST(Collectives, AreBuiltInOrListed) {
  const auto of = [](const std::string& fields) {
    return ErrorOf(absl::StrCat("devices { count: 4 kind: \"h200\" }\n", kSwitch, "collectives {\n",
                                fields, "\n}"));
  };
  EXPECT_EQ(of("name: \"nccl-hopper\""), "");
  EXPECT_THAT(of("name: \"abacus\""), StartsWith("f:4: collectives.name: "));
  EXPECT_THAT(of("protocols { name: \"a\" start_up: \"-1us\" }"),
              StartsWith("f:4: collectives.protocols[0].start_up: '-1us' is no duration"));
  EXPECT_THAT(of("protocols { name: \"a\" rate: 1.5 }"), StartsWith("f:3: collectives: "));
}

// The fields of a topology of two nodes, or of levels.
std::string TopologyError(const std::string& fields, const std::string& count = "count: 8") {
  return ErrorOf(
      absl::StrCat("devices { kind: \"h200\" ", count, " }\ntopology {\n", fields, "\n}"));
}

TEST(Topologies, ReadNumbersInTheirLimits) {
  const std::string nodes =
      "kind: \"nodes\" port { rate: \"1GB/s\" } nic { rate: \"1GB/s\" } host { rate: \"1GB/s\" } ";
  EXPECT_EQ(TopologyError(nodes + "devices_per_node: 4 nics_per_node: 1"), "");
  EXPECT_EQ(TopologyError(nodes + "devices_per_node: 0"),
            "f:3: topology.devices_per_node: got 0; wanted 1 to 1048576");
  EXPECT_EQ(TopologyError(nodes + "devices_per_node: 1048577"),
            "f:3: topology.devices_per_node: got 1048577; wanted 1 to 1048576");
  EXPECT_EQ(TopologyError(nodes + "devices_per_node: 4 nics_per_node: 0"),
            "f:3: topology.nics_per_node: got 0; wanted 1 or more, or nothing where each device "
            "has its own");
}

TEST(Topologies, MultiplyTheirLevels) {
  const std::string four = "levels { size: 4 speed { rate: \"1GB/s\" } } ";
  EXPECT_EQ(Parse("devices { kind: \"h200\" }\ntopology { kind: \"torus\" " + four + four + "}")
                .value()
                .size(),
            16);
  EXPECT_EQ(TopologyError("kind: \"torus\" " + four + four),
            "f:2: topology: got 8 devices; wanted the product of the levels, 16");
  const auto level = [](const std::string& fields) {
    return TopologyError("kind: \"product\"\nlevels { speed { rate: \"1GB/s\" } " + fields + " }");
  };
  EXPECT_EQ(level("size: 8 kind: \"switch\""), "");
  EXPECT_EQ(level("size: 8 kind: \"star\""),
            "f:4: topology.levels[0].kind: got 'star'; wanted one of ring, one_way_ring, line, "
            "fully_connected, switch");
  EXPECT_EQ(level("size: 0"),
            "f:4: topology.levels[0].size: got a size of 0 and 1 parents; wanted 1 to 1048576");
  EXPECT_EQ(level("size: 1048577"),
            "f:4: topology.levels[0].size: got a size of 1048577 and 1 parents; wanted 1 to "
            "1048576");
  EXPECT_EQ(level("size: 8 parents: 0"),
            "f:4: topology.levels[0].parents: got a size of 8 and 0 parents; wanted 1 to 1048576");
}

// Two cables of 2 and 3 GB/s, and one that three share.
TEST(Graphs, HaveCablesSideBySide) {
  const Cluster cluster = Parse(R"(devices { kind: "h200" }
topology { kind: "graph" graph {
  devices: "a" devices: "b" devices: "c"
  switches { name: "hub" reduces: true }
  links { between: "a" between: "b" rate: "2GB/s" back_rate: "3GB/s" count: 2 kind: "cable" }
  links { between: "a" between: "b" between: "c" shared: true rate: "1GB/s" latency: "1us" }
  links { between: "c" between: "hub" rate: "5GB/s" }
} })")
                              .value();
  const Topology& topology = cluster.topology;
  EXPECT_EQ(cluster.size(), 3);
  std::string links;
  for (LinkNumber link = 0; link < topology.link_count(); ++link) {
    const Link row = topology.LinkAt(link);
    absl::StrAppend(&links, topology.LinkName(link), " ",
                    row.speed.rate.bytes_per_second() / 1'000'000'000, " GB/s, ",
                    row.speed.latency.picoseconds() / 1'000'000, " us\n");
  }
  EXPECT_EQ(links,
            "a -> b (cable) 2 GB/s, 0 us\n"
            "a -> b (cable) 2 GB/s, 0 us\n"
            "a -> into a-b-c #4 (link) 1 GB/s, 0 us\n"
            "b -> a (cable) 3 GB/s, 0 us\n"
            "b -> a (cable) 3 GB/s, 0 us\n"
            "b -> into a-b-c #4 (link) 1 GB/s, 0 us\n"
            "c -> hub (link) 5 GB/s, 0 us\n"
            "c -> into a-b-c #4 (link) 1 GB/s, 0 us\n"
            "hub -> c (link) 5 GB/s, 0 us\n"
            "into a-b-c #4 -> out of a-b-c #4 (link) 1 GB/s, 1 us\n"
            "out of a-b-c #4 -> a (link) 1 GB/s, 0 us\n"
            "out of a-b-c #4 -> b (link) 1 GB/s, 0 us\n"
            "out of a-b-c #4 -> c (link) 1 GB/s, 0 us\n");
  EXPECT_TRUE(topology.SwitchReduces(VertexId(3)));
  EXPECT_FALSE(topology.SwitchReduces(VertexId(4)));
}

TEST(Topologies, AreQuotedSoThatTheyPrint) {
  const auto quoted = [](const std::string& kind) {
    const std::string error = TopologyError("kind: \"" + kind + "\"");
    return error.substr(0, error.find("; wanted"));
  };
  EXPECT_EQ(quoted("a b~"), "f:3: topology.kind: got 'a b~'");
  EXPECT_EQ(quoted("\\x1f\\x7f\\n"), "f:3: topology.kind: got '\\x1f\\x7f\\x0a'");
  const std::string most(300, 'x');
  EXPECT_EQ(quoted(most), "f:3: topology.kind: got '" + most + "'");
  EXPECT_EQ(quoted(most + "x"), "f:3: topology.kind: got '" + most + "...'");
}

// The text from `word` on.
std::string PrintedFrom(const std::string& word, const Cluster& cluster) {
  const std::string text = PrintCluster(cluster, ClusterFormat::kText);
  return "\n" + text.substr(text.find(word));
}

TEST(PrintCluster, HasDevicesInFull) {
  EXPECT_EQ(PrintedFrom("name:", Parse(OfKind("fp32: \"1Tflops\"")).value()), R"(
name: "f"
device_kinds {
  name: "x"
  fp32: "1Tflops"
  tf32: "1Tflops"
  fp16: "1Tflops"
  fp8: "1Tflops"
  memory: "1GB"
  memory_bandwidth: "1GB/s"
  launch_overhead: "0us"
}
devices {
  count: 4
  kind: "x"
}
topology {
  kind: "switch"
  port {
    rate: "100GB/s"
  }
}
)");
}

// Products of 4 bits only where they are faster than those of 8.
TEST(PrintCluster, HasFourBits) {
  const Cluster cluster = Parse(OfKind("fp32: \"1Tflops\" fp4: \"9Tflops\"")).value();
  const std::string text = PrintCluster(cluster, ClusterFormat::kText);
  EXPECT_NE(text.find("fp4: \"9Tflops\""), std::string::npos) << text;
  EXPECT_EQ(Parse(text)->device.fp4, FlopRate(9e12));
}

TEST(PrintCluster, LeavesOutWhatIsUsual) {
  EXPECT_EQ(PrintedFrom("topology {", ParseCluster("ring:4@50GB/s,one-way,latency=500ns").value()),
            R"(
topology {
  kind: "ring"
  port {
    rate: "50GB/s"
    latency: "500ns"
  }
  one_way: true
}
)");
  Cluster cluster = ParseCluster("product:line(1)@1GB/s,switch(2)@50GB/s").value();
  cluster.topology.SetCollectiveProfile(
      {.name = "mine", .protocols = {{.name = "a"}, {.name = "b", .rate = 0.5}}});
  EXPECT_EQ(PrintedFrom("topology {", cluster), R"(
topology {
  kind: "product"
  levels {
    size: 1
    speed {
      rate: "1GB/s"
    }
    kind: "line"
  }
  levels {
    size: 2
    speed {
      rate: "50GB/s"
    }
    kind: "switch"
  }
}
collectives {
  name: "mine"
  protocols {
    name: "a"
  }
  protocols {
    name: "b"
    rate: 0.5
  }
}
)");
}

// Devices of one kind that follow each other are one group.
TEST(PrintCluster, GroupsDevicesInARow) {
  Cluster cluster = ParseCluster("ring:5@50GB/s").value();
  const Device a = *FindDevice("h200"), b = *FindDevice("a100-80gb");
  cluster.kind_by_device.clear();
  cluster.AddDevices(a, 2);
  cluster.AddDevices(b, 2);
  cluster.AddDevices(a, 1);
  const std::string text = PrintedFrom("devices {", cluster);
  EXPECT_EQ(text.substr(0, text.find("topology")), R"(
devices {
  count: 2
  kind: "h200"
}
devices {
  count: 2
  kind: "a100-80gb"
}
devices {
  count: 1
  kind: "h200"
}
)");
}

}  // namespace
}  // namespace cluster_fields_test_cc
}  // namespace orrery::cluster
