#include "cost_models/collectives/alike_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/steps.h"

namespace orrery::cost_models {
namespace alike_pairs_test_cc {
namespace {

using cluster::DeviceId;
using cluster::LinkNumber;
using cluster::Topology;

constexpr const char* kClusters[] = {"fully-connected:12@50GB/s",
                                     "switch:12@50GB/s",
                                     "ring:11@50GB/s",
                                     "ring:12@50GB/s,one-way",
                                     "torus:4x3@50GB/s,latency=1us",
                                     "torus:2x3x4@50GB/s",
                                     "mesh:4x3@50GB/s,latency=1us",
                                     "product:ring(4)@20GB/s,line(3)@90GB/s,switch(2)@50GB/s",
                                     "product:fully-connected(3)@90GB/s,switch(4)@10GB/s",
                                     "nodes:3x4@300GB/s,nic=25GB/s",
                                     "nodes:3x4@20GB/s,nic=25GB/s,nics=2",
                                     "dgx-a100:3,nic=hdr,oversubscription=2",
                                     "dgx-h100:3",
                                     "dgx-v100:3",
                                     "mi300x:3",
                                     "l40s:2",
                                     "tpu-v5e:4x4",
                                     "rails:3x4@450GB/s,nic=50GB/s,oversubscription=2",
                                     "fat-tree:16@50GB/s,radix=4",
                                     "fat-tree:24@50GB/s,radix=8,oversubscription=2",
                                     "dragonfly:2x3x4@25GB/s"};

// All devices, every other, whole runs, or any in any order.
std::vector<DeviceId> RandomGroup(const Topology& topology, std::mt19937& random) {
  const auto way = static_cast<uint32_t>(random() % 4);
  const auto devices = static_cast<uint32_t>(topology.devices());
  const auto half = static_cast<uint32_t>(devices / 2 + random() % (devices / 2));
  std::vector<DeviceId> group;
  for (uint32_t d = 0; d < devices; ++d) {
    const bool taken = way == 0 || (way == 1 && d % 2 == 0) || (way == 2 && d < half) ||
                       (way == 3 && random() % 3 != 0);
    if (taken) group.push_back(DeviceId(static_cast<int32_t>(d)));
  }
  while (group.size() < 2) group.push_back(DeviceId(group.empty() ? 0 : group[0].index() ^ 1));
  if (way == 3) std::shuffle(group.begin(), group.end(), random);
  return group;
}

// Calls `visit(name, topology, group)` for so many groups of each cluster.
template <typename Visit>
void ForEachGroup(uint32_t seed, int count, const Visit& visit) {
  std::mt19937 random(seed);
  for (const char* name : kClusters) {
    const Topology topology = cluster::ParseCluster(name)->topology;
    for (int i = 0; i < count; ++i) visit(name, topology, RandomGroup(topology, random));
  }
}

struct Expected {
  int64_t pairs = 0;
  bool in_node = false;
};

// Pair by pair.
std::map<LinkNumber, Expected> LoadsOfAll(const Topology& topology,
                                          const std::vector<DeviceId>& group) {
  std::map<LinkNumber, Expected> loads;
  const int32_t a_node = DevicesANode(topology);
  for (const DeviceId from : group) {
    for (const DeviceId to : group) {
      if (from == to) continue;
      std::vector<LinkNumber> route;
      topology.AppendRoute(from, to, route);
      for (const LinkNumber link : route) {
        ++loads[link].pairs;
        loads[link].in_node |= a_node == 1 || from.index() / a_node == to.index() / a_node;
      }
    }
  }
  return loads;
}

TEST(AlikePairs, LoadLinksAsAllPairsDo) {
  int found = 0;
  ForEachGroup(31, 20, [&](const char* name, const Topology& topology, const auto& group) {
    const std::optional<AlikePairs> pairs = FindAlikePairs(topology, group);
    if (!pairs.has_value()) return;
    ++found;
    std::map<LinkNumber, Expected> expected = LoadsOfAll(topology, group);
    for (const PairLoad& load : pairs->loads) {
      EXPECT_EQ(load.pairs, expected[load.link].pairs)
          << name << " of " << group.size() << ": " << topology.LinkName(load.link);
      EXPECT_EQ(load.in_node, expected[load.link].in_node) << name << " of " << group.size();
    }
    EXPECT_EQ(pairs->ends.back(), pairs->steps.size());
  });
  EXPECT_GT(found, 200);
}

// Whatever is asked of a collective but what all links carry.
void ExpectSameCost(const RoundsCost& found, const RoundsCost& expected) {
  ASSERT_EQ(found.rounds.size(), expected.rounds.size());
  for (size_t r = 0; r < found.rounds.size(); ++r) {
    EXPECT_EQ(found.rounds[r].repeat, expected.rounds[r].repeat);
    EXPECT_EQ(found.rounds[r].active, expected.rounds[r].active);
    EXPECT_EQ(found.rounds[r].candidates, expected.rounds[r].candidates);
  }
  EXPECT_EQ(found.steps, expected.steps);
  EXPECT_EQ(found.own_parts, expected.own_parts);
  const BusiestLink a = BusiestLinkOf(found, Bytes(4'000'037));
  const BusiestLink b = BusiestLinkOf(expected, Bytes(4'000'037));
  EXPECT_EQ(a.link, b.link);
  EXPECT_EQ(a.busy, b.busy);
}

// With those of its links that count.
TEST(AlikePairs, CostWhatAllPairsDo) {
  int fewer = 0;
  ForEachGroup(32, 10, [&](const char* name, const Topology& topology, const auto& group) {
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      const CollectiveCall call =
          MakeCall({.kind = kind.kind, .size = Bytes(1'000'000), .group = group}, topology);
      for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
        if (!algorithm->Supports(call)) continue;
        SCOPED_TRACE(absl::StrCat(algorithm->name, " ", kind.name, " on ", name));
        const DeviceGroup ranks = group;
        const RoundsCost expected = CostOf(topology, std::span(&ranks, 1), algorithm->rounds(call));
        const RoundsCost found = CostOfBusiest(topology, ranks, algorithm->RoundsToPrice(call));
        ExpectSameCost(found, expected);
        fewer += found.volumes.size() < expected.volumes.size();
      }
    }
  });
  EXPECT_GT(fewer, 100);
}

// What makes an all-to-all of 1,024 ranks cheap: one rank's routes.
TEST(AlikePairs, AreThoseOfOneRankWhereAllAreAlike) {
  for (const char* name : {"uniform:1024@200Gbps", "switch:1024@400GB/s", "dgx-h100:128",
                           "dgx-a100:128,nic=hdr,oversubscription=2", "tpu-v4:8x8x16",
                           "torus:32x32@50GB/s", "fat-tree:1024@50GB/s,radix=64"}) {
    const Topology topology = cluster::ParseCluster(name)->topology;
    std::vector<DeviceId> group;
    for (int32_t d = 0; d < topology.devices(); ++d) group.push_back(DeviceId(d));
    const std::optional<AlikePairs> pairs = FindAlikePairs(topology, group);
    ASSERT_TRUE(pairs.has_value()) << name;
    EXPECT_EQ(pairs->ends.size(), group.size() - 1) << name;
  }
}

}  // namespace
}  // namespace alike_pairs_test_cc
}  // namespace orrery::cost_models
