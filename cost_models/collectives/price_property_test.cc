#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/bound.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/collectives/pricing_test_util.h"

// What holds of prices whatever the topology, the kind and the algorithm.

namespace orrery::cost_models {
namespace price_property_test_cc {
namespace {

using cluster::DeviceId;
using cluster::LinkNumber;
using cluster::Topology;

constexpr const char* kClusters[] = {
    "uniform:8@200Gbps",
    "ring:8@50GB/s,latency=500ns",
    "ring:6@50GB/s,latency=500ns,one-way",
    "switch:16@400GB/s,latency=1us",
    "switch:8@400GB/s,latency=1us,reduces",
    "nodes:3x4@450GB/s,nic=50GB/s,nics=2,host=63GB/s",
    "rails:4x4@450GB/s,nic=50GB/s,oversubscription=2",
    "torus:4x4@50GB/s,latency=1us",
    "mesh:3x4@50GB/s,latency=1us",
    "fat-tree:16@50GB/s,radix=8,oversubscription=2",
    "dragonfly:2x4x3@25GB/s",
    "product:ring(4)@100GB/s,switch(4)@50GB/s",
    "dgx-a100:2",
    "dgx-h100:4",
};

std::vector<DeviceId> Devices(int32_t count, int32_t first = 0, int32_t stride = 1) {
  std::vector<DeviceId> devices;
  for (int32_t i = 0; i < count; ++i) devices.push_back(DeviceId(first + i * stride));
  return devices;
}

Topology TopologyOf(absl::string_view spelling) {
  const auto cluster = cluster::ParseCluster(spelling);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return cluster.ok() ? cluster->topology : Topology();
}

RoundsCost CostOfOne(const Topology& topology, DeviceGroup group, const Rounds& rounds) {
  return CostOf(topology, std::span(&group, 1), rounds);
}

Duration Auto(const Topology& topology, CollectiveKind kind, const std::vector<DeviceId>& group,
              int64_t size) {
  return FastestTime({.kind = kind, .size = Bytes(size), .group = group}, topology);
}

// All that the checks below need of one call that is possible.
struct Case {
  const Topology& topology;
  const std::vector<DeviceId>& group;
  const CollectiveCall& call;
  const CollectiveAlgorithm& algorithm;
};

template <typename Check>
void ForAllCalls(Check check) {
  int checked = 0;
  for (const char* spelling : kClusters) {
    const Topology topology = TopologyOf(spelling);
    const std::vector<DeviceId> all = Devices(topology.devices()), some = Devices(3, 1);
    for (const std::vector<DeviceId>& group : {all, some}) {
      for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
        const CollectiveCall call =
            MakeCall({.kind = kind.kind, .size = Bytes(1'000'000), .group = group}, topology);
        for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
          if (!algorithm->Supports(call)) continue;
          SCOPED_TRACE(absl::StrCat(algorithm->name, " ", kind.name, " on ", spelling));
          check(Case{topology, group, call, *algorithm});
          if (::testing::Test::HasFailure()) return;
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 600);
}

bool SameVolumes(const RoundsCost& a, const RoundsCost& b) {
  return std::ranges::equal(a.volumes, b.volumes, [](const LinkVolume& x, const LinkVolume& y) {
    return x.link == y.link && x.parts == y.parts && x.rate == y.rate;
  });
}

bool SameRounds(const RoundsCost& a, const RoundsCost& b) {
  return std::ranges::equal(a.rounds, b.rounds, [](const RoundCost& x, const RoundCost& y) {
    return x.repeat == y.repeat && x.active == y.active && x.candidates == y.candidates;
  });
}

// Link by link, in the same order, and step by step: nobody can tell them apart.
TEST(Price, OfMergedMessagesIsThatOfEachMessage) {
  int merged = 0;
  ForAllCalls([&](const Case& c) {
    const Rounds each = c.algorithm.rounds(c.call), few = c.algorithm.RoundsToPrice(c.call);
    EXPECT_EQ(few.parts, each.parts);
    EXPECT_EQ(few.parts_a_size, each.parts_a_size);
    EXPECT_EQ(RepetitionCount(few), RepetitionCount(each));
    const RoundsCost expected = CostOfOne(c.topology, c.group, each);
    const RoundsCost found = CostOfOne(c.topology, c.group, few);
    EXPECT_TRUE(SameVolumes(found, expected));
    EXPECT_TRUE(SameRounds(found, expected));
    EXPECT_EQ(found.steps, expected.steps);
    EXPECT_EQ(found.parts_a_size, expected.parts_a_size);
    EXPECT_EQ(found.own_parts, expected.own_parts);
    merged += few.rounds.front().transfers.size() < each.rounds.front().transfers.size() ? 1 : 0;
  });
  EXPECT_GT(merged, 20);
}

// Every rank of a fat tree or a torus sends to few others, however many rings there are.
TEST(Price, OfMergedRingsLooksAtFewTransfersARank) {
  for (const char* spelling : {"fat-tree:1024@50GB/s,radix=64", "torus:32x32@50GB/s"}) {
    const Topology topology = TopologyOf(spelling);
    const std::vector<DeviceId> all = Devices(topology.devices());
    const CollectiveCall call = MakeCall({.group = all}, topology);
    for (const absl::string_view name : {"ring", "bidirectional-ring"}) {
      const CollectiveAlgorithm& rings = **FindCollectiveAlgorithm(name);
      for (const Round& round : rings.RoundsToPrice(call).rounds) {
        EXPECT_LE(round.transfers.size(), 4 * all.size()) << spelling << " " << name;
      }
    }
  }
}

TEST(Price, GrowsWithTheSize) {
  ForAllCalls([](const Case& c) {
    const RoundsCost cost = CostOfOne(c.topology, c.group, c.algorithm.rounds(c.call));
    Duration before;
    for (int64_t size = 0; size < int64_t{1} << 40; size = size * 3 + 1) {
      EXPECT_GE(TimeOf(cost, Bytes(size)), before) << size;
      before = TimeOf(cost, Bytes(size));
    }
  });
}

TEST(Price, IsNeverBelowTheBound) {
  ForAllCalls([](const Case& c) {
    const InNetwork in_network = {c.call.node_reduces, c.call.fabric_reduces};
    const Rounds rounds = c.algorithm.rounds(c.call);
    for (const int64_t size : {1, 1000, 1'000'000, 1'000'000'000}) {
      const auto bound = BandwidthBound(c.call.kind, Bytes(size), c.group, c.call.ranks_a_node,
                                        in_network, c.topology);
      EXPECT_GE(PriceOn(c.topology, c.group, rounds, Bytes(size)), *bound) << size;
    }
  });
}

TEST(Price, OfAFlowAloneIsTheTimeOfItsRounds) {
  ForAllCalls([](const Case& c) {
    const RoundsCost cost = CostOfOne(c.topology, c.group, c.algorithm.rounds(c.call));
    for (const int64_t size : {0, 1, 999, 1'234'567, 1 << 30}) {
      const CollectiveFlow flow = FlowOf(cost, Bytes(size));
      EXPECT_EQ(flow.latency + TransferTime(flow.size, flow.rate), TimeOf(cost, Bytes(size)))
          << size;
    }
  });
}

// No bytes: whatever the rate, and twice as long with twice the latency.
TEST(Price, OfNothingIsLatenciesOnly) {
  for (const char* shape :
       {"fully-connected:8@", "ring:8@", "switch:8@", "torus:4x2@", "mesh:4x2@"}) {
    const auto time = [&](const char* speed, const CollectiveKindInfo& kind) {
      return Auto(TopologyOf(absl::StrCat(shape, speed)), kind.kind, Devices(8), 0);
    };
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      const Duration once = time("50GB/s,latency=1us", kind);
      SCOPED_TRACE(absl::StrCat(kind.name, " on ", shape));
      EXPECT_GE(once, Duration(1'000'000));
      EXPECT_EQ(time("1GB/s,latency=1us", kind), once);
      EXPECT_EQ(time("50GB/s,latency=2us", kind), once * 2);
      EXPECT_EQ(time("50GB/s,latency=0us", kind), Duration(0));
    }
  }
}

TEST(Price, OfAPermutedGroupIsTheSameOnASwitch) {
  const Topology topology = TopologyOf("switch:16@400GB/s,latency=1us");
  std::mt19937 random(11);
  for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
    const Duration time = Auto(topology, kind.kind, Devices(7), 1'000'003);
    for (int i = 0; i < 5; ++i) {
      std::vector<DeviceId> group = Devices(16);
      std::shuffle(group.begin(), group.end(), random);
      group.resize(7);
      EXPECT_EQ(Auto(topology, kind.kind, group, 1'000'003), time) << kind.name;
    }
  }
}

TEST(Price, WithinANodeIsNeverAboveThatAcrossNodes) {
  for (const char* spelling : {"dgx-a100:4", "dgx-h100:4", "nodes:4x8@450GB/s,nic=50GB/s",
                               "rails:4x8@450GB/s,nic=50GB/s,oversubscription=2"}) {
    const Topology topology = TopologyOf(spelling);
    std::vector<DeviceId> two_nodes = Devices(2);
    for (const DeviceId device : Devices(2, 8)) two_nodes.push_back(device);
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (const int64_t size : {0, 1000, 1'000'000, 1 << 30}) {
        SCOPED_TRACE(absl::StrCat(kind.name, " of ", size, " on ", spelling));
        const Duration within = Auto(topology, kind.kind, Devices(4), size);
        EXPECT_LE(within, Auto(topology, kind.kind, two_nodes, size));
        EXPECT_LE(within, Auto(topology, kind.kind, Devices(4, 0, 8), size));
        if (size == 1 << 30 && kind.kind != CollectiveKind::kBarrier) {
          EXPECT_LT(within, Auto(topology, kind.kind, Devices(4, 0, 8), size));
        }
      }
    }
  }
}

TEST(Price, LeftOpenIsTheLeastOfTheChosen) {
  for (const char* spelling : kClusters) {
    const Topology topology = TopologyOf(spelling);
    const std::vector<DeviceId> group = Devices(topology.devices());
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (const int64_t size : {0, 4096, 1 << 28}) {
        const CollectiveRequest request{.kind = kind.kind, .size = Bytes(size), .group = group};
        const CollectiveCall call = MakeCall(request, topology);
        Duration least = kLongestDuration;
        for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
          if (!algorithm->IsChosen(call)) continue;
          const auto choice = *CollectiveChoice::Parse(algorithm->name);
          const auto by_hand = ChooseCollective(request, topology, choice);
          if (by_hand.ok()) least = std::min(least, by_hand->time);
        }
        EXPECT_EQ(FastestTime(request, topology), least) << kind.name << " on " << spelling;
      }
    }
  }
}

