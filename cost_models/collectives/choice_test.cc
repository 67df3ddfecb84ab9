#include "cost_models/collectives/choice.h"

#include <gtest/gtest.h>

#include "cluster/cluster.h"

namespace orrery::cost_models {
namespace choice_test_cc {
namespace {

using cluster::DeviceId;
using cluster::PathInfo;

std::vector<DeviceId> Group(const std::vector<int32_t>& devices) {
  std::vector<DeviceId> group;
  for (const int32_t device : devices) group.push_back(DeviceId(device));
  return group;
}

std::vector<DeviceId> First(int32_t count) {
  std::vector<DeviceId> group;
  for (int32_t device = 0; device < count; ++device) group.push_back(DeviceId(device));
  return group;
}

class ChoiceTest : public ::testing::Test {
 protected:
  // Nodes of 8: 300 GB/s and 2 us within one, 25 GB/s and 3.7 us between two.
  ChoiceTest() : cluster_(*cluster::ParseCluster("dgx-a100:2,ideal-collectives")) {}

  absl::StatusOr<ChosenCollective> Choose(const std::vector<DeviceId>& group, int64_t size,
                                          absl::string_view choice = "auto",
                                          CollectiveKind kind = CollectiveKind::kAllReduce) {
    return ChooseCollective({.kind = kind, .size = Bytes(size), .group = group}, cluster_.topology,
                            *CollectiveChoice::Parse(choice));
  }
  std::string Error(const std::vector<DeviceId>& group, absl::string_view choice = "auto",
                    CollectiveKind kind = CollectiveKind::kAllReduce) {
    return std::string(Choose(group, 8, choice, kind).status().message());
  }

  const cluster::Cluster cluster_;
};

// As libraries choose: few latencies for short messages, full bandwidth for long ones.
TEST_F(ChoiceTest, TakesTreesForShortAndRingsForLongMessages) {
  const cluster::Cluster two = *cluster::ParseCluster("dgx-a100:2");
  const std::vector<DeviceId> both = First(16);
  EXPECT_EQ(ChooseCollective({.size = Bytes(1024), .group = both}, two.topology)->algorithm->name,
            "tree");
  // Over two nodes a tree sends less: its root needs but one way. Over more it does not.
  EXPECT_EQ(Choose(First(16), 1 << 30)->algorithm->name, "tree");
  const cluster::Cluster four = *cluster::ParseCluster("dgx-a100:4");
  const std::vector<DeviceId> all = First(32);
  EXPECT_EQ(ChooseCollective({.size = Bytes(int64_t{1} << 33), .group = all}, four.topology)
                ->algorithm->name,
            "ring");
}

// Without a library the fewest steps count; long messages are left to what loads links least.
TEST_F(ChoiceTest, TakesTheSpanningTreeForShortMessagesWhereNoLibraryChooses) {
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
                                    CollectiveKind::kReduce, CollectiveKind::kBarrier}) {
    EXPECT_EQ(Choose(First(16), 1024, "auto", kind)->algorithm->name, "minimum-spanning-tree");
  }
  const cluster::Cluster library = *cluster::ParseCluster("dgx-a100:2");
  for (const int64_t size : {8, 1024, 1 << 30}) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
      const std::vector<DeviceId> all = First(16);
      const auto chosen =
          ChooseCollective({.kind = kind, .size = Bytes(size), .group = all}, library.topology);
      EXPECT_NE(chosen->algorithm->name, "minimum-spanning-tree");
    }
  }
}

std::string ChosenOn(absl::string_view spelling, int64_t size,
                     CollectiveKind kind = CollectiveKind::kAllReduce) {
  const cluster::Cluster cluster = *cluster::ParseCluster(spelling);
  const std::vector<DeviceId> all = First(cluster.size());
  const auto chosen =
      ChooseCollective({.kind = kind, .size = Bytes(size), .group = all}, cluster.topology);
  return std::string(chosen->algorithm->name);
}

// By what a topology has: links between all devices of a node, or rings along dimensions.
TEST(Choice, FollowsTheTopology) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    EXPECT_EQ(ChosenOn("mi300x:1", 1 << 30, kind), "direct");
    EXPECT_EQ(ChosenOn("mi300x:2", 1 << 30, kind), "hierarchical");
    EXPECT_EQ(ChosenOn("tpu-v4:4x4x4", 1 << 30, kind), "multidimensional-ring");
    EXPECT_EQ(ChosenOn("tpu-v5e:16x16", 1 << 30, kind), "multidimensional-ring");
    EXPECT_EQ(ChosenOn("ring:8@50GB/s,latency=1us", 1 << 30, kind), "bidirectional-ring");
    EXPECT_EQ(ChosenOn("uniform:8@200Gbps", 1 << 30, kind), "bidirectional-ring") << "ideal";
  }
  // Behind switches, as NCCL does.
  EXPECT_EQ(ChosenOn("dgx-h100:1", 1 << 30), "in-network");
  EXPECT_EQ(ChosenOn("switch:8@50GB/s,latency=1us", 1 << 30), "ring");
  EXPECT_EQ(ChosenOn("switch:8@50GB/s,latency=1us", 1 << 10), "tree");
}

TEST_F(ChoiceTest, IsTheFastestOfThoseItConsiders) {
  for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
    for (const int64_t size : {1, 100'000, 100'000'000}) {
      const auto chosen = Choose(First(16), size, "auto", kind.kind);
      ASSERT_TRUE(chosen.ok());
      for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
        const auto by_hand = Choose(First(16), size, algorithm->name, kind.kind);
        const auto group = First(16);
        const CollectiveCall call =
            MakeCall({.kind = kind.kind, .group = group}, cluster_.topology);
        if (!by_hand.ok() || !algorithm->IsChosen(call)) continue;
        EXPECT_LE(chosen->time, by_hand->time) << algorithm->name << " " << kind.name;
      }
    }
  }
}

