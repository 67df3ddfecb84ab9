#include "lowering/astra/astra_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "simulator/network/astra_networks.h"
#include "simulator/program/time_alone.h"

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

// A message of 8 GiB through 1 GB/s of memory three times, to the nanosecond.
TEST(AstraSystem, LocalMemoryIsPassedThreeTimes) {
  AstraCollective collective = Collective("ring", 2, int64_t{1} << 34, "ring");
  collective.chunks = 1;
  collective.endpoint_delay_ns = 0;
  collective.local_memory = Bandwidth(1'000'000'000);
  constexpr int64_t kMessage = 500 + 160'000'000;  // 2^33 bytes at 50 x 2^30 bytes/s: 0.16 s
  constexpr int64_t kMemory = 3 * (int64_t{1} << 33);
  EXPECT_EQ(*Play(collective, false), Duration((2 * kMessage + kMemory) * 1000));
}

// The first delay is over at 3e18 ps, the second would be at 6e18.
TEST(AstraSystem, NothingIsLaterThanTheEndOfTime) {
  AstraCollective collective = Collective("ring", 2, 8, "ring");
  collective.endpoint_delay_ns = 3'000'000'000'000'000;
  EXPECT_EQ(*Play(collective, false), simulator::kEndOfTime);
  // And what is over in the last nanosecond is over then.
  collective.endpoint_delay_ns = simulator::kEndOfTime.picoseconds() / 1000;
  EXPECT_EQ(*Play(collective, false), simulator::kEndOfTime);
}

TEST(AstraSystem, SaysHowMuchItCanPlay) {
  const auto error = [](const AstraCollective& collective) {
    return std::string(Play(collective, false).status().message());
  };
  AstraCollective many = Collective("ring", 1024, int64_t{129} << 20, "ring");
  many.chunks = 129;
  // 2 x 1023 messages of each of 1024 ranks.
  EXPECT_EQ(error(many),
            "got 129 chunks of 2095104 messages; wanted at most 268435456 in all; try fewer ranks "
            "or chunks");
  // The same up and down another dimension, and across it.
  many.dimensions.push_back(many.dimensions[0]);
  many.dimensions[0].topology = Make("ring", 2);
  EXPECT_EQ(error(many),
            "got 129 chunks of 2095108 messages; wanted at most 268435456 in all; try fewer ranks "
            "or chunks");
  // As many ranks as there may be.
  AstraCollective square = Collective("ring", 1024, int64_t{1} << 30, "ring");
  square.dimensions.push_back(square.dimensions[0]);
  square.chunks = 1 << 17;
  EXPECT_EQ(error(square),
            "got 131072 chunks of 4190208 messages; wanted at most 268435456 in all; try fewer "
            "ranks or chunks");
  many.dimensions.push_back(many.dimensions[1]);
  EXPECT_EQ(error(many), "got 2097152 ranks; wanted at most 1048576");
  AstraCollective odd = Collective("ring", 2, 8, "ring");
  odd.chunks = (1 << 20) + 1;
  EXPECT_EQ(error(odd), "preferred-dataset-splits: got 1048577; wanted at most 1048576");
  odd.chunks = 1 << 20;
  odd.size = Bytes(0);
  EXPECT_EQ(error(odd), "size: got 0; wanted 1 or more");
  odd.size = Bytes(8);
  odd.chunks = 0;
  EXPECT_EQ(error(odd), "preferred-dataset-splits: got 0; wanted 1 or more");
  odd.chunks = 1;
  odd.active_chunks = 0;
  EXPECT_EQ(error(odd), "active-chunks-per-dimension: got 0; wanted 1 or more");
  odd.active_chunks = 1;
  odd.local_memory = Bandwidth(0);
  EXPECT_EQ(error(odd), "local-mem-bw: got 0; wanted 1 or more");
  odd.local_memory = Bandwidth(1);
  EXPECT_TRUE(Play(odd, false).ok());
  odd.dimensions.clear();
  EXPECT_EQ(error(odd), "dimensions: got 0; wanted 1 or more");
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
