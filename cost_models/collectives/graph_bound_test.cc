#include "cost_models/collectives/graph_bound.h"

#include <gtest/gtest.h>

#include <vector>

#include "cluster/random_graph_test_util.h"

namespace orrery::cost_models {
namespace graph_bound_test_cc {
namespace {

using cluster::Topology;
using enum CollectiveKind;

constexpr cluster::PathInfo kSlow = {Bandwidth(1'000'000'000), Duration(0)};

// Of 8,000 bytes at 1 GB/s: 8 us are what one link carries of the tensor.
int64_t Nanoseconds(CollectiveKind kind, const Topology& topology, bool in_network = false) {
  return GraphBandwidthBound(kind, Bytes(8000), cluster::AllDevices(topology), in_network, topology)
             .picoseconds() /
         1000;
}

// Two rings of four, joined by one link: that link carries the whole tensor each way, though all
// links together could carry more.
TEST(GraphBandwidthBound, SeesABridge) {
  const Topology bridge = cluster::GraphOf(
      {.devices = 8,
       .links = cluster::WiresBetween(
           {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 4}}, kSlow)});
  EXPECT_EQ(Nanoseconds(kAllReduce, bridge), 8000);
  EXPECT_EQ(Nanoseconds(kAllReduce, bridge, /*in_network=*/true), 8000);
  EXPECT_EQ(Nanoseconds(kAllGather, bridge), 4000);
  EXPECT_EQ(Nanoseconds(kAllToAll, bridge), 16000);
  EXPECT_EQ(Nanoseconds(kBroadcast, bridge), 8000);
  EXPECT_EQ(Nanoseconds(kBarrier, bridge), 0);
}

// A rank with one link receives all that it has not, whatever the others have.
TEST(GraphBandwidthBound, SeesALeaf) {
  const Topology leaf = cluster::GraphOf(
      {.devices = 4, .links = cluster::WiresBetween({{0, 1}, {1, 2}, {2, 0}, {0, 3}}, kSlow)});
  EXPECT_EQ(Nanoseconds(kAllReduce, leaf), 8000);
  EXPECT_EQ(Nanoseconds(kAllGather, leaf), 6000);
  EXPECT_EQ(Nanoseconds(kReduceScatter, leaf), 6000);
  EXPECT_EQ(Nanoseconds(kScatter, leaf), 2000);
}

// All of equal links: what all must send over what all can.
TEST(GraphBandwidthBound, OfARingIsThatOfAllItsLinks) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t i = 0; i < 8; ++i) pairs.emplace_back(i, (i + 1) % 8);
  const Topology ring =
      cluster::GraphOf({.devices = 8, .links = cluster::WiresBetween(pairs, kSlow)});
  EXPECT_EQ(Nanoseconds(kAllReduce, ring), 7000);
  EXPECT_EQ(Nanoseconds(kAllGather, ring), 3500);
}

// Behind switches, and over links side by side.
TEST(GraphBandwidthBound, CountsAllLinksSideBySide) {
  const Topology switches = cluster::GraphOf(
      {.devices = 4,
       .switches = 2,
       .links = cluster::WiresBetween({{0, 4}, {1, 4}, {2, 5}, {3, 5}, {4, 5}, {4, 5}}, kSlow)});
  EXPECT_EQ(Nanoseconds(kAllReduce, switches), 12000);  // 2 (n-1)/n of a port
  EXPECT_EQ(Nanoseconds(kAllToAll, switches), 6000);    // (n-1)/n of a port
  const Topology pair =
      cluster::GraphOf({.devices = 2, .links = cluster::WiresBetween({{0, 1}, {0, 1}}, kSlow)});
  EXPECT_EQ(Nanoseconds(kAllReduce, pair), 4000);
}

}  // namespace
}  // namespace graph_bound_test_cc
}  // namespace orrery::cost_models