TEST_F(ChoiceTest, OrderOfTheGroupDoesNotMatterWithoutARoot) {
  const auto sorted = Choose(First(16), 1 << 28);
  const auto mixed = Choose(Group({0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}), 1 << 28);
  EXPECT_EQ(sorted->time, mixed->time);
  const auto rooted = Choose(Group({9, 1, 8, 2}), 64, "auto", CollectiveKind::kBroadcast);
  EXPECT_EQ(rooted->group, Group({9, 1, 8, 2}));
}

// Whatever size was given: up and down a binomial tree, four latencies each way.
TEST_F(ChoiceTest, ABarrierMovesNothing) {
  const auto chosen = Choose(First(16), 1 << 30, "auto", CollectiveKind::kBarrier);
  EXPECT_EQ(chosen->time, Duration(2 * (3 * 2'000'000 + 3'700'000)));
}

TEST_F(ChoiceTest, TakesWhatItIsTold) {
  EXPECT_EQ(Choose(First(16), 1024, "ring")->algorithm->name, "ring");
  EXPECT_EQ(Choose(First(16), 1024, "all-reduce=direct,barrier=tree")->algorithm->name, "direct");
  EXPECT_EQ(Choose(First(16), 1 << 30, "broadcast=direct")->algorithm->name, "tree");
}

TEST_F(ChoiceTest, SaysWhatIsWrong) {
  EXPECT_EQ(Error(Group({0, 3, 3})), "device 3 stands twice in the group; wanted each once");
  EXPECT_EQ(Error(Group({0, 16})), "device 16 is not of the cluster; wanted 0 to 15");
  EXPECT_EQ(Error(Group({-1, 3})), "device -1 is not of the cluster; wanted 0 to 15");
  EXPECT_EQ(Error(Group({3})), "the group has 1 device; wanted at least two, as in 0-7 or 0,8,16");
  EXPECT_EQ(Error({}), "the group has 0 devices; wanted at least two, as in 0-7 or 0,8,16");
  EXPECT_EQ(Error(First(8), "hierarchical"),
            "algorithm 'hierarchical' cannot serve this group of 8, 8 a node; wanted several nodes "
            "of several ranks, equally many of each node, node by node");
  EXPECT_EQ(CollectiveChoice::Parse("scatter=ring").status().message(),
            "algorithm 'ring' is not for scatter; try minimum-spanning-tree, direct");
  EXPECT_EQ(CollectiveChoice::Parse("scatters=ring").status().message(),
            FindCollectiveKind("scatters").status().message());
}

TEST_F(ChoiceTest, SeesHowTheGroupLiesInNodes) {
  const auto a_node = [&](const std::vector<DeviceId>& group) {
    return MakeCall({.group = group}, cluster_.topology).ranks_a_node;
  };
  EXPECT_EQ(a_node(First(16)), 8);
  EXPECT_EQ(a_node(First(8)), 8);
  EXPECT_EQ(a_node(First(9)), 1);
  EXPECT_EQ(a_node(Group({0, 8})), 1);
  EXPECT_EQ(a_node(Group({0, 1, 8, 9})), 2);
  EXPECT_EQ(a_node(Group({0, 8, 1, 9})), 1);
}

TEST_F(ChoiceTest, SwitchesThatReduceAreUsed) {
  cluster::TopologyShape shape = cluster_.topology.shape();
  const std::vector<DeviceId> within = First(8), across = First(16);
  const auto name = [&](const std::vector<DeviceId>& group) {
    const auto topology = cluster::Topology::Create(cluster_.topology.kind(), shape);
    const CollectiveRequest request{.size = Bytes(1 << 30), .group = group};
    return std::string(ChooseCollective(request, *topology)->algorithm->name);
  };
  EXPECT_EQ(name(within), "ring");
  shape.port_switch_reduces = true;
  EXPECT_EQ(name(within), "in-network");
  EXPECT_EQ(name(across), "in-network");
  shape.port_switch_reduces = false;
  shape.nic_switch_reduces = true;
  EXPECT_NE(name(across), "in-network") << "of several ranks a node, both must";
}

class SlowestHopTest : public ChoiceTest {
 protected:
  PathInfo Hop(const std::vector<int32_t>& devices) {
    return SlowestHop(Group(devices), cluster_.topology);
  }

  const PathInfo kWithin = {Bandwidth(300'000'000'000), Duration(2'000'000)};
  const PathInfo kBetween = {Bandwidth(25'000'000'000), Duration(3'700'000)};
};

TEST_F(SlowestHopTest, StaysWithinANode) {
  EXPECT_EQ(Hop({0, 1}), kWithin);
  EXPECT_EQ(Hop({0, 1, 2, 3, 4, 5, 6, 7}), kWithin);
  EXPECT_EQ(Hop({14, 9}), kWithin);
}

TEST_F(SlowestHopTest, OneHopAcrossNodesSlowsTheRing) {
  EXPECT_EQ(Hop({0, 8}), kBetween);
  EXPECT_EQ(Hop({0, 1, 2, 3, 4, 5, 6, 7, 8}), kBetween);
  EXPECT_EQ(Hop({8, 9, 10, 0}), kBetween);
}

TEST_F(SlowestHopTest, ADeviceAloneHasNoHop) { EXPECT_DEATH(Hop({3}), "a group of 1"); }

}  // namespace
}  // namespace choice_test_cc
}  // namespace orrery::cost_models
