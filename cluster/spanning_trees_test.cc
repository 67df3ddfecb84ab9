#include "cluster/spanning_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "cluster/random_graph_test_util.h"
#include "support/sanitized_test_util.h"

namespace orrery::cluster {
namespace spanning_trees_test_cc {
namespace {

constexpr uint32_t kSeed = 20261125;

Topology RingGraph(int32_t devices, bool one_way) {
  GraphParts parts{.devices = devices};
  for (int32_t i = 0; i < devices; ++i) {
    const int32_t next = (i + 1) % devices;
    parts.links.push_back({VertexId(i), VertexId(next), kWire, "wire"});
    if (!one_way) parts.links.push_back({VertexId(next), VertexId(i), kWire, "wire"});
  }
  return GraphOf(std::move(parts));
}

std::vector<TreeQuery> QueriesOf(const std::vector<DeviceId>& group) {
  std::vector<TreeQuery> queries;
  for (const TreeUse use : {TreeUse::kBothWays, TreeUse::kDown, TreeUse::kUp}) {
    for (const TreeRoots roots : {TreeRoots::kCenter, TreeRoots::kFirst, TreeRoots::kEach}) {
      for (const bool shortest : {false, true}) queries.push_back({group, use, roots, shortest});
    }
  }
  return queries;
}

// Every rank once, behind its parent and one deeper; the loads are those of the ways.
void ExpectSound(const TreeQuery& query, const SpanningTrees& laid, const Topology& topology) {
  std::map<LinkNumber, int64_t> loads;
  const auto load = [&](int32_t from, int32_t to, int32_t way) {
    std::vector<LinkNumber> route;
    topology.AppendWay(query.group[static_cast<size_t>(from)], query.group[static_cast<size_t>(to)],
                       way, route);
    for (const LinkNumber link : route) ++loads[link];
  };
  int32_t depth = 0;
  for (const SpanningTree& tree : laid.trees) {
    std::map<int32_t, int32_t> depths = {{tree.root, 0}};
    for (const TreeHop& hop : tree.hops) {
      ASSERT_TRUE(depths.contains(hop.parent));
      EXPECT_EQ(hop.depth, depths[hop.parent] + 1);
      EXPECT_TRUE(depths.emplace(hop.child, hop.depth).second) << hop.child << " twice";
      depth = std::max(depth, hop.depth);
      if (query.use != TreeUse::kUp) load(hop.parent, hop.child, hop.way_down);
      if (query.use != TreeUse::kDown) load(hop.child, hop.parent, hop.way_up);
    }
    EXPECT_EQ(depths.size(), query.group.size());
  }
  EXPECT_EQ(depth, laid.depth);
  for (const TreeLoad& row : laid.loads) {
    EXPECT_EQ(row.trees, loads[row.link]) << topology.LinkName(row.link);
    EXPECT_LE(row.trees * laid.busiest.rate.bytes_per_second(),
              laid.busiest.trees * row.rate.bytes_per_second());
    loads.erase(row.link);
  }
  for (const auto& [link, trees] : loads) EXPECT_EQ(trees, 0) << topology.LinkName(link);
}

TEST(SpanningTrees, SpanEveryGroupOfRandomGraphs) {
  std::mt19937 random(kSeed);
  for (int i = 0; i < CasesToWalk(40); ++i) {
    const auto devices = static_cast<int32_t>(2 + random() % 40);
    SCOPED_TRACE(absl::StrCat("seed ", kSeed, ", graph ", i, " of ", devices));
    const Topology topology = RandomGraph(devices, static_cast<int32_t>(random() % 80), random);
    std::vector<DeviceId> group = AllDevices(topology);
    if (i % 2 == 1) {  // some of them, in any order: others lie between
      std::shuffle(group.begin(), group.end(), random);
      group.resize(std::max<size_t>(2, group.size() / 2));
    }
    for (const TreeQuery& query : QueriesOf(group)) {
      ExpectSound(query, SpanningTreesOf(query, topology), topology);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Links in one direction alone: down the ring, and all the way round to go up.
TEST(SpanningTrees, SpanAOneWayRing) {
  const Topology ring = RingGraph(5, /*one_way=*/true);
  for (const TreeQuery& query : QueriesOf(AllDevices(ring))) {
    const SpanningTrees& laid = SpanningTreesOf(query, ring);
    ExpectSound(query, laid, ring);
    EXPECT_TRUE(query.use != TreeUse::kDown || laid.depth == 4) << laid.depth;
  }
}

TEST(SpanningTrees, OfShortestPathsAreRootedInTheMiddle) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t i = 0; i + 1 < 9; ++i) pairs.emplace_back(i, i + 1);
  const Topology line = GraphOf({.devices = 9, .links = WiresBetween(pairs)});
  const SpanningTrees& laid = SpanningTreesOf({.group = AllDevices(line), .shortest = true}, line);
  ASSERT_EQ(laid.trees.size(), 1u);
  EXPECT_EQ(laid.trees[0].root, 4);
  EXPECT_EQ(laid.depth, 4);
  EXPECT_EQ(laid.hop_latency, Duration(500'000));
}

// A ring of n has n - 1 trees' worth of links in each direction over n: each link is left out by
// one tree of n.
TEST(SpanningTrees, ShareARingEqually) {
  const Topology ring = RingGraph(8, /*one_way=*/false);
  const SpanningTrees& laid = SpanningTreesOf({.group = AllDevices(ring)}, ring);
  ASSERT_EQ(laid.trees.size(), 64u);
  EXPECT_EQ(laid.loads.size(), 16u);
  for (const TreeLoad& load : laid.loads) EXPECT_EQ(load.trees, 64 * 7 / 8);
}

TEST(SpanningTrees, UseLinksSideBySideAlike) {
  const Topology pair =
      GraphOf({.devices = 2, .links = WiresBetween({{0, 1}, {0, 1}, {0, 1}, {0, 1}})});
  const SpanningTrees& laid = SpanningTreesOf({.group = AllDevices(pair)}, pair);
  EXPECT_EQ(laid.loads.size(), 8u);
  for (const TreeLoad& load : laid.loads) EXPECT_EQ(load.trees * 4, std::ssize(laid.trees));
}

// As many parts as a rank has trees: all ranks have equally many.
TEST(SpanningTrees, AreRootedAtEachRankEquallyOften) {
  std::mt19937 random(kSeed);
  const Topology topology = RandomGraph(20, 20, random);
  const TreeQuery query = {AllDevices(topology), TreeUse::kDown, TreeRoots::kEach, false};
  std::map<int32_t, int> roots;
  for (const SpanningTree& tree : SpanningTreesOf(query, topology).trees) ++roots[tree.root];
  EXPECT_EQ(roots.size(), 20u);
  for (const auto& [root, count] : roots) EXPECT_EQ(count, 12) << root;
}

// Many devices at one switch have too many hops to choose from.
TEST(SpanningTrees, AreNotLaidAmongTooMany) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t i = 0; i < 600; ++i) pairs.emplace_back(i, 600);
  const Topology star = GraphOf({.devices = 600, .switches = 1, .links = WiresBetween(pairs)});
  EXPECT_TRUE(SpanningTreesOf({.group = AllDevices(star)}, star).trees.empty());
}

TEST(SpanningTrees, AreLaidOnceAndTheSameByAnyThread) {
  std::mt19937 one(kSeed), other(kSeed);
  const Topology first = RandomGraph(24, 30, one), second = RandomGraph(24, 30, other);
  const TreeQuery query{.group = AllDevices(first)};
  std::vector<const SpanningTrees*> laid(8);
  std::vector<std::thread> threads;
  for (const SpanningTrees*& each : laid) {
    threads.emplace_back([&] { each = &SpanningTreesOf(query, first); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(laid, testing::Each(laid[0]));
  EXPECT_TRUE(*laid[0] == SpanningTreesOf(query, second));
}

// Trees avoid what is slow, and what was slow.
TEST(SpanningTrees, KnowFasterLinks) {
  std::vector<Link> links = WiresBetween({{0, 1}, {1, 2}});
  const std::vector<Link> slow = WiresBetween({{0, 2}}, {Bandwidth(5'000'000'000), Duration(0)});
  for (Link link : slow) {
    link.kind = "slow";
    links.push_back(link);
  }
  const Topology triangle = GraphOf({.devices = 3, .links = links});
  const auto busiest = [](const Topology& topology) {
    return SpanningTreesOf({.group = AllDevices(topology)}, topology).busiest.trees;
  };
  EXPECT_GE(busiest(triangle), 60);
  EXPECT_LE(busiest(triangle.WithFasterLinks("slow", 10)), 44);
  EXPECT_EQ(triangle.FasterLinks(), "");
  EXPECT_EQ(triangle.WithFasterLinks("slow", 10).FasterLinks(), "slow*10");
}

int64_t LinksOf(const std::vector<DeviceId>& ring, const Topology& topology) {
  std::vector<LinkNumber> route;
  for (size_t i = 0; i < ring.size(); ++i) {
    topology.AppendRoute(ring[i], ring[(i + 1) % ring.size()], route);
  }
  return std::ssize(route);
}

TEST(RingOrder, FollowsLinksWhereItCan) {
  std::mt19937 random(kSeed);
  for (int i = 0; i < 20; ++i) {
    const auto devices = static_cast<int32_t>(4 + random() % 60);
    SCOPED_TRACE(absl::StrCat("seed ", kSeed, ", graph ", i, " of ", devices));
    const Topology topology = RandomGraph(devices, 3 * devices, random);
    const std::vector<DeviceId> all = AllDevices(topology);
    const std::vector<DeviceId>& ring = RingOrderOf(all, topology);
    EXPECT_THAT(ring, testing::UnorderedElementsAreArray(all));
    EXPECT_LE(LinksOf(ring, topology), LinksOf(all, topology));
    EXPECT_LE(LinksOf(ring, topology), devices * 5 / 4 + 2);
  }
}

TEST(RingOrder, StaysWhereEachIsNextToTheOther) {
  const Topology ring = RingGraph(12, /*one_way=*/false);
  EXPECT_EQ(RingOrderOf(AllDevices(ring), ring), AllDevices(ring));
}

TEST(SpanningTrees, AreOfExplicitGraphs) {
  const Topology ring = *Topology::Create(kRingTopology, {.devices = 4, .port = kWire});
  EXPECT_DEATH(SpanningTreesOf({.group = AllDevices(ring)}, ring), "ring of 4");
  EXPECT_DEATH(RingOrderOf(AllDevices(ring), ring), "ring");
}

}  // namespace
}  // namespace spanning_trees_test_cc
}  // namespace orrery::cluster
