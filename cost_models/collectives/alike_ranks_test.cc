#include "cost_models/collectives/alike_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/bound.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/group_layout.h"

namespace orrery::cost_models {
namespace alike_ranks_test_cc {
namespace {

using cluster::DeviceId;
using cluster::LinkNumber;
using cluster::Topology;

// Spelled, of each kind but explicit graphs, with and without all that tells devices apart.
constexpr const char* kClusters[] = {
    "fully-connected:12@50GB/s", "switch:12@50GB/s", "ring:12@50GB/s", "torus:4x3@50GB/s",
    "mesh:4x3@50GB/s", "product:ring(4)@20GB/s,line(3)@90GB/s,switch(2)@50GB/s",
    "product:fully-connected(3)@90GB/s,switch(4)@10GB/s", "nodes:3x4@300GB/s,nic=25GB/s",
    "nodes:3x4@20GB/s,nic=25GB/s,nics=2", "dgx-a100:2", "dgx-h100:3", "dgx-v100:2",
    "rails:3x4@450GB/s,nic=50GB/s,oversubscription=2", "fat-tree:16@50GB/s,radix=4",
    "fat-tree:15@50GB/s,radix=8,oversubscription=2", "dragonfly:2x3x3@25GB/s",
    // Large enough for the bound to go by sets of devices.
    "ring:40@50GB/s,one-way", "mesh:7x6@50GB/s", "torus:4x3x4@50GB/s",
    "product:line(8)@20GB/s,ring(5)@90GB/s", "product:line(3)@90GB/s,switch(16)@20GB/s",
    "nodes:5x8@20GB/s,nic=25GB/s,nics=2", "l40s:5",
    "rails:12x4@450GB/s,nic=50GB/s,oversubscription=8",
    "fat-tree:45@50GB/s,radix=8,oversubscription=2", "dragonfly:6x3x4@25GB/s"};

int32_t Draw(std::mt19937& random, int32_t least, int32_t most) {
  return least + static_cast<int32_t>(random() % static_cast<uint32_t>(most - least + 1));
}

// All devices, a run of them, every other, or any, in any order.
std::vector<DeviceId> RandomGroup(const Topology& topology, std::mt19937& random) {
  std::vector<DeviceId> group;
  const int32_t way = Draw(random, 0, 3);
  const int32_t first = way == 1 ? Draw(random, 0, topology.devices() - 2) : 0;
  for (int32_t d = first; d < topology.devices(); ++d) {
    if (way == 2 && d % 2 != 0) continue;
    if (way == 3 && Draw(random, 0, 2) == 0) continue;
    group.push_back(DeviceId(d));
  }
  while (group.size() < 2) group.push_back(DeviceId(group.empty() ? 0 : group[0].index() ^ 1));
  if (way == 3) std::shuffle(group.begin(), group.end(), random);
  return group;
}

// The header of bound.h by its words, pair by pair.
Bandwidth RateOut(std::span<const DeviceId> group, size_t first, size_t each,
                  const Topology& topology) {
  std::set<LinkNumber> firsts, narrowest;
  for (size_t from = first; from < first + each; ++from) {
    for (size_t to = 0; to < group.size(); ++to) {
      if (to >= first && to < first + each) continue;
      std::vector<LinkNumber> route;
      topology.AppendRoute(group[from], group[to], route);
      firsts.insert(route.front());
      narrowest.insert(*std::ranges::min_element(
          route, {}, [&](LinkNumber link) { return topology.LinkAt(link).speed.rate; }));
    }
  }
  Bandwidth rates[2];
  for (const LinkNumber link : firsts) {
    rates[0] = cluster::Sum(rates[0], topology.LinkAt(link).speed.rate);
  }
  for (const LinkNumber link : narrowest) {
    rates[1] = cluster::Sum(rates[1], topology.LinkAt(link).speed.rate);
  }
  return std::min(rates[0], rates[1]);
}

Duration PlainBound(CollectiveKind kind, Bytes size, std::span<const DeviceId> group, size_t each,
                    bool once, const Topology& topology) {
  const auto n = static_cast<int64_t>(group.size() / each);
  const CollectiveKindInfo& info = GetCollectiveKind(kind);
  const Share share = once && kind == CollectiveKind::kAllReduce ? Share{1, 1} : info.bus_share(n);
  Bandwidth sum, best;
  for (size_t first = 0; first < group.size(); first += each) {
    const Bandwidth rate = RateOut(group, first, each, topology);
    sum = cluster::Sum(sum, rate);
    best = std::max(best, rate);
  }
  if (info.has_root) return TransferTime(size, share.numerator, share.denominator, best);
  const auto members = static_cast<int64_t>(kind == CollectiveKind::kAllToAll ? each : 1);
  return TransferTime(size, share.numerator * n * members, share.denominator, sum);
}

TEST(AlikeRanks, BoundIsThatOfAllPairs) {
  std::mt19937 random(20);
  for (const char* name : kClusters) {
    const Topology plain = cluster::ParseCluster(name)->topology;
    const std::string kind_of_link(plain.LinkAt(Draw(random, 0, 3)).kind);
    for (const Topology& topology : {plain, plain.WithFasterLinks(kind_of_link, 7)}) {
      for (int i = 0; i < (topology.devices() > 30 ? 5 : 30); ++i) {
        const std::vector<DeviceId> group = RandomGroup(topology, random);
        for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
          std::vector<size_t> nodes;
          for (size_t each = 2; each < group.size(); ++each) {
            if (group.size() % each == 0) nodes.push_back(each);
          }
          const size_t a_node = nodes.empty() ? 1 : nodes[random() % nodes.size()];
          const bool in_nodes = random() % 2 == 0, between = random() % 2 == 0;
          const Bytes size(Draw(random, 1, 1 << 30));
          Duration expected = PlainBound(kind.kind, size, group, 1, in_nodes || between, topology);
          if (a_node > 1) {
            expected =
                std::max(expected, PlainBound(kind.kind, size, group, a_node, between, topology));
          }
          EXPECT_EQ(BandwidthBound(kind.kind, size, group, static_cast<int32_t>(a_node),
                                   {in_nodes, between}, topology),
                    expected)
              << name << ", " << kind.name << " of " << group.size() << " in " << a_node;
        }
      }
    }
  }
}

// Every rank is in one class, and the first of it is as fast to all others as each.
TEST(AlikeRanks, CountsEachBlockOnce) {
  std::mt19937 random(21);
  for (const char* name : kClusters) {
    const Topology topology = cluster::ParseCluster(name)->topology;
    for (int i = 0; i < 30; ++i) {
      const std::vector<DeviceId> group = RandomGroup(topology, random);
      for (size_t each = 1; each <= group.size(); ++each) {
        if (group.size() % each != 0) continue;
        int64_t blocks = 0;
        for (const AlikeBlocks& alike : FindAlikeBlocks(topology, group, each)) {
          EXPECT_LT(alike.first, group.size() / each);
          blocks += alike.count;
        }
        EXPECT_EQ(blocks, std::ssize(group) / static_cast<int64_t>(each)) << name;
      }
    }
  }
}

// What makes 1,024 ranks cheap: all of a cluster are alike, and of a part, those of each place.
TEST(AlikeRanks, AreFoundInAllOfACluster) {
  const auto classes = [](const char* name, int32_t ranks, size_t each) {
    std::vector<DeviceId> group;
    for (int32_t d = 0; d < ranks; ++d) group.push_back(DeviceId(d));
    return FindAlikeBlocks(cluster::ParseCluster(name)->topology, group, each).size();
  };
  EXPECT_EQ(classes("uniform:1024@200Gbps", 1024, 1), 1);
  EXPECT_EQ(classes("dgx-h100:128", 1024, 1), 1);
  EXPECT_EQ(classes("dgx-h100:128", 1024, 8), 1);
  EXPECT_EQ(classes("dgx-h100:128", 512, 1), 64);  // of 64 nodes: a rank of each
  EXPECT_EQ(classes("fat-tree:1024@50GB/s,radix=64", 1024, 1), 1);
  EXPECT_EQ(classes("torus:32x32@50GB/s", 1024, 1), 1);
  EXPECT_EQ(classes("mesh:4x4@50GB/s", 16, 1), 16);
}

TEST(AlikeRanks, LinkedIsThatOfAllPairs) {
  const auto linked = [](const char* name, int32_t first, int32_t ranks) {
    std::vector<DeviceId> group;
    for (int32_t d = 0; d < ranks; ++d) group.push_back(DeviceId(first + d));
    return AllLinked(cluster::ParseCluster(name)->topology, group, 1);
  };
  EXPECT_TRUE(linked("uniform:100@200Gbps", 0, 100));
  EXPECT_TRUE(linked("uniform:100@200Gbps", 7, 60));
  EXPECT_TRUE(linked("product:fully-connected(64)@9GB/s,switch(2)@1GB/s", 64, 64));
  EXPECT_FALSE(linked("product:fully-connected(64)@9GB/s,switch(2)@1GB/s", 0, 65));
  EXPECT_FALSE(linked("switch:64@200Gbps", 0, 64));
}

}  // namespace
}  // namespace alike_ranks_test_cc
}  // namespace orrery::cost_models
