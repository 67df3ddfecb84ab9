#include "cost_models/collectives/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"

namespace orrery::cost_models {
namespace steps_test_cc {
namespace {

using cluster::DeviceId;

// Steps in a node and between nodes: "14 + 2". The latency of the wire is checked apart.
std::string Steps(absl::string_view algorithm, CollectiveKind kind, const std::string& spelling,
                  int64_t size = 1 << 20) {
  const cluster::Cluster cluster = *cluster::ParseCluster(spelling);
  std::vector<DeviceId> group;
  for (int32_t i = 0; i < cluster.size(); ++i) group.push_back(DeviceId(i));
  const CollectiveCall call =
      MakeCall({.kind = kind, .size = Bytes(size), .group = group}, cluster.topology);
  const CollectiveAlgorithm& record = **FindCollectiveAlgorithm(algorithm);
  EXPECT_TRUE(record.Supports(call)) << algorithm << " " << spelling;
  const StepCount steps = CountSteps(cluster.topology, group, record.rounds(call));
  EXPECT_EQ(steps.wire > Duration(0), steps.between_nodes > 0);
  return absl::StrCat(steps.in_node, " + ", steps.between_nodes);
}

TEST(CountSteps, OfARingAreItsHops) {
  using enum CollectiveKind;
  EXPECT_EQ(Steps("ring", kAllReduce, "dgx-a100:1"), "14 + 0");
  EXPECT_EQ(Steps("ring", kAllGather, "dgx-a100:1"), "7 + 0");
  // 15 hops, of which a message passes one in eight between nodes.
  EXPECT_EQ(Steps("ring", kReduceScatter, "dgx-a100:2"), "13 + 2");
  EXPECT_EQ(Steps("ring", kAllReduce, "dgx-a100:8"), "110 + 16");
}

// The number of pieces does not count, the way of the first does.
TEST(CountSteps, OfAPipelineAreItsLongestChain) {
  using enum CollectiveKind;
  for (const int64_t size : {1, 1 << 20, 1 << 30}) {
    EXPECT_EQ(Steps("ring", kBroadcast, "dgx-a100:1", size), "7 + 0");
    EXPECT_EQ(Steps("ring", kReduce, "dgx-a100:2", size), "14 + 1");
  }
}

TEST(CountSteps, OfSwitchesThatReduce) {
  using enum CollectiveKind;
  EXPECT_EQ(Steps("in-network", kAllReduce, "dgx-h100:1"), "4 + 0");
  EXPECT_EQ(Steps("in-network", kAllReduce, "dgx-h100:2"), "4 + 2");
  // As a tree over the nodes, up and down.
  EXPECT_EQ(Steps("in-network", kAllReduce, "dgx-h100:8"), "4 + 6");
  EXPECT_EQ(Steps("in-network", kAllGather, "dgx-h100:9"), "2 + 4");
}

TEST(CountSteps, OfDirectExchangesIsOne) {
  EXPECT_EQ(Steps("direct", CollectiveKind::kAllToAll, "dgx-a100:1"), "1 + 0");
  EXPECT_EQ(Steps("direct", CollectiveKind::kAllToAll, "dgx-a100:2"), "0 + 1");
}

TEST(CountSteps, WithoutNodesAreAllInOne) {
  EXPECT_EQ(Steps("ring", CollectiveKind::kAllReduce, "switch:8@50GB/s"), "14 + 0");
  EXPECT_EQ(DevicesANode(cluster::ParseCluster("switch:8@50GB/s")->topology), 1);
  EXPECT_EQ(DevicesANode(cluster::ParseCluster("dgx-a100:2")->topology), 8);
  EXPECT_EQ(DevicesANode(cluster::ParseCluster("mi300x:2")->topology), 8);
}

// The first piece, followed repetition by repetition: where it can be, and after how many steps.
int64_t LongestWay(const Rounds& rounds, int32_t devices_a_node, bool between) {
  const Round& round = rounds.rounds.front();
  using Way = std::pair<int64_t, int64_t>;  // steps between nodes, then in a node
  std::vector<Way> ways(static_cast<size_t>(rounds.ranks));
  Way longest;
  std::vector<bool> passed(round.transfers.size());
  for (int64_t repetition = 0; repetition < round.repeat; ++repetition) {
    const std::vector<Way> before = ways;
    for (size_t t = 0; t < round.transfers.size(); ++t) {
      const Transfer& transfer = round.transfers[t];
      if (passed[t] || FirstPart(transfer, round, repetition, rounds.parts) < 0) continue;
      passed[t] = true;
      Way way = before[static_cast<size_t>(transfer.from)];
      const bool leaves = transfer.from / devices_a_node != transfer.to / devices_a_node;
      ++(leaves ? way.first : way.second);
      Way& end = ways[static_cast<size_t>(transfer.to)];
      end = std::max(end, way);
      longest = std::max(longest, end);
    }
  }
  return between ? longest.first : longest.second;
}

TEST(CountSteps, OfAPipelineIsThatOfItsFirstPiece) {
  for (const char* spelling : {"nodes:1x8@1GB/s", "nodes:3x4@1GB/s,nic=1GB/s",
                               "nodes:8x2@1GB/s,nic=1GB/s", "nodes:5x3@1GB/s,nic=1GB/s"}) {
    const cluster::Topology topology = cluster::ParseCluster(spelling)->topology;
    std::vector<DeviceId> group;
    for (int32_t i = 0; i < topology.devices(); ++i) group.push_back(DeviceId(i));
    for (const char* name : {"tree", "ring"}) {
      for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast}) {
        const CollectiveCall call =
            MakeCall({.kind = kind, .size = Bytes(1 << 28), .group = group}, topology);
        const CollectiveAlgorithm& algorithm = **FindCollectiveAlgorithm(name);
        if (!algorithm.Supports(call)) continue;
        const Rounds rounds = algorithm.rounds(call);
        if (rounds.rounds.size() != 1 || !rounds.rounds[0].pipelined) continue;
        const StepCount steps = CountSteps(topology, group, rounds);
        const int32_t a_node = DevicesANode(topology);
        EXPECT_EQ(steps.between_nodes, LongestWay(rounds, a_node, true)) << name << spelling;
        EXPECT_EQ(steps.in_node, LongestWay(rounds, a_node, false)) << name << spelling;
      }
    }
  }
}

TEST(CountSteps, CountsTheMessagesOfARank) {
  const cluster::Topology topology = cluster::ParseCluster("nodes:2x4@1GB/s,nic=1GB/s")->topology;
  std::vector<DeviceId> group;
  for (int32_t i = 0; i < 8; ++i) group.push_back(DeviceId(i));
  const auto messages = [&](const char* algorithm, CollectiveKind kind) {
    const CollectiveCall call = MakeCall({.kind = kind, .group = group}, topology);
    return CountSteps(topology, group, (*FindCollectiveAlgorithm(algorithm))->rounds(call))
        .messages;
  };
  // To the three others of the node; whether from one or to one.
  EXPECT_EQ(messages("direct", CollectiveKind::kAllToAll), 3);
  EXPECT_EQ(messages("direct", CollectiveKind::kScatter), 3);
  EXPECT_EQ(messages("direct", CollectiveKind::kGather), 3);
  EXPECT_EQ(messages("direct", CollectiveKind::kSendReceive), 1);
}

TEST(LatencyOf, IsStartAndSteps) {
  const cluster::CollectiveProtocol protocol = {.name = "p",
                                                .start_up = Duration(1000),
                                                .step_in_node = Duration(10),
                                                .step_between_nodes = Duration(100)};
  EXPECT_EQ(LatencyOf({.between_nodes = 2, .in_node = 3, .wire = Duration(7)}, protocol),
            Duration(1000 + 3 * 10 + 2 * 107));
  cluster::CollectiveProtocol sends = protocol;
  sends.sends = true;
  EXPECT_EQ(
      LatencyOf({.between_nodes = 1, .in_node = 0, .wire = Duration(7), .messages = 5}, sends),
      Duration(1000 + 5 * 10 + 107));
}

}  // namespace
}  // namespace steps_test_cc
}  // namespace orrery::cost_models
