#include "cluster/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "support/file.h"
#include "support/paths_test_util.h"

namespace orrery::cluster {
namespace cluster_file_test_cc {
namespace {

constexpr absl::string_view kNodes = R"(name: "two nodes"
devices { count: 8 kind: "h100-80gb" }
topology {
  kind: "nodes"
  devices_per_node: 4
  port { rate: "450GB/s" latency: "1us" }
  nic { rate: "400Gbps" latency: "1.85us" }
}
)";

constexpr absl::string_view kGraph = R"(devices { count: 3 kind: "h200" }
topology {
  kind: "graph"
  graph {
    devices: "a"
    devices: "b"
    devices: "c"
    switches { name: "hub" }
    links { between: "a" between: "hub" rate: "10GB/s" latency: "1us" }
    links { between: "b" between: "hub" rate: "20GB/s" back_rate: "5GB/s" }
    links { between: "c" between: "hub" rate: "30GB/s" one_way: true }
    links { between: "hub" between: "c" rate: "7GB/s" one_way: true }
  }
}
)";

Cluster Read(absl::string_view text, ClusterFormat format = ClusterFormat::kText) {
  const auto cluster = ParseClusterText(text, format, "a.textproto");
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return cluster.value_or(Cluster());
}

std::string ErrorOf(absl::string_view text, ClusterFormat format = ClusterFormat::kText) {
  const bool is_text = format == ClusterFormat::kText;
  const auto cluster = ParseClusterText(text, format, is_text ? "a.textproto" : "a.json");
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(cluster.status().message());
}

// The error of `text` with one part of it another.
std::string ErrorWith(absl::string_view text, absl::string_view from, absl::string_view to) {
  EXPECT_TRUE(absl::StrContains(text, from)) << from;
  return ErrorOf(absl::StrReplaceAll(text, {{from, to}}));
}

PathInfo PathOf(const Cluster& cluster, int32_t from, int32_t to) {
  return cluster.topology.Path(DeviceId(from), DeviceId(to));
}

TEST(ClusterFile, ReadsText) {
  const Cluster cluster = Read(kNodes);
  EXPECT_EQ(cluster.name, "two nodes");
  EXPECT_EQ(cluster.size(), 8);
  EXPECT_EQ(cluster.device.name, "h100-80gb");
  EXPECT_EQ(cluster.kind_count(), 1);
  EXPECT_EQ(cluster.topology.kind().name, "nodes");
  EXPECT_EQ(PathOf(cluster, 0, 3), (PathInfo{Bandwidth(450'000'000'000), Duration(2'000'000)}));
  EXPECT_EQ(PathOf(cluster, 0, 4), (PathInfo{Bandwidth(50'000'000'000), Duration(3'700'000)}));
}

TEST(ClusterFile, ReadsJson) {
  const Cluster cluster = Read(R"({"devices": [{"kind": "tpu-v4"}], "topology": {"kind": "torus",
      "levels": [{"size": 4, "speed": {"rate": "50GB/s"}}, {"size": 2, "speed": {"rate": "50GB/s"}}]}})",
                               ClusterFormat::kJson);
  EXPECT_EQ(cluster.size(), 8);
  EXPECT_EQ(cluster.topology.Bisection(), Bandwidth(2 * 2 * 50'000'000'000));
}

TEST(ClusterFile, KindsMayDifferAndFollowOthers) {
  const Cluster cluster = Read(absl::StrReplaceAll(
      kNodes,
      {{"devices { count: 8 kind: \"h100-80gb\" }",
        "device_kinds { name: \"mine\" fp32: \"20Tflops\" memory: \"48GB\" memory_bandwidth: "
        "\"1TB/s\" } devices { count: 2 kind: \"h200\" } devices { count: 5 kind: \"mine\" "
        "} devices { count: 1 kind: \"h200\" }"}}));
  EXPECT_EQ(cluster.kind_count(), 2);
  EXPECT_EQ(cluster.device.name, "h200");
  EXPECT_EQ(cluster.device_of(DeviceId(1)).name, "h200");
  EXPECT_EQ(cluster.device_of(DeviceId(2)).name, "mine");
  EXPECT_EQ(cluster.kind_of(DeviceId(6)), 1);
  EXPECT_EQ(cluster.kind_of(DeviceId(7)), 0);
  EXPECT_EQ(cluster.kind(1).fp8, FlopRate(20e12)) << "as fp32, where there is nothing better";
  EXPECT_EQ(cluster.kind(1).memory, Bytes(48'000'000'000));
}

TEST(ClusterFile, GraphLinksHaveARateEachWay) {
  const Cluster cluster = Read(kGraph);
  EXPECT_EQ(PathOf(cluster, 0, 1), (PathInfo{Bandwidth(5'000'000'000), Duration(1'000'000)}));
  EXPECT_EQ(PathOf(cluster, 1, 2).rate, Bandwidth(7'000'000'000));
  EXPECT_EQ(PathOf(cluster, 2, 0).rate, Bandwidth(10'000'000'000));
  std::vector<std::string> names;
  for (LinkNumber link = 0; link < cluster.topology.link_count(); ++link) {
    names.push_back(cluster.topology.LinkName(link));
  }
  EXPECT_THAT(names, testing::ElementsAre("a -> hub (link)", "b -> hub (link)", "c -> hub (link)",
                                          "hub -> a (link)", "hub -> b (link)", "hub -> c (link)"));
}

TEST(ClusterFile, WhatIsSharedIsOneLinkOnTheWay) {
  const Cluster cluster = Read(R"(devices { count: 3 kind: "h200" } topology { kind: "graph" graph {
      links { between: "device0" between: "device1" between: "device2" rate: "8GB/s" latency: "2us"
              shared: true kind: "bus" } } })");
  EXPECT_EQ(PathOf(cluster, 0, 2), (PathInfo{Bandwidth(8'000'000'000), Duration(2'000'000)}));
  std::vector<LinkNumber> there, back;
  cluster.topology.AppendRoute(DeviceId(0), DeviceId(2), there);
  cluster.topology.AppendRoute(DeviceId(1), DeviceId(0), back);
  ASSERT_EQ(there.size(), 3u);
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(there[1], back[1]) << cluster.topology.LinkName(there[1]);
}

TEST(ClusterFileErrors, NameTheLine) {
  EXPECT_EQ(ErrorWith(kNodes, "450GB/s", "0GB/s"),
            "a.textproto:6: topology.port.rate: '0GB/s' is no bandwidth; wanted a positive number "
            "with a unit, such as 200Gbps (bits) or 300GB/s (bytes)");
  EXPECT_EQ(ErrorWith(kNodes, "1.85us", "-1us"),
            "a.textproto:7: topology.nic.latency: '-1us' is no duration; wanted 0 or more with a "
            "unit, such as 1.8us or 500ns");
  EXPECT_EQ(
      ErrorWith(kNodes, "\"nodes\"", "\"node\""),
      "a.textproto:4: topology.kind: got 'node'; wanted one of fully_connected, ring, switch, "
      "nodes, rails, torus, mesh, product, fat_tree, dragonfly, graph");
  EXPECT_THAT(
      ErrorWith(kNodes, "h100-80gb", "h101"),
      testing::StartsWith("a.textproto:2: devices[0].kind: device 'h101' is unknown; wanted"));
  EXPECT_EQ(ErrorWith(kNodes, "devices_per_node: 4", "devices_per_node: 3"),
            "a.textproto:3: topology: got 8 devices in nodes of 3; wanted a whole number of nodes");
  EXPECT_EQ(ErrorWith(kNodes, "devices_per_node: 4", "one_way: true"),
            "a.textproto:5: topology.one_way: is nothing that a nodes topology reads; wanted only "
            "devices_per_node, port, nic, nics_per_node, host, boards_per_node, bridge, "
            "port_switch_reduces, nic_switch_reduces");
  EXPECT_EQ(ErrorWith(kNodes, "count: 8", "count: 0"),
            "a.textproto:2: devices[0].count: got 0 devices, 0 in all; wanted 1 or more, and at "
            "most 1048576 in all");
  EXPECT_EQ(ErrorWith(kNodes, "rate: \"450GB/s\"", ""),
            "a.textproto:6: topology.port: got no rate; wanted one such as \"450GB/s\"");
}

TEST(ClusterFileErrors, OfTheFormatItself) {
  EXPECT_EQ(ErrorWith(kNodes, "port {", "prot {"),
            "a.textproto:6:8: Message type \"orrery.cluster.file.Topology\" has no field named "
            "\"prot\". Wanted fields as cluster.proto lists them");
  EXPECT_THAT(ErrorWith(kNodes, "count: 8", "count: x"), testing::StartsWith("a.textproto:2:18: "));
  EXPECT_THAT(ErrorOf("{"), testing::StartsWith("a.textproto:1:1: "));
  EXPECT_EQ(ErrorOf(""),
            "a.textproto: got no devices; wanted such as devices { count: 8 kind: \"h100-80gb\" }");
  EXPECT_THAT(ErrorOf("devices { kind: \"h200\" }"),
              testing::StartsWith("a.textproto: got no topology; wanted such as topology {"));
}

TEST(ClusterFileErrors, OfJsonNameTheField) {
  EXPECT_EQ(ErrorOf(R"({"devices": [{"kind": "h200"}], "topology": {"kind": "torus", "levels": [
      {"size": 2, "speed": {"rate": "1GB/s"}}, {"size": 2, "speed": {"rate": "fast"}}]}})",
                    ClusterFormat::kJson),
            "a.json: topology.levels[1].speed.rate: 'fast' is no bandwidth; wanted a positive "
            "number with a unit, such as 200Gbps (bits) or 300GB/s (bytes)");
  for (const char* text : {"", "{", "[]", "{\"device\": 1}", "{\"devices\": [{\"count\": 1.5}]}"}) {
    EXPECT_THAT(ErrorOf(text, ClusterFormat::kJson), testing::StartsWith("a.json: ")) << text;
  }
}

TEST(ClusterFileErrors, OfGraphs) {
  EXPECT_EQ(ErrorWith(kGraph, "devices: \"c\"", "devices: \"a\""),
            "a.textproto:7: topology.graph.devices[2]: got 'a' twice; wanted a name once");
  EXPECT_EQ(ErrorWith(kGraph, "name: \"hub\"", "name: \"b\""),
            "a.textproto:8: topology.graph.switches[0]: got 'b' twice; wanted a name once");
  EXPECT_EQ(ErrorWith(kGraph, "count: 3", "count: 4"),
            "a.textproto:5: topology.graph.devices: got 3 names; wanted one for each of 4 devices");
  EXPECT_EQ(ErrorWith(kGraph, "between: \"hub\" between: \"c\" rate: \"7GB/s\"",
                      "between: \"hub\" between: \"d\" rate: \"7GB/s\""),
            "a.textproto:12: topology.graph.links[3].between[1]: got 'd'; wanted a device or a "
            "switch, as a");
  EXPECT_EQ(ErrorWith(kGraph, "between: \"hub\" between: \"c\"", "between: \"hub\" between: \"b\""),
            "a.textproto:4: topology.graph: no way leads from a to c; wanted links between all "
            "devices");
  EXPECT_EQ(ErrorWith(kGraph, "between: \"a\" between: \"hub\"", "between: \"a\" between: \"a\""),
            "a.textproto:9: topology.graph.links[0].between: got 'a' at both ends; wanted two "
            "vertices");
  EXPECT_EQ(ErrorWith(kGraph, "between: \"a\" between: \"hub\"", "between: \"a\""),
            "a.textproto:9: topology.graph.links[0].between: got 1 names; wanted two, or more of a "
            "link that is shared");
  EXPECT_EQ(
      ErrorWith(kGraph, "30GB/s\" one_way: true", "30GB/s\" one_way: true back_rate: \"1GB/s\""),
      "a.textproto:11: topology.graph.links[2].back_rate: got a rate for a way back; wanted "
      "none of a link that is one_way or shared");
  EXPECT_EQ(ErrorWith(kGraph, "30GB/s\" one_way: true", "30GB/s\" count: 0"),
            "a.textproto:11: topology.graph.links[2].count: got 0; wanted 1 or more");
}

TEST(ClusterFileErrors, OfKinds) {
  const auto error_of = [](absl::string_view kind) {
    return ErrorOf(absl::StrCat("device_kinds {\n", kind, "\n}\n", kNodes));
  };
  EXPECT_EQ(error_of("name: \"x\" like: \"h100-80gb\"\nfp8: \"fast\""),
            "a.textproto:3: device_kinds[0].fp8: 'fast' is no rate of compute; wanted more than 0 "
            "with a unit, such as 989Tflops");
  EXPECT_EQ(error_of("name: \"x\" like: \"h200\" communication_slowdown: 1.5"),
            "a.textproto:1: device_kinds[0]: got communication_slowdown of 1.5; wanted 0 to less "
            "than 1");
  EXPECT_THAT(error_of("name: \"x\""),
              testing::StartsWith("a.textproto:1: device_kinds[0]: got fp32 of 0 flops/s; wanted"));
  EXPECT_EQ(error_of("name: \"x\" like: \"h200\" } device_kinds { name: \"x\" like: \"h200\""),
            "a.textproto:2: device_kinds[1].name: got 'x' twice; wanted a name once");
}

std::vector<std::string> Specs() {
  std::vector<std::string> specs;
  for (const ClusterSpelling& spelling : ListClusters()) {
    if (!IsClusterFile(spelling.example)) specs.push_back(spelling.example);
  }
  return specs;
}

TEST(PrintCluster, ReadsBackAsTheSame) {
  std::vector<Cluster> clusters;
  for (const std::string& spec : Specs()) clusters.push_back(ParseCluster(spec).value());
  clusters.push_back(Read(kGraph));
  clusters.push_back(Read(absl::StrReplaceAll(
      kNodes, {{"devices { count: 8", "devices { count: 3 kind: \"b200\" } devices { count: 5"}})));
  for (const Cluster& cluster : clusters) {
    for (const ClusterFormat format : {ClusterFormat::kText, ClusterFormat::kJson}) {
      const std::string text = PrintCluster(cluster, format);
      const Cluster back = Read(text, format);
      EXPECT_EQ(PrintCluster(back, format), text);
      ASSERT_EQ(back.size(), cluster.size()) << cluster.name;
      EXPECT_EQ(back.name, cluster.name);
      EXPECT_EQ(back.device, cluster.device) << cluster.name;
      EXPECT_EQ(back.other_kinds, cluster.other_kinds);
      for (int32_t to = 1; to < std::min(cluster.size(), 100); ++to) {
        EXPECT_EQ(PathOf(back, 0, to), PathOf(cluster, 0, to)) << cluster.name;
        EXPECT_EQ(back.kind_of(DeviceId(to)), cluster.kind_of(DeviceId(to)));
      }
    }
  }
}

TEST(ClusterFile, TheExamplesRead) {
  const std::string folder = absl::StrCat(SourceDir(), "/examples/clusters/");
  const Cluster shared = ParseCluster(folder + "two_nodes_shared_nics.textproto").value();
  EXPECT_EQ(shared.kind_count(), 2);
  EXPECT_EQ(shared.device_of(DeviceId(4)).fp16, FlopRate(800e12));
  EXPECT_EQ(PathOf(shared, 0, 4), (PathInfo{Bandwidth(50'000'000'000), Duration(5'700'000)}));
  const Cluster tree = ParseCluster(folder + "pcie_tree.textproto").value();
  EXPECT_EQ(PathOf(tree, 0, 3).rate, Bandwidth(3'125'000'000));
  const Cluster rings = ParseCluster(folder + "ring_of_switches.json").value();
  EXPECT_EQ(rings.size(), 32);
  EXPECT_EQ(rings.name, "rings of four, joined by switches");
}

TEST(ClusterFile, ThatIsMissingIsAnError) {
  const absl::Status status = ParseCluster("nowhere/at_all.textproto").status();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("nowhere/at_all.textproto"));
}

// Bytes changed, cut, doubled and moved: an error of one line, or a cluster that answers.
TEST(ClusterFile, MutatedTextsNeverCrash) {
  std::mt19937 random(7);
  std::vector<std::string> texts = {std::string(kNodes), std::string(kGraph)};
  for (const char* spec :
       {"product:ring(4)@100GB/s,switch(2)@50GB/s", "fat-tree:16@50GB/s,radix=4"}) {
    texts.push_back(PrintCluster(ParseCluster(spec).value()));
    texts.push_back(PrintCluster(ParseCluster(spec).value(), ClusterFormat::kJson));
  }
  const absl::string_view pieces[] = {"-1",   "0",    "99999999999",   "\"",
                                      "{",    "}",    "nan",           "1e400",
                                      "true", "\xff", "size: 1048576", "parents: 1048576",
                                      "\n"};
  int reads = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string& base = texts[random() % texts.size()];
    std::string text = base;
    for (auto changes = 1 + random() % 2; changes > 0 && !text.empty(); --changes) {
      const size_t at = random() % text.size();
      const size_t length = random() % std::min<size_t>(12, text.size() - at + 1);
      const absl::string_view piece = pieces[random() % std::size(pieces)];
      text.replace(at, length,
                   random() % 2 == 0 ? std::string(piece) : base.substr(at / 2, length));
    }
    const bool is_json = base.front() == '{';
    const auto cluster =
        ParseClusterText(text, is_json ? ClusterFormat::kJson : ClusterFormat::kText, "mutated");
    if (!cluster.ok()) {
      EXPECT_FALSE(absl::StrContains(cluster.status().message(), '\n')) << cluster.status();
      continue;
    }
    ++reads;
    if (cluster->size() > 1) PathOf(*cluster, 0, cluster->size() - 1);
  }
  EXPECT_GT(reads, 50);
}

}  // namespace
}  // namespace cluster_file_test_cc
}  // namespace orrery::cluster
