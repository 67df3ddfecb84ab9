#include "lowering/astra_system.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "simulator/astra_networks.h"

// Against the closed form of one ring; tests/golden/collectives_test.cc has what ASTRA-sim gave.

namespace orrery::lowering {
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

TEST(AstraSystem, SaysWhatItCannotPlay) {
  const auto error = [](const AstraCollective& collective) {
    return std::string(Play(collective, false).status().message());
  };
  EXPECT_EQ(error(Collective("ring", 8, 1 << 20, "doubleBinaryTree")),
            "algorithm 'doubleBinaryTree' for all-reduce of 8 ranks; wanted ring, direct or, for a "
            "power of two, halvingDoubling");
  EXPECT_EQ(error(Collective("ring", 1, 1 << 20, "ring")), "got 1 ranks; wanted 2 or more");
  EXPECT_EQ(error(Collective("ring", 8, 0, "ring")), "size: got 0; wanted 1 or more");
  AstraCollective broadcast = Collective("ring", 8, 8, "ring");
  broadcast.kind = CollectiveKind::kBroadcast;
  EXPECT_EQ(error(broadcast), "ASTRA-sim does not simulate broadcast");
}

}  // namespace
}  // namespace orrery::lowering
