#include "cost_models/collectives/group_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster.h"

namespace orrery::cost_models {
namespace group_layout_test_cc {
namespace {

using cluster::DeviceId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Topologies of one cluster, asked about groups of devices by their numbers.
class Asked {
 public:
  explicit Asked(const std::string& spelling) : cluster_(*cluster::ParseCluster(spelling)) {}

  std::vector<int32_t> Grid(const std::vector<int32_t>& devices) const {
    return GridOf(cluster_.topology, Group(devices));
  }
  bool Linked(const std::vector<int32_t>& devices, int32_t a_node) const {
    return AllLinked(cluster_.topology, Group(devices), a_node);
  }
  std::vector<int32_t> All() const {
    std::vector<int32_t> devices;
    for (int32_t device = 0; device < cluster_.topology.devices(); ++device) {
      devices.push_back(device);
    }
    return devices;
  }

 private:
  static std::vector<DeviceId> Group(const std::vector<int32_t>& devices) {
    std::vector<DeviceId> group;
    for (const int32_t device : devices) group.push_back(DeviceId(device));
    return group;
  }

  cluster::Cluster cluster_;
};

// Devices of a 4 x 3 torus:
//   8 9 10 11
//   4 5  6  7
//   0 1  2  3
TEST(GridOf, IsTheBoxThatAGroupFills) {
  const Asked torus("torus:4x3@50GB/s,latency=1us");
  EXPECT_THAT(torus.Grid(torus.All()), ElementsAre(4, 3));
  EXPECT_THAT(torus.Grid({0, 1, 4, 5}), ElementsAre(2, 2));
  EXPECT_THAT(torus.Grid({1, 3, 5, 7, 9, 11}), ElementsAre(2, 3));
  EXPECT_THAT(torus.Grid({0, 1, 2, 3}), IsEmpty()) << "one dimension is a ring";
  EXPECT_THAT(torus.Grid({0, 4, 8}), IsEmpty());
  EXPECT_THAT(torus.Grid({0, 1, 4, 6}), IsEmpty()) << "no box";
  EXPECT_THAT(torus.Grid({0, 4, 1, 5}), IsEmpty()) << "not in order";
  EXPECT_THAT(torus.Grid({0, 5}), IsEmpty()) << "a diagonal";
}

TEST(GridOf, LeavesOutSidesOfOne) {
  const Asked torus("torus:4x1x2@50GB/s,latency=1us");
  EXPECT_THAT(torus.Grid(torus.All()), ElementsAre(4, 2));
  const Asked cube("torus:2x3x4@50GB/s,latency=1us");
  EXPECT_THAT(cube.Grid(cube.All()), ElementsAre(2, 3, 4));
  EXPECT_THAT(cube.Grid({0, 2, 4, 6, 8, 10}), ElementsAre(3, 2));
}

TEST(GridOf, IsOfGridsOnly) {
  for (const char* spelling :
       {"dgx-h100:2", "fully-connected:8@50GB/s", "ring:8@50GB/s", "fat-tree:16@50GB/s,radix=8"}) {
    const Asked asked(spelling);
    EXPECT_THAT(asked.Grid(asked.All()), IsEmpty()) << spelling;
  }
  const Asked mesh("mesh:4x2@50GB/s,latency=1us");
  EXPECT_THAT(mesh.Grid(mesh.All()), ElementsAre(4, 2));
}

TEST(AllLinked, AsksForALinkOfEveryPair) {
  const Asked full("fully-connected:6@50GB/s,latency=1us");
  EXPECT_TRUE(full.Linked(full.All(), 1));
  EXPECT_TRUE(full.Linked({0, 2, 5}, 1));
  const Asked ring("ring:8@50GB/s,latency=1us");
  EXPECT_FALSE(ring.Linked(ring.All(), 1));
  EXPECT_TRUE(ring.Linked({3, 4}, 1));
  EXPECT_FALSE(ring.Linked({0, 1, 2}, 1));
  const Asked nodes("dgx-h100:2");
  EXPECT_FALSE(nodes.Linked(nodes.All(), 8)) << "a switch is no link";
}

TEST(AllLinked, AsksWithinNodes) {
  const Asked nodes("product:fully-connected(4)@50GB/s,switch(2)@10GB/s");
  EXPECT_TRUE(nodes.Linked(nodes.All(), 4));
  EXPECT_FALSE(nodes.Linked(nodes.All(), 1));
}

}  // namespace
}  // namespace group_layout_test_cc
}  // namespace orrery::cost_models