// Bytes that each link carries; a load is a part of the flow's size.
std::map<LinkNumber, double> Carried(const Topology& topology, std::span<const DeviceGroup> groups,
                                     const Rounds& rounds) {
  const CollectiveFlow flow = LoadsOf(topology, groups, rounds, Bytes(8'000'000));
  std::map<LinkNumber, double> carried;
  for (const LinkLoad& load : flow.loads) {
    carried[load.link] += load.load * static_cast<double>(flow.size.count());
  }
  return carried;
}

// Whether or not the two groups meet on links.
TEST(Loads, OfTwoGroupsAddUp) {
  for (const char* spelling : kClusters) {
    const Topology topology = TopologyOf(spelling);
    const int32_t half = topology.devices() / 2;
    for (const int32_t stride : {1, 2}) {
      const std::vector<DeviceId> a = Devices(half, 0, stride);
      const std::vector<DeviceId> b = Devices(half, stride == 1 ? half : 1, stride);
      const DeviceGroup both[] = {a, b};
      const Rounds rounds = (*FindCollectiveAlgorithm("ring"))->rounds({.ranks = half});
      std::map<LinkNumber, double> sum = Carried(topology, std::span(both, 1), rounds);
      for (const auto& [link, bytes] : Carried(topology, std::span(both + 1, 1), rounds)) {
        sum[link] += bytes;
      }
      const auto together = Carried(topology, both, rounds);
      ASSERT_EQ(together.size(), sum.size()) << spelling;
      for (const auto& [link, bytes] : together) {
        EXPECT_NEAR(bytes, sum[link], bytes * 1e-5) << spelling << " " << topology.LinkName(link);
      }
    }
  }
}

}  // namespace
}  // namespace price_property_test_cc
}  // namespace orrery::cost_models
