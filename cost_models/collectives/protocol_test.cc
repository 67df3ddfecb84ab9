#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/collectives/pricing_test_util.h"
#include "cost_models/collectives/steps.h"

// Collectives by the protocols of a communication library: closed forms by hand, and properties
// over all algorithms, kinds, machines and sizes.

namespace orrery::cost_models {
namespace protocol_test_cc {
namespace {

using cluster::CollectiveProtocol;
using cluster::DeviceId;
using cluster::Topology;

std::vector<DeviceId> First(int32_t count) {
  std::vector<DeviceId> group;
  for (int32_t i = 0; i < count; ++i) group.push_back(DeviceId(i));
  return group;
}

Topology With(const std::string& spelling, std::vector<CollectiveProtocol> protocols) {
  Topology topology = cluster::ParseCluster(spelling)->topology;
  topology.SetCollectiveProfile({.name = "test", .protocols = std::move(protocols)});
  return topology;
}

Topology TopologyOf(const std::string& spelling) {
  return cluster::ParseCluster(spelling)->topology;
}

struct Asked {
  std::string algorithm = "auto";
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t size = 0;
};

ChosenCollective Choose(const Topology& topology, const Asked& asked, int32_t devices = 0) {
  const std::vector<DeviceId> group = First(devices > 0 ? devices : topology.devices());
  const auto chosen =
      ChooseCollective({.kind = asked.kind, .size = Bytes(asked.size), .group = group}, topology,
                       *CollectiveChoice::Parse(asked.algorithm));
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return *chosen;
}

double Microseconds(const Topology& topology, const Asked& asked) {
  return Choose(topology, asked).time.microseconds();
}

// All figures round: a device's port passes 100 bytes a nanosecond.
const CollectiveProtocol kPlain = {.name = "plain",
                                   .rate = 0.5,
                                   .rate_between_nodes = 0.8,
                                   .start_up = Duration(10'000'000),
                                   .step_in_node = Duration(1'000'000),
                                   .step_between_nodes = Duration(3'000'000)};
const std::string kNode = "nodes:1x8@100GB/s,nic=10GB/s";
const std::string kTwo = "nodes:2x8@100GB/s,nic=5GB/s";

TEST(Protocol, OfARingIsItsClosedForm) {
  const Topology node = With(kNode, {kPlain});
  EXPECT_DOUBLE_EQ(Microseconds(node, {.algorithm = "ring"}), 10 + 14);
  // 1.75 of 8 MB at half of 100 GB/s.
  EXPECT_NEAR(Microseconds(node, {.algorithm = "ring", .size = 8'000'000}), 24 + 280, 1e-3);
  EXPECT_NEAR(
      Microseconds(node,
                   {.algorithm = "ring", .kind = CollectiveKind::kAllGather, .size = 8'000'000}),
      10 + 7 + 140, 1e-3);
}

// Of eight ranks an eighth of the tensor, whatever passes the links.
TEST(Protocol, ARanksOwnPartTakesTimeBesideTheLinks) {
  CollectiveProtocol copies = kPlain;
  copies.part_rate = Bandwidth(10'000'000'000);
  const Topology node = With(kNode, {copies});
  EXPECT_NEAR(Microseconds(node, {.algorithm = "ring", .size = 8'000'000}), 24 + 280 + 100, 1e-2);
  EXPECT_NEAR(
      Microseconds(
          node, {.algorithm = "ring", .kind = CollectiveKind::kReduceScatter, .size = 8'000'000}),
      17 + 140 + 100, 1e-2);
  // Where the way between nodes is what bounds, they hide.
  const double without = Microseconds(With(kTwo, {kPlain}), {.algorithm = "ring", .size = 8 << 20});
  EXPECT_DOUBLE_EQ(Microseconds(With(kTwo, {copies}), {.algorithm = "ring", .size = 8 << 20}),
                   without);
}

TEST(Protocol, LinksBetweenNodesReachTheirOwnRate) {
  const Topology two = With(kTwo, {kPlain});
  EXPECT_DOUBLE_EQ(Microseconds(two, {.algorithm = "ring"}), 10 + 26 + 4 * 3);
  // 30/16 of 16 MB by eight NICs of 5 GB/s, at 0.8 of it.
  EXPECT_NEAR(Microseconds(two, {.algorithm = "ring", .size = 16'000'000}), 48 + 937.5, 1e-2);
  CollectiveProtocol slower = kPlain;
  slower.rate_between_nodes = 0.4;
  EXPECT_NEAR(Microseconds(With(kTwo, {slower}), {.algorithm = "ring", .size = 16'000'000}),
              48 + 1875.0, 1e-2);
}

TEST(Protocol, TheLatencyOfLinksCountsBetweenNodesOnly) {
  const std::string far = "nodes:2x8@100GB/s+5us,nic=10GB/s+2us";
  const Topology two = With(far, {kPlain});
  EXPECT_DOUBLE_EQ(Microseconds(two, {.algorithm = "ring"}), 10 + 26 + 4 * (3 + 4));
}

TEST(Protocol, TheFastestIsTakenForEachSize) {
  const CollectiveProtocol quick = {.name = "quick", .rate = 0.1, .start_up = Duration(1'000'000)};
  const CollectiveProtocol wide = {.name = "wide", .rate = 0.9, .start_up = Duration(90'000'000)};
  const Topology topology = With(kNode, {quick, wide});
  EXPECT_EQ(Choose(topology, {.size = 1000}).protocol.name, "quick");
  EXPECT_EQ(Choose(topology, {.size = 1 << 30}).protocol.name, "wide");
  EXPECT_EQ(Choose(topology, {.kind = CollectiveKind::kBarrier, .size = 1 << 30}).protocol.name,
            "quick");
  // Of equal ones, the first.
  CollectiveProtocol twin = quick;
  twin.name = "twin";
  EXPECT_EQ(Choose(With(kNode, {quick, twin}), {.size = 1000}).protocol.name, "quick");
}

TEST(Protocol, SwitchesThatReduceHaveTheirOwn) {
  const CollectiveProtocol nvls = {.name = "nvls", .rate = 0.8, .in_network = true};
  Topology topology = TopologyOf("dgx-h100:1");
  topology.SetCollectiveProfile({.protocols = {kPlain, nvls}});
  EXPECT_EQ(Choose(topology, {.algorithm = "in-network", .size = 1 << 20}).protocol.name, "nvls");
  EXPECT_EQ(Choose(topology, {.algorithm = "ring", .size = 1 << 20}).protocol.name, "plain");
  // Without one of their own they take any.
  topology.SetCollectiveProfile({.protocols = {kPlain}});
  EXPECT_EQ(Choose(topology, {.algorithm = "in-network", .size = 1 << 20}).protocol.name, "plain");
}

// Also of those in a ring by hand.
TEST(Protocol, SendsHaveTheirOwn) {
  CollectiveProtocol sends = kPlain;
  sends.name = "p2p";
  sends.sends = true;
  const Topology topology = With(kNode, {kPlain, sends});
  for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
    const bool of_sends =
        kind.kind == CollectiveKind::kAllToAll || kind.kind == CollectiveKind::kScatter ||
        kind.kind == CollectiveKind::kGather || kind.kind == CollectiveKind::kSendReceive;
    EXPECT_EQ(Choose(topology, {.kind = kind.kind, .size = 8000}).protocol.name,
              of_sends ? "p2p" : "plain")
        << kind.name;
  }
  // Seven messages, and seven eighths of 8 MB at half of 100 GB/s.
  EXPECT_NEAR(Microseconds(topology, {.kind = CollectiveKind::kAllToAll, .size = 8'000'000}),
              10 + 7 + 140, 1e-3);
  EXPECT_EQ(Choose(topology, {.algorithm = "ring", .kind = CollectiveKind::kAllToAll, .size = 8})
                .protocol.name,
            "p2p");
  // Without one of their own they take any.
  EXPECT_EQ(
      Choose(With(kNode, {kPlain}), {.kind = CollectiveKind::kAllToAll, .size = 8}).protocol.name,
      "plain");
}

// In a library a tree is a chain in each node.
TEST(Protocol, TreesAreChainsInNodes) {
  const Topology topology = TopologyOf("dgx-a100:1");
  const ChosenCollective tree = Choose(topology, {.algorithm = "tree", .size = 1 << 26});
  EXPECT_EQ(tree.cost.steps.in_node, 14);
  EXPECT_EQ(Choose(TopologyOf("dgx-a100:1,ideal-collectives"), {.algorithm = "tree"}).cost.steps,
            StepCount{});
  const ChosenCollective nodes = Choose(TopologyOf("dgx-a100:4"), {.algorithm = "tree"});
  EXPECT_EQ(nodes.cost.steps.in_node, 14);
  EXPECT_EQ(nodes.cost.steps.between_nodes, 4);
}

const char* const kMachines[] = {"dgx-a100:2",    "dgx-h100:1", "aws-p5:4",
                                 "aws-p4de:2",    "mi300x:2",   "dgx-v100:2",
                                 "gb200-nvl72:1", "dgx-b200:3", "h100-torchtitan:2"};

// A library never beats the wires that it uses, by no algorithm and for no size; and what is larger
// takes no less.
TEST(ProtocolProperty, IsNeverFasterThanItsLinksAndGrows) {
  for (const char* spelling : kMachines) {
    const Topology topology = TopologyOf(spelling);
    for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
      for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
        if (!algorithm->kinds.contains(kind.kind) || topology.devices() > 64) continue;
        const std::vector<DeviceId> group = First(topology.devices());
        const CollectiveCall call =
            MakeCall({.kind = kind.kind, .size = Bytes(1), .group = group}, topology);
        if (!algorithm->Supports(call)) continue;
        const DeviceGroup span = group;
        const RoundsCost cost = CostOf(topology, std::span(&span, 1), algorithm->rounds(call));
        for (const CollectiveProtocol& protocol : topology.collective_profile().protocols) {
          SCOPED_TRACE(
              absl::StrCat(spelling, " ", algorithm->name, " ", kind.name, " ", protocol.name));
          Duration before;
          for (int64_t size = 1; size <= int64_t{1} << 36; size *= 64) {
            const Duration time = TimeOf(cost, Bytes(size), protocol);
            EXPECT_GE(time, BusiestLinkOf(cost, Bytes(size)).busy) << size;
            EXPECT_GE(time, LatencyOf(cost.steps, protocol)) << size;
            EXPECT_GE(time, before) << size;
            before = time;
          }
        }
      }
    }
  }
}

TEST(ProtocolProperty, TheChosenIsTheLeastOfAllProtocols) {
  std::mt19937_64 random(17);
  for (const char* spelling : kMachines) {
    const Topology topology = TopologyOf(spelling);
    for (int i = 0; i < 12; ++i) {
      const auto size = static_cast<int64_t>(random() >> (24 + random() % 40));
      const ChosenCollective chosen = Choose(topology, {.size = size});
      EXPECT_FALSE(chosen.protocol.ideal());
      EXPECT_EQ(chosen.time, TimeOf(chosen.cost, Bytes(size), chosen.protocol));
      for (const CollectiveProtocol& protocol : topology.collective_profile().protocols) {
        if (protocol.in_network != chosen.protocol.in_network || protocol.sends) continue;
        EXPECT_LE(chosen.time, TimeOf(chosen.cost, Bytes(size), protocol)) << spelling;
      }
    }
  }
}

// A profile of one protocol that adds nothing streams like the wires. Only their latencies in the
// node are not counted.
TEST(ProtocolProperty, ThatAddsNothingIsTheWires) {
  const CollectiveProtocol nothing = {.name = "nothing"};
  for (const char* spelling : {"nodes:1x8@100GB/s", "switch:8@100GB/s", "ring:8@100GB/s"}) {
    const Topology with = With(spelling, {nothing}), without = TopologyOf(spelling);
    for (const char* algorithm : {"ring", "direct", "halving-doubling", "bidirectional-ring"}) {
      for (const int64_t size : {0, 1, 1000, 8'000'000}) {
        const Asked asked = {.algorithm = algorithm, .size = size};
        EXPECT_EQ(Choose(with, asked).time, Choose(without, asked).time)
            << spelling << " " << algorithm << " " << size;
      }
    }
  }
}

// Nodes further away add steps between them and none within, by rings and trees alike.
TEST(ProtocolProperty, MoreNodesTakeLonger) {
  for (const char* preset : {"dgx-a100", "dgx-h100", "aws-p5", "mi300x"}) {
    for (const int64_t size : {0, 1 << 16, 1 << 24, 1 << 30}) {
      Duration before;
      for (const int32_t nodes : {1, 2, 4, 8, 16}) {
        const Duration time =
            Choose(TopologyOf(absl::StrCat(preset, ":", nodes)), {.size = size}).time;
        EXPECT_GE(time, before) << preset << " " << nodes << " " << size;
        before = time;
      }
    }
  }
}

// Two groups at once on links of their own cost what one does; flows load what both use.
TEST(ProtocolProperty, GroupsApartDoNotSlowEachOther) {
  const Topology topology = TopologyOf("dgx-h100:2");
  const std::vector<DeviceId> first = First(8);
  std::vector<DeviceId> second = first;
  for (DeviceId& device : second) device = DeviceId(device.index() + 8);
  const DeviceGroup both[] = {first, second};
  const ChosenCollective chosen = Choose(topology, {.size = 1 << 26}, 8);
  const CollectiveFlow one =
      LoadsOf(topology, std::span(both, 1), chosen.rounds, Bytes(1 << 26), chosen.protocol);
  const CollectiveFlow two =
      LoadsOf(topology, both, chosen.rounds, Bytes(1 << 26), chosen.protocol);
  EXPECT_EQ(one.latency + TransferTime(one.size, one.rate), chosen.time);
  EXPECT_EQ(two.latency + TransferTime(two.size, two.rate), chosen.time);
  EXPECT_EQ(two.loads.size(), 2 * one.loads.size());
}

}  // namespace
}  // namespace protocol_test_cc
}  // namespace orrery::cost_models
