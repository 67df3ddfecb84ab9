#include "cost_models/collectives/collective_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cluster/cluster.h"

// SlowestHop, and what holds for every line of collectives.def: a new algorithm is tested here
// without an edit.

namespace orrery::cost_models {
namespace {

using cluster::DeviceId;
using cluster::PathInfo;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather};

std::vector<CollectiveCall> Calls() {
  std::vector<CollectiveCall> calls;
  for (const CollectiveKind kind : kKinds) {
    for (const int64_t size : {0, 1, 1000, 65'537, 1 << 30}) {
      for (const int64_t ranks : {2, 3, 4, 7, 8, 64, 1000, 16'384}) {
        for (const PathInfo path : {PathInfo{Bandwidth(25'000'000'000), Duration(0)},
                                    PathInfo{Bandwidth(1'000'000'007), Duration(2'000'000)}}) {
          calls.push_back({.kind = kind, .size = Bytes(size), .ranks = ranks, .ring = path});
        }
      }
    }
  }
  return calls;
}

// Each rank must receive the n-1 parts that it lacks, and for an all-reduce send as much besides
// (Chan et al. 2007, table 1): no algorithm beats that where all paths are alike.
Duration BandwidthBound(const CollectiveCall& call) {
  const int64_t rounds = call.kind == CollectiveKind::kAllReduce ? 2 : 1;
  return TransferTime(call.size, rounds * (call.ranks - 1), call.ranks, call.ring.rate);
}

TEST(CollectiveAlgorithms, RecordsAreComplete) {
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    EXPECT_FALSE(algorithm->name.empty());
    EXPECT_FALSE(algorithm->summary.empty()) << algorithm->name;
    EXPECT_FALSE(algorithm->source.empty()) << algorithm->name;
    EXPECT_NE(algorithm->time, nullptr) << algorithm->name;
  }
}

TEST(CollectiveAlgorithms, AreNotBelowTheBandwidthBoundNorOneLatency) {
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    for (const CollectiveCall& call : Calls()) {
      EXPECT_GE(algorithm->time(call), BandwidthBound(call))
          << algorithm->name << " of " << call.size << " over " << call.ranks;
      EXPECT_GE(algorithm->time(call), call.ring.latency) << algorithm->name;
    }
  }
}

TEST(CollectiveAlgorithms, TakeMoreForMoreBytesAndSlowerPaths) {
  for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
    for (const CollectiveCall& call : Calls()) {
      CollectiveCall larger = call, slower = call, later = call;
      larger.size += Bytes(999);
      slower.ring.rate = Bandwidth(call.ring.rate.bytes_per_second() / 2);
      later.ring.latency += Duration(1);
      for (const CollectiveCall& worse : {larger, slower, later}) {
        EXPECT_GE(algorithm->time(worse), algorithm->time(call)) << algorithm->name;
      }
    }
  }
}

TEST(FastestTime, IsThatOfTheBestAlgorithm) {
  for (const CollectiveCall& call : Calls()) {
    const Duration fastest = FastestTime(call);
    bool reached = false;
    for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
      EXPECT_LE(fastest, algorithm->time(call)) << algorithm->name;
      reached |= fastest == algorithm->time(call);
    }
    EXPECT_TRUE(reached);
  }
}

TEST(FastestTimeDeathTest, OneRankIsNoGroup) {
  EXPECT_DEATH(FastestTime({.size = Bytes(8), .ranks = 1, .ring = {Bandwidth(1), Duration(0)}}),
               "1 ranks");
}

class SlowestHopTest : public ::testing::Test {
 protected:
  // Nodes of 8: 300 GB/s and 2 us within one, 25 GB/s and 3.7 us between two.
  SlowestHopTest() : cluster_(*cluster::ParseCluster("dgx-a100:2")) {}

  PathInfo Hop(const std::vector<int32_t>& devices) {
    std::vector<DeviceId> group;
    for (const int32_t device : devices) group.push_back(DeviceId(device));
    return SlowestHop(group, cluster_.topology);
  }

  const PathInfo kWithin = {Bandwidth(300'000'000'000), Duration(2'000'000)};
  const PathInfo kBetween = {Bandwidth(25'000'000'000), Duration(3'700'000)};
  const cluster::Cluster cluster_;
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
}  // namespace orrery::cost_models
