#include "cost_models/collectives/laid_trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/random_graph_test_util.h"
#include "cost_models/collectives/bound.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/execution_test_util.h"
#include "cost_models/collectives/pricing_test_util.h"
#include "support/sanitized_test_util.h"

// Collectives on random connected graphs of up to 64 devices with equal links.

namespace orrery::cost_models {
namespace laid_trees_test_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;
using enum CollectiveKind;

constexpr uint32_t kSeed = 20261126;
constexpr CollectiveKind kTreeKinds[] = {kAllReduce, kReduceScatter, kAllGather, kBroadcast,
                                         kReduce};

// Sparse and dense ones, of 2 to 64 devices; `check(topology, all devices)`.
template <typename Check>
void ForRandomGraphs(int count, Check check) {
  std::mt19937 random(kSeed);
  for (int i = 0; i < CasesToWalk(count); ++i) {
    const auto devices = static_cast<int32_t>(i % 4 == 0 ? 64 : 2 + random() % 63);
    const auto extra = static_cast<int32_t>(
        random() % (1 + static_cast<uint32_t>(devices) * (1u << random() % 4) / 2));
    SCOPED_TRACE(absl::StrCat("seed ", kSeed, ", graph ", i, ": ", devices, " devices, ", extra,
                              " links beyond a tree"));
    const Topology topology = cluster::RandomGraph(devices, extra, random);
    check(topology, cluster::AllDevices(topology));
    if (::testing::Test::HasFailure()) return;
  }
}

Duration BoundOf(const CollectiveRequest& request, const Topology& topology) {
  return *BandwidthBound(request.kind, request.size, request.group, 1, {}, topology);
}

Duration By(absl::string_view algorithm, const CollectiveRequest& request,
            const Topology& topology) {
  const auto chosen = ChooseCollective(request, topology, *CollectiveChoice::Parse(algorithm));
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return chosen.ok() ? chosen->time : Duration();
}

TEST(GraphCollectives, ComeWithin30PercentOfTheBound) {
  double worst = 1;
  ForRandomGraphs(100, [&](const Topology& topology, const std::vector<DeviceId>& group) {
    for (const CollectiveKind kind : kTreeKinds) {
      const CollectiveRequest request{
          .kind = kind, .size = Bytes(int64_t{1} << 32), .group = group};
      const double ratio =
          FastestTime(request, topology).seconds() / BoundOf(request, topology).seconds();
      EXPECT_GE(ratio, 1) << GetCollectiveKind(kind).name;
      EXPECT_LE(ratio, 1.3) << GetCollectiveKind(kind).name;
      worst = std::max(worst, ratio);
    }
  });
  RecordProperty("worst", absl::StrCat(worst));
}

// The trees alone, of which the busiest link says how good they are.
TEST(GraphCollectives, LoadTheBusiestLinkWithin15PercentOfTheBound) {
  ForRandomGraphs(100, [](const Topology& topology, const std::vector<DeviceId>& group) {
    const CollectiveRequest request{.size = Bytes(int64_t{1} << 32), .group = group};
    const CollectiveCall call = MakeCall(request, topology);
    const Duration busy =
        TransferTime(request.size, call.laid.packed->busiest.trees,
                     std::ssize(call.laid.packed->trees), call.laid.packed->busiest.rate);
    EXPECT_LE(busy.seconds(), 1.15 * BoundOf(request, topology).seconds());
  });
}

TEST(GraphCollectives, OfShortMessagesAreNeverSlowerThanASpanningTree) {
  ForRandomGraphs(60, [](const Topology& topology, const std::vector<DeviceId>& group) {
    for (const CollectiveKind kind : {kAllReduce, kBroadcast, kReduce, kBarrier}) {
      for (const int64_t size : {1, 1024, 65536}) {
        const CollectiveRequest request{.kind = kind, .size = Bytes(size), .group = group};
        const Duration fastest = FastestTime(request, topology);
        EXPECT_LE(fastest, By("minimum-spanning-tree", request, topology));
        EXPECT_LE(fastest, By("shortest-path-tree", request, topology));
      }
    }
  });
}

// Up to the middle and down again, and nothing else takes less.
TEST(GraphCollectives, OfOneByteTakeTheDiameter) {
  const Topology line = cluster::GraphOf(
      {.devices = 5, .links = cluster::WiresBetween({{0, 1}, {1, 2}, {2, 3}, {3, 4}})});
  const std::vector<DeviceId> all = cluster::AllDevices(line);
  const auto chosen = *ChooseCollective({.size = Bytes(1), .group = all}, line);
  EXPECT_EQ(chosen.algorithm->name, "shortest-path-tree");
  EXPECT_EQ(chosen.time, Duration(4 * (500'000 + 20)));
}

// Each rank ends up with exactly its data: in one chunk and in several, on all devices and on some.
TEST(GraphCollectives, GiveEachRankItsData) {
  ForRandomGraphs(30, [](const Topology& topology, std::vector<DeviceId> group) {
    if (group.size() > 24) group.resize(group.size() / 2);
    for (const char* name : {"packed-trees", "shortest-path-tree"}) {
      const CollectiveAlgorithm& algorithm = **FindCollectiveAlgorithm(name);
      for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
        for (const int64_t size : {8, 1'000'000}) {
          const CollectiveCall call =
              MakeCall({.kind = kind.kind, .size = Bytes(size), .group = group}, topology);
          EXPECT_EQ(algorithm.Supports(call), algorithm.kinds.contains(kind.kind));
          if (!algorithm.Supports(call)) continue;
          EXPECT_EQ(Execution(algorithm.rounds(call)).error(), "") << name << " " << kind.name;
        }
      }
    }
  });
}

// By whatever algorithm, links that lie side by side and switches included.
TEST(GraphCollectives, AreNeverFasterThanTheBound) {
  std::vector<std::pair<int32_t, int32_t>> pairs = {{0, 6}, {1, 6}, {2, 6}, {3, 7}, {4, 7}, {5, 7},
                                                    {6, 7}, {6, 7}, {0, 3}, {0, 3}, {0, 3}, {1, 2}};
  const auto check = [](const Topology& topology, const std::vector<DeviceId>& group) {
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (const int64_t size : {1, 1'000'000, 1'000'000'000}) {
        const std::vector<DeviceId> ranks = RanksOf(kind.kind, group, topology);
        const CollectiveRequest request{
            .kind = kind.kind, .size = Bytes(kind.kind == kBarrier ? 0 : size), .group = ranks};
        const CollectiveCall call = MakeCall(request, topology);
        for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
          if (!algorithm->Supports(call)) continue;
          EXPECT_GE(PriceOn(topology, request.group, algorithm->rounds(call), request.size),
                    BoundOf(request, topology))
              << kind.name << " of " << size << " by " << algorithm->name;
        }
      }
    }
  };
  const Topology switches =
      cluster::GraphOf({.devices = 6, .switches = 2, .links = cluster::WiresBetween(pairs)});
  check(switches, cluster::AllDevices(switches));
  check(switches, {DeviceId(4), DeviceId(0), DeviceId(2)});
  ForRandomGraphs(12, check);
}

// Trees over the devices of one side take no link of the other.
TEST(GraphCollectives, AreLaidForTheGroupAlone) {
  const Topology two = cluster::GraphOf(
      {.devices = 6,
       .links = cluster::WiresBetween({{0, 1}, {1, 2}, {0, 2}, {2, 3}, {3, 4}, {4, 5}, {3, 5}})});
  const std::vector<DeviceId> left = {DeviceId(0), DeviceId(1), DeviceId(2)};
  const auto chosen = *ChooseCollective({.size = Bytes(1 << 30), .group = left}, two);
  for (const LinkVolume& volume : chosen.cost.volumes) {
    EXPECT_LT(two.LinkAt(volume.link).from.index(), 3);
    EXPECT_LT(two.LinkAt(volume.link).to.index(), 3);
  }
}

}  // namespace
}  // namespace laid_trees_test_cc
}  // namespace orrery::cost_models
