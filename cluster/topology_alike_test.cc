#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cluster/topologies.h"
#include "cluster/topology_shapes_test_util.h"

// What every topology says of devices that are alike, against routes one by one.

namespace orrery::cluster {
namespace topology_alike_test_cc {
namespace {

std::vector<LinkNumber> RouteOf(const Topology& topology, DeviceId from, DeviceId to) {
  std::vector<LinkNumber> route;
  topology.AppendRoute(from, to, route);
  return route;
}

LinkNumber NarrowestOf(const Topology& topology, const std::vector<LinkNumber>& route) {
  return *std::ranges::min_element(
      route, {}, [&](LinkNumber link) { return topology.LinkAt(link).speed.rate; });
}

class AlikeDevices : public testing::TestWithParam<const TopologyKind*> {};

// Sets hold every other device between them; what routes to one of a set begin with and are
// narrowest at, all do. And there are some wherever one looks for them, but where each pair has a
// link of its own, and among links listed one by one.
TEST_P(AlikeDevices, DestinationsOfOneSetAreReachedAlike) {
  int known = 0;
  for (const Topology& topology : Topologies(*GetParam(), 36)) {
    for (int32_t from = 0; from < topology.devices(); ++from) {
      std::vector<DeviceSet> sets;
      topology.AppendDestinations(DeviceId(from), sets);
      if (sets.empty()) continue;
      ++known;
      std::set<int32_t> held = {from};
      for (const DeviceSet& set : sets) {
        std::set<LinkNumber> first, narrowest;
        for (int32_t to = 0; to < topology.devices(); ++to) {
          if (to == from || !set.Holds(DeviceId(to))) continue;
          held.insert(to);
          const std::vector<LinkNumber> route = RouteOf(topology, DeviceId(from), DeviceId(to));
          first.insert(route.front());
          narrowest.insert(NarrowestOf(topology, route));
        }
        EXPECT_LE(first.size(), 1) << Name(topology) << " from " << from;
        EXPECT_LE(narrowest.size(), 1) << Name(topology) << " from " << from;
      }
      EXPECT_EQ(std::ssize(held), topology.devices()) << Name(topology) << " from " << from;
    }
  }
  const bool none = GetParam() == &kGraphTopology || GetParam() == &kSwitchTopology ||
                    GetParam() == &kFullyConnectedTopology;
  EXPECT_EQ(known > 0, !none);
}

// One set more than it needs, and a million devices would take as long as all pairs.
TEST(Destinations, AreFewWhereLinksAreOfOneSpeed) {
  const PathInfo speed = {Bandwidth(50), Duration(1)};
  const auto count = [&](const TopologyKind& kind, const TopologyShape& shape) {
    std::vector<DeviceSet> sets;
    Topology::Create(kind, shape)->AppendDestinations(DeviceId(0), sets);
    return sets.size();
  };
  TopologyShape grid = {.devices = 1024, .levels = {{32, speed}, {32, speed}}};
  EXPECT_EQ(count(kTorusTopology, grid), 4);
  for (Level& level : grid.levels) level.kind = LevelKind::kLine;
  EXPECT_EQ(count(kMeshTopology, grid), 2);  // from a corner
  EXPECT_EQ(count(kFatTreeTopology, grid), 2);
}

// Two devices change places: so any do.
TEST_P(AlikeDevices, InterchangeableDevicesMayChangePlaces) {
  if (!GetParam()->interchangeable) GTEST_SKIP();
  for (const Topology& topology : Topologies(*GetParam(), 8)) {
    if (topology.devices() < 3) continue;
    const auto moved = [&](int32_t device) {
      return DeviceId(device == 1 ? 2 : device == 2 ? 1 : device);
    };
    std::map<LinkNumber, LinkNumber> after;
    std::set<LinkNumber> images;
    for (int32_t from = 0; from < topology.devices(); ++from) {
      for (int32_t to = 0; to < topology.devices(); ++to) {
        if (from == to) continue;
        const std::vector<LinkNumber> a = RouteOf(topology, DeviceId(from), DeviceId(to));
        const std::vector<LinkNumber> b = RouteOf(topology, moved(from), moved(to));
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) {
          EXPECT_EQ(topology.LinkAt(a[i]).speed, topology.LinkAt(b[i]).speed);
          EXPECT_EQ(after.emplace(a[i], b[i]).first->second, b[i]);
          images.insert(b[i]);
        }
      }
    }
    EXPECT_EQ(images.size(), after.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, AlikeDevices, testing::ValuesIn(AllTopologies()), KindName);

}  // namespace
}  // namespace topology_alike_test_cc
}  // namespace orrery::cluster
