#include "cost_models/collectives/pricing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/pricing_test_util.h"

namespace orrery::cost_models {
namespace pricing_test_cc {
namespace {

using cluster::DeviceId;
using cluster::LinkNumber;
using cluster::PathInfo;
using cluster::Topology;

// A byte takes 1000 ps, a hop 7 ps more.
constexpr PathInfo kHop = {Bandwidth(1'000'000'000), Duration(7)};

Topology Make(absl::string_view kind, const cluster::TopologyShape& shape) {
  for (const cluster::TopologyKind* candidate : cluster::AllTopologies()) {
    if (candidate->name == kind) return *Topology::Create(*candidate, shape);
  }
  ADD_FAILURE() << kind;
  return Topology();
}

Topology Uniform(int32_t devices) {
  return Make("fully_connected", {.devices = devices, .port = kHop});
}

std::vector<DeviceId> Devices(int32_t count, int32_t first = 0, int32_t stride = 1) {
  std::vector<DeviceId> devices;
  for (int32_t i = 0; i < count; ++i) devices.push_back(DeviceId(first + i * stride));
  return devices;
}

Rounds RoundsOf(absl::string_view algorithm, const CollectiveCall& call) {
  return (*FindCollectiveAlgorithm(algorithm))->rounds(call);
}

int64_t Picoseconds(absl::string_view algorithm, CollectiveKind kind, int64_t size, int32_t n) {
  const Rounds rounds = RoundsOf(algorithm, {.kind = kind, .size = Bytes(size), .ranks = n});
  return PriceOn(Uniform(n), Devices(n), rounds, Bytes(size)).picoseconds();
}

TEST(PriceOn, IsTheClosedFormOfARing) {
  EXPECT_EQ(Picoseconds("ring", CollectiveKind::kAllReduce, 100, 2), 2 * (50'000 + 7));
  EXPECT_EQ(Picoseconds("ring", CollectiveKind::kAllGather, 100, 4), 3 * (25'000 + 7));
  for (int32_t n = 2; n <= 64; ++n) {
    EXPECT_EQ(Picoseconds("ring", CollectiveKind::kAllReduce, 1000 * n, n),
              2 * (n - 1) * (1'000'000 + 7));
    EXPECT_EQ(Picoseconds("ring", CollectiveKind::kReduceScatter, 1000 * n, n),
              (n - 1) * (1'000'000 + 7));
  }
}

TEST(PriceOn, OfNothingIsLatencies) {
  EXPECT_EQ(Picoseconds("ring", CollectiveKind::kAllReduce, 0, 4), 6 * 7);
  EXPECT_EQ(Picoseconds("minimum-spanning-tree", CollectiveKind::kBarrier, 0, 8), 6 * 7);
}

// Two thirds of a byte an all-gather of 1 byte: 666.67 ps, of which the last is begun.
TEST(PriceOn, RoundsOnceUp) {
  EXPECT_EQ(Picoseconds("ring", CollectiveKind::kAllGather, 1, 3), 667 + 2 * 7);
  EXPECT_EQ(Picoseconds("ring", CollectiveKind::kAllReduce, 1, 3), 1334 + 4 * 7);
}

TEST(PriceOn, IsTheClosedFormOfOthers) {
  EXPECT_EQ(Picoseconds("direct", CollectiveKind::kAllReduce, 8000, 8), 2 * (1'000'000 + 7));
  EXPECT_EQ(Picoseconds("minimum-spanning-tree", CollectiveKind::kBroadcast, 1000, 8),
            3 * (1'000'000 + 7));
  // Halves: 4, 2, 1, then 1, 2, 4 of 8 parts.
  EXPECT_EQ(Picoseconds("halving-doubling", CollectiveKind::kAllReduce, 8000, 8),
            14'000'000 + 6 * 7);
  EXPECT_EQ(Picoseconds("bidirectional-ring", CollectiveKind::kAllGather, 8000, 8),
            7 * (500'000 + 7));
}

class NodesTest : public ::testing::Test {
 protected:
  // Nodes of 8: ports of 300 GB/s and 1 us, NICs of 25 GB/s and 1.85 us.
  NodesTest() : cluster_(*cluster::ParseCluster("dgx-a100:4")) {}

  Duration Time(absl::string_view algorithm, CollectiveCall call, std::vector<DeviceId> group) {
    call.ranks = static_cast<int32_t>(group.size());
    return PriceOn(cluster_.topology, group, RoundsOf(algorithm, call), call.size);
  }

  const cluster::Cluster cluster_;
};

TEST_F(NodesTest, RingWithinANodeTakesPorts) {
  const Bytes size(300'000'000);
  EXPECT_EQ(Time("ring", {.size = size, .ranks_a_node = 8}, Devices(8)),
            TransferTime(size, 14, 8, Bandwidth(300'000'000'000)) + Duration(2'000'000) * 14);
}

// Eight rings leave by eight cards: each card carries an eighth.
TEST_F(NodesTest, RingsAcrossNodesTakeAllCards) {
  const Bytes size(int64_t{1} << 30);
  const Duration one = TransferTime(size, 62, 32, Bandwidth(25'000'000'000));
  const Duration all = TransferTime(size, 62, 32 * 8, Bandwidth(25'000'000'000));
  const Duration latency = Duration(3'700'000) * 62;
  EXPECT_EQ(Time("ring", {.size = size, .ranks_a_node = 1}, Devices(32)), one + latency);
  EXPECT_EQ(Time("ring", {.size = size, .ranks_a_node = 8}, Devices(32)), all + latency);
}

TEST_F(NodesTest, HierarchyTakesTheSumOfItsLevels) {
  const Bytes size(1 << 28);
  const Duration within = TransferTime(size, 2 * 7, 8, Bandwidth(300'000'000'000));
  const Duration across = TransferTime(size, 2 * 3, 32, Bandwidth(25'000'000'000));
  const Duration time = Time("hierarchical", {.size = size, .ranks_a_node = 8}, Devices(32));
  const Duration sum = within + across + Duration(2'000'000) * 14 + Duration(3'700'000) * 6;
  EXPECT_LE(time, sum);  // which rounded twice
  EXPECT_GE(time, sum - Duration(1));
}

TEST_F(NodesTest, SwitchThatReducesHalvesTheTime) {
  const Bytes size(int64_t{1} << 30);
  // Of an all-reduce, all data and a rank's eighth of the result pass each port, each way.
  EXPECT_EQ(Time("in-network", {.size = size, .ranks_a_node = 8, .node_reduces = true}, Devices(8)),
            TransferTime(size, 9, 8, Bandwidth(300'000'000'000)) + Duration(1'000'000) * 4);
}

TEST_F(NodesTest, GroupsThatShareNothingCostWhatOneCosts) {
  const Rounds rounds = RoundsOf("ring", {.ranks = 4});
  const std::vector<DeviceId> a = Devices(4, 0, 8), b = Devices(4, 1, 8);
  const std::vector<DeviceGroup> both = {a, b};
  const Bytes size(12'345'678);
  EXPECT_EQ(TimeOf(CostOf(cluster_.topology, both, rounds), size),
            PriceOn(cluster_.topology, a, rounds, size));
}

TEST_F(NodesTest, GroupsThatShareACardTakeItInTurns) {
  const Rounds rounds = RoundsOf("direct", {.kind = CollectiveKind::kSendReceive, .ranks = 2});
  const std::vector<DeviceId> a = Devices(2, 0, 8), b = Devices(2, 0, 16);
  const std::vector<DeviceGroup> both = {a, b};
  const Bytes size(1'000'000);
  EXPECT_EQ(TimeOf(CostOf(cluster_.topology, both, rounds), size),
            TransferTime(size, 2, 1, Bandwidth(25'000'000'000)) + Duration(3'700'000));
}

TEST_F(NodesTest, NamesTheBusiestLink) {
  const Rounds rounds = RoundsOf("ring", {.ranks = 9});
  const std::vector<DeviceId> group = Devices(9);
  const DeviceGroup span = group;
  const RoundsCost cost = CostOf(cluster_.topology, std::span(&span, 1), rounds);
  const BusiestLink busiest = BusiestLinkOf(cost, Bytes(900));
  EXPECT_EQ(cluster_.topology.LinkAt(busiest.link).kind, "nic");
  EXPECT_EQ(busiest.busy, TransferTime(Bytes(1600), Bandwidth(25'000'000'000)));
}

// A slower link holds up all steps of a ring; the latency of another does not add to its time.
TEST(CostOf, KeepsEveryWayToBeTheSlowest) {
  Rounds rounds = RoundsOf("ring", {.ranks = 8});
  const Topology nodes =
      Make("nodes", {.devices = 8,
                     .devices_per_node = 4,
                     .port = {Bandwidth(1'000'000), Duration(1)},
                     .nic = {Bandwidth(1'000'000'000), Duration(1'000'000'000)}});
  const std::vector<DeviceId> group = Devices(8);
  // A part of 8 bytes: 8 us over a port and no latency; over a NIC 8 ns and 2 ms.
  EXPECT_EQ(PriceOn(nodes, group, rounds, Bytes(64)), Duration(2'000'008'000) * 14);
  EXPECT_EQ(PriceOn(nodes, group, rounds, Bytes(64'000)), Duration(8'000'000'000 + 2) * 14);
}

// The ideal one, those of a machine, and one without copies.
std::vector<cluster::CollectiveProtocol> Protocols() {
  std::vector<cluster::CollectiveProtocol> protocols = {IdealProtocol()};
  const cluster::CollectiveProfile hopper = *cluster::FindCollectiveProfile("nccl-hopper");
  protocols.insert(protocols.end(), hopper.protocols.begin(), hopper.protocols.end());
  protocols.push_back({.name = "wires", .rate = 0.9375, .start_up = Duration(1'234'567)});
  return protocols;
}

class FlowTest : public ::testing::TestWithParam<const CollectiveAlgorithm*> {};

// Alone, a flow takes exactly the closed form, and no link carries more than it can.
TEST_P(FlowTest, TakesTheClosedFormAndLoadsNoLinkTooMuch) {
  const cluster::Cluster cluster = *cluster::ParseCluster("dgx-a100:4");
  std::mt19937_64 random(7);
  for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
    for (int i = 0; i < 60; ++i) {
      const auto pick = [&](int64_t most) {
        return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
      };
      const Bytes size(pick(2) == 0 ? pick(1000) : pick(int64_t{1} << 36));
      const int32_t nodes = static_cast<int32_t>(1 + pick(4)), a_node = nodes == 1 ? 8 : 4;
      std::vector<DeviceId> group;
      for (int32_t n = 0; n < nodes; ++n) {
        for (int32_t d = 0; d < a_node; ++d) group.push_back(DeviceId(n * 8 + d));
      }
      const CollectiveCall call{.kind = kind.kind,
                                .size = size,
                                .ranks = nodes * a_node,
                                .ranks_a_node = a_node,
                                .node_reduces = true,
                                .hop = cluster.topology.Path(DeviceId(0), DeviceId(8))};
      if (!GetParam()->Supports(call)) continue;
      SCOPED_TRACE(absl::StrCat(kind.name, " of ", size.count(), " over ", nodes, "x", a_node));
      const DeviceGroup span = group;
      const RoundsCost cost =
          CostOf(cluster.topology, std::span(&span, 1), GetParam()->rounds(call));
      for (const auto& protocol : Protocols()) {
        SCOPED_TRACE(protocol.name);
        const CollectiveFlow flow = FlowOf(cost, size, protocol);
        const Duration time = TimeOf(cost, size, protocol);
        EXPECT_EQ(flow.latency + TransferTime(flow.size, flow.rate), time);
        EXPECT_GE(flow.latency, Duration(0));
        for (const LinkLoad& load : flow.loads) {
          const auto rate =
              static_cast<double>(cluster.topology.LinkAt(load.link).speed.rate.bytes_per_second());
          EXPECT_LE(load.load * static_cast<double>(flow.rate.bytes_per_second()),
                    rate * (1 + 1e-6) + 1);
        }
        EXPECT_LE(BusiestLinkOf(cost, size).busy, time);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FlowTest, ::testing::ValuesIn(AllCollectiveAlgorithms()),
                         [](const auto& info) {
                           std::string name(info.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(FlowOf, IsTheRateOfALinkTimesTheParts) {
  const Topology uniform = Uniform(4);
  const std::vector<DeviceId> group = Devices(4);
  const DeviceGroup span = group;
  const CollectiveFlow flow =
      LoadsOf(uniform, std::span(&span, 1), RoundsOf("ring", {.ranks = 4}), Bytes(400));
  EXPECT_EQ(flow.size, Bytes(600));
  EXPECT_EQ(flow.rate, kHop.rate);
  EXPECT_EQ(flow.latency, Duration(6 * 7));
  ASSERT_EQ(flow.loads.size(), 4u);
  for (const LinkLoad& load : flow.loads) EXPECT_EQ(load.load, 1.0);
}

// A size that n does not divide gets the same share of a link: a unit of a flow's rate is a byte a
// second on the links that set the pace, whatever the size. It once was 1/n of that.
TEST(FlowOf, AByteMoreChangesNoShare) {
  const Topology uniform = Uniform(7);
  const std::vector<DeviceId> group = Devices(7);
  const RoundsCost cost =
      CostOf(uniform, std::vector<DeviceGroup>{group}, RoundsOf("ring", {.ranks = 7}));
  for (int64_t size = 84'000'000; size < 84'000'007; ++size) {
    const CollectiveFlow flow = FlowOf(cost, Bytes(size));
    EXPECT_EQ(flow.latency + TransferTime(flow.size, flow.rate), TimeOf(cost, Bytes(size)));
    for (const LinkLoad& load : flow.loads) EXPECT_NEAR(load.load, 1, 1e-7) << size;
  }
}

// More bytes and slower paths never take less time.
TEST(PriceOn, GrowsWithSizeAndSlowerPaths) {
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (const int32_t n : {2, 3, 8, 17}) {
        const CollectiveCall call{.kind = kind.kind, .size = Bytes(1000), .ranks = n, .hop = kHop};
        if (!algorithm->Supports(call)) continue;
        const Rounds rounds = algorithm->rounds(call);
        const auto price = [&](PathInfo port, int64_t size) {
          const Topology topology = Make("fully_connected", {.devices = n, .port = port});
          return PriceOn(topology, Devices(n), rounds, Bytes(size));
        };
        const Duration time = price(kHop, 1000);
        EXPECT_GE(price(kHop, 1999), time) << algorithm->name;
        EXPECT_GE(price({Bandwidth(500'000'000), kHop.latency}, 1000), time) << algorithm->name;
        EXPECT_GT(price({kHop.rate, Duration(8)}, 1000), time) << algorithm->name;
      }
    }
  }
}

std::vector<DeviceId> Row(int32_t first, int32_t count) {
  std::vector<DeviceId> devices;
  for (int32_t d = 0; d < count; ++d) devices.push_back(DeviceId(first + d));
  return devices;
}

// What is in other parts, of another kind or by another algorithm is found anew; nothing else is.
TEST(KeptCosts, AreFoundOnceForRounds) {
  const cluster::Topology topology = cluster::ParseCluster("dgx-a100:2")->topology;
  const std::vector<DeviceId> group = Row(0, 16);
  KeptCosts kept;
  const auto find = [&](CollectiveKind kind, absl::string_view name, int64_t size) {
    const CollectiveAlgorithm& algorithm = **FindCollectiveAlgorithm(name);
    const CollectiveCall call =
        MakeCall({.kind = kind, .size = Bytes(size), .group = group}, topology);
    const Rounds rounds = algorithm.RoundsToPrice(call);
    const RoundsCost& cost = kept.Of(algorithm, rounds, group, topology);
    const DeviceGroup ranks = group;
    EXPECT_EQ(TimeOf(cost, Bytes(size)),
              TimeOf(CostOf(topology, std::span(&ranks, 1), rounds), Bytes(size)));
    return &cost;
  };
  constexpr auto kReduce = CollectiveKind::kAllReduce, kGather = CollectiveKind::kAllGather;
  const RoundsCost* const ring = find(kReduce, "ring", 1 << 20);
  EXPECT_EQ(find(kReduce, "ring", 3 << 20), ring);
  EXPECT_NE(find(kGather, "ring", 1 << 20), ring);
  EXPECT_NE(find(kReduce, "halving-doubling", 1 << 20), ring);
  const RoundsCost* const tree = find(kReduce, "tree", 1 << 20);
  EXPECT_NE(find(kReduce, "tree", 1 << 30), tree);  // in more chunks
  EXPECT_EQ(find(kReduce, "tree", 1 << 20), tree);
}

// What is kept of one size, or of a group that a rotation moves onto it, changes no choice.
TEST(KeptCosts, ChangeNoChoice) {
  for (const char* name : {"dgx-h100:4", "fat-tree:32@50GB/s,radix=8", "torus:4x4x2@50GB/s"}) {
    const cluster::Topology topology = cluster::ParseCluster(name)->topology;
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      KeptCosts kept;
      for (int64_t size = 1 << 10; size <= 1 << 30; size *= 8) {
        for (const int32_t first : {0, 16}) {
          const std::vector<DeviceId> group = Row(first, 16);
          CollectiveRequest request = {.kind = kind.kind, .size = Bytes(size), .group = group};
          const ChosenCollective made = ChooseCollective(request, topology).value();
          request.costs = &kept;
          const ChosenCollective found = ChooseCollective(request, topology).value();
          EXPECT_EQ(found.algorithm, made.algorithm) << name << " " << kind.name << " " << size;
          EXPECT_EQ(found.time, made.time) << name << " " << kind.name << " " << size;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pricing_test_cc
}  // namespace orrery::cost_models
