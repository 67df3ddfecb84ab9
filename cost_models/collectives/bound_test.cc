#include "cost_models/collectives/bound.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"

namespace orrery::cost_models {
namespace bound_test_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;

constexpr cluster::PathInfo kPort = {Bandwidth(1'000'000'000), Duration(0)};

Topology Make(absl::string_view name, const cluster::TopologyShape& shape) {
  for (const cluster::TopologyKind* kind : cluster::AllTopologies()) {
    if (kind->name == name) return *Topology::Create(*kind, shape);
  }
  ADD_FAILURE() << name;
  return Topology();
}

std::vector<DeviceId> First(int32_t count) {
  std::vector<DeviceId> group;
  for (int32_t device = 0; device < count; ++device) group.push_back(DeviceId(device));
  return group;
}

TEST(BandwidthBound, IsWhatPassesAPort) {
  const Topology one_switch = Make("switch", {.devices = 8, .port = kPort});
  const auto bound = [&](CollectiveKind kind, bool in_network) {
    return BandwidthBound(kind, Bytes(8000), First(8), 1, {in_network, in_network}, one_switch)
        ->picoseconds();
  };
  EXPECT_EQ(bound(CollectiveKind::kAllReduce, false), 14'000'000);
  EXPECT_EQ(bound(CollectiveKind::kAllReduce, true), 8'000'000);
  EXPECT_EQ(bound(CollectiveKind::kAllGather, false), 7'000'000);
  EXPECT_EQ(bound(CollectiveKind::kBroadcast, false), 8'000'000);
  EXPECT_EQ(bound(CollectiveKind::kBarrier, false), 0);
}

TEST(BandwidthBound, CountsAllLinksOfADevice) {
  const Topology ring = Make("ring", {.devices = 8, .port = kPort});
  EXPECT_EQ(BandwidthBound(CollectiveKind::kAllReduce, Bytes(8000), First(8), 1, {}, ring),
            Duration(7'000'000));
}

// Four devices leave a node by four cards; what a node must send is a tensor and a half.
TEST(BandwidthBound, CountsTheCardsOfANode) {
  const Topology nodes = Make("nodes", {.devices = 16,
                                        .devices_per_node = 4,
                                        .port = {Bandwidth(1'000'000'000'000), Duration(0)},
                                        .nic = kPort});
  EXPECT_EQ(BandwidthBound(CollectiveKind::kAllReduce, Bytes(8000), First(16), 4, {}, nodes),
            Duration(3'000'000));
}

// Devices that share a card leave their node by it, whatever their ports could: by half as many
// cards in twice the time.
TEST(BandwidthBound, CountsASharedCardOnce) {
  const auto bound = [](absl::string_view cluster) {
    return BandwidthBound(CollectiveKind::kAllReduce, Bytes(1 << 20), First(16), 8, {},
                          cluster::ParseCluster(cluster)->topology)
        ->seconds();
  };
  EXPECT_NEAR(bound("dgx-a100:2,nics=1") / bound("dgx-a100:2,nics=2"), 2, 1e-6);
}

TEST(BandwidthBound, IsNotKnownForVeryManyRanks) {
  const Topology one_switch = Make("switch", {.devices = 4096, .port = kPort});
  EXPECT_EQ(BandwidthBound(CollectiveKind::kAllReduce, Bytes(8), First(4096), 1, {}, one_switch),
            std::nullopt);
}

// No algorithm on any topology is faster than the bound.
TEST(BandwidthBound, IsABound) {
  const Topology topologies[] = {
      Make("switch", {.devices = 16, .port = kPort}),
      Make("switch", {.devices = 16, .port = kPort, .port_switch_reduces = true}),
      Make("ring", {.devices = 16, .port = kPort}),
      Make("fully_connected", {.devices = 16, .port = kPort}),
      Make("nodes", {.devices = 16, .devices_per_node = 4, .port = kPort, .nic = kPort}),
      Make("nodes", {.devices = 16,
                     .devices_per_node = 4,
                     .port = {Bandwidth(9'000'000'000), Duration(0)},
                     .nic = kPort,
                     .port_switch_reduces = true,
                     .nic_switch_reduces = true}),
      // Two devices share each NIC.
      cluster::ParseCluster("dgx-v100:2")->topology};
  int checked = 0;
  for (const Topology& topology : topologies) {
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (const int32_t ranks : {2, 4, 8, 12, 16}) {
        const std::vector<DeviceId> group = First(ranks);
        const CollectiveRequest request{.kind = kind.kind, .size = Bytes(48'000), .group = group};
        const CollectiveCall call = MakeCall(request, topology);
        const Duration bound = *BandwidthBound(kind.kind, request.size, group, call.ranks_a_node,
                                               {call.node_reduces, call.fabric_reduces}, topology);
        for (const CollectiveAlgorithm* algorithm : AllCollectiveAlgorithms()) {
          const auto choice = *CollectiveChoice::Parse(algorithm->name);
          if (!algorithm->Supports(call)) continue;
          EXPECT_GE(ChooseCollective(request, topology, choice)->time, bound)
              << algorithm->name << " " << kind.name << " of " << ranks << " on "
              << topology.kind().name;
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 500);
}

}  // namespace
}  // namespace bound_test_cc
}  // namespace orrery::cost_models
