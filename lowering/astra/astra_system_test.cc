#include "lowering/astra/astra_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "simulator/network/astra_networks.h"

// Against the closed form of one ring; tests/golden/collectives_test.cc has what ASTRA-sim gave.

namespace orrery::lowering {
namespace astra_system_test_cc {
namespace {

using cost_models::CollectiveKind;

constexpr int64_t kGibibytes50 = 50 * (int64_t{1} << 30);

cluster::Topology Make(absl::string_view name, int32_t devices) {
  for (const cluster::TopologyKind* kind : cluster::AllTopologies()) {
    if (kind->name != name) continue;
    return *cluster::Topology::Create(
        *kind, {.devices = devices, .port = {Bandwidth(kGibibytes50), Duration(500'000)}});
  }
  return cluster::Topology();
}

AstraCollective Collective(absl::string_view topology, int32_t ranks, int64_t size,
                           const std::string& algorithm) {
  AstraCollective collective{
      .size = Bytes(size), .local_memory = Bandwidth(1'600'000'000'000), .chunks = 4};
  collective.dimensions.push_back(
      {Make(topology, ranks),
       std::vector<std::string>(cost_models::kCollectiveKindCount, algorithm)});
  return collective;
}

absl::StatusOr<Duration> Play(const AstraCollective& collective, bool aware) {
  return PlayAstra(collective, [&](const simulator::Program& program) {
    return aware ? std::unique_ptr<simulator::NetworkModel>(
                       std::make_unique<simulator::AstraAware>(program))
                 : std::make_unique<simulator::AstraUnaware>(program);
  });
}

// peers.md 2.2: chunks × (2(n-1) floor(latency + part/rate) + 3(n-1) floor(part/memory) +
// (2n-1) endpoint delay), of one active chunk.
TEST(AstraSystem, RingAllReduceIsItsClosedForm) {
  for (const int32_t n : {2, 4, 8, 16, 64}) {
    for (const int64_t size : {1 << 16, 1 << 20, 1 << 26}) {
      for (const int64_t chunks : {1, 4, 16}) {
        for (const int64_t delay : {1, 10, 100}) {
          AstraCollective collective = Collective("ring", n, size, "ring");
          collective.chunks = chunks;
          collective.endpoint_delay_ns = delay;
          const int64_t part = std::max<int64_t>(size / chunks, n) / n;
          const auto message =
              static_cast<int64_t>(500 + static_cast<double>(part) * 1e9 / kGibibytes50);
          const int64_t expected =
              chunks * (2 * (n - 1) * message + 3 * (n - 1) * (part / 1600) + (2 * n - 1) * delay);
          for (const bool aware : {false, true}) {
            EXPECT_EQ(*Play(collective, aware), Duration(expected * 1000))
                << n << " ranks, " << size << " bytes, " << chunks << " chunks, " << delay;
          }
        }
      }
    }
  }
}

TEST(AstraSystem, ActiveChunksDoNotMeetWhenUnaware) {
  AstraCollective collective = Collective("ring", 8, 1 << 24, "ring");
  const Duration one = *Play(collective, false);
  collective.active_chunks = 2;
  EXPECT_EQ(*Play(collective, false), Duration(one.picoseconds() / 2));
  EXPECT_GT(*Play(collective, true), Duration(one.picoseconds() * 9 / 10));
}

// One chunk: up log2 n levels and down again, of which the root waits for the way up, a leaf for
// both. Who passes data on adds it up, whichever way it goes.
TEST(AstraSystem, DoubleBinaryTreeOfOneChunkIsItsClosedForm) {
  for (const int32_t n : {2, 4, 8, 64}) {
    for (const int64_t size : {1 << 16, 1 << 22}) {
      AstraCollective collective = Collective("fully_connected", n, size, "doubleBinaryTree");
      collective.chunks = 1;
      const int64_t depth = std::bit_width(static_cast<uint32_t>(n)) - 1;
      const auto message =
          static_cast<int64_t>(500 + static_cast<double>(size) * 1e9 / kGibibytes50);
      const int64_t memory = 3 * (size / 1600);
      // The leaf's start; then of each hop the message and its endpoint, and memory at all but
      // leaves.
      const int64_t expected = 10 + 2 * depth * (message + 10) + (2 * depth - 1) * memory;
      EXPECT_EQ(*Play(collective, false), Duration(expected * 1000)) << n << ", " << size;
    }
  }
}

// Chunks take the two trees in turn, and a rank begins the next when it is done: in the end the
// last leaf of the first tree and the root of the second meet. So two take less than twice one.
TEST(AstraSystem, DoubleBinaryTreesOverlap) {
  AstraCollective collective = Collective("switch", 16, 1 << 22, "doubleBinaryTree");
  collective.chunks = 1;
  const Duration one = *Play(collective, false);
  collective.size = collective.size * 2;
  collective.chunks = 2;
  const Duration two = *Play(collective, false);
  EXPECT_GT(two, one);
  EXPECT_LT(two, one * 2);
}

TEST(AstraSystem, SaysWhatItCannotPlay) {
  const auto error = [](const AstraCollective& collective) {
    return std::string(Play(collective, false).status().message());
  };
  EXPECT_EQ(error(Collective("ring", 6, 1 << 20, "doubleBinaryTree")),
            "algorithm 'doubleBinaryTree' for all-reduce of 6 ranks; wanted ring, direct or, for a "
            "power of two, halvingDoubling or doubleBinaryTree (which is for all-reduce only)");
  EXPECT_EQ(error(Collective("ring", 1, 1 << 20, "ring")), "got 1 rank; wanted 2 or more");
  EXPECT_EQ(error(Collective("ring", 8, 0, "ring")), "size: got 0; wanted 1 or more");
  AstraCollective broadcast = Collective("ring", 8, 8, "ring");
  broadcast.kind = CollectiveKind::kBroadcast;
  EXPECT_EQ(error(broadcast), "ASTRA-sim does not simulate broadcast");
}

}  // namespace
}  // namespace astra_system_test_cc
}  // namespace orrery::lowering
