#include "cluster/names/named_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace orrery::cluster {
namespace named_links_test_cc {
namespace {

Topology Nodes() { return ParseCluster("dgx-a100:2")->topology; }

std::vector<std::string> Names(const Topology& topology, absl::string_view name) {
  std::vector<std::string> names;
  const auto links = FindLinks(topology, name);
  EXPECT_TRUE(links.ok()) << links.status();
  for (const LinkNumber link : *links) names.push_back(topology.LinkName(link));
  return names;
}

TEST(NamedLinks, AreFoundByKindByEndAndByName) {
  const Topology topology = Nodes();
  EXPECT_EQ(Names(topology, "nic").size(), 32);  // 16 devices, both ways
  EXPECT_EQ(Names(topology, "port").size(), 32);
  const std::vector<std::string> all = Names(topology, "device3");
  EXPECT_EQ(all.size(), 4);
  const std::vector<std::string> nics = Names(topology, "device3/nic");
  ASSERT_EQ(nics.size(), 2);
  EXPECT_THAT(nics[0], testing::HasSubstr("device3"));
  EXPECT_EQ(Names(topology, nics[0]), std::vector<std::string>{nics[0]});
}

TEST(NamedLinks, SayWhichThereAreWhereThereIsNone) {
  for (const absl::string_view name : {"uplink", "device16", "device3/uplink", "device3 -> moon"}) {
    const auto links = FindLinks(Nodes(), name);
    ASSERT_FALSE(links.ok()) << name;
    EXPECT_THAT(links.status().message(),
                testing::AllOf(testing::HasSubstr(std::string(name)), testing::HasSubstr("nic"),
                               testing::HasSubstr("port")));
  }
}

// Slower links are what a topology with such links is.
TEST(SlowerLinks, AreAsThoseOfATopologyThatIsMadeSo) {
  const Topology fast = ParseCluster("ring:8@50GB/s")->topology;
  const Topology slow = ParseCluster("ring:8@25GB/s")->topology;
  std::vector<LinkNumber> all;
  for (LinkNumber link = 0; link < fast.link_count(); ++link) all.push_back(link);
  const Topology slowed = fast.WithSlowerLinks(all, 0.5);
  for (int32_t to = 1; to < 8; ++to) {
    EXPECT_EQ(slowed.Path(DeviceId(0), DeviceId(to)), slow.Path(DeviceId(0), DeviceId(to)));
  }
  EXPECT_EQ(slowed.LinkAt(3).speed, slow.LinkAt(3).speed);
  EXPECT_TRUE(slowed.Rotations().empty());
  const Topology twice = slowed.WithSlowerLinks(std::vector<LinkNumber>{3}, 0.5);
  EXPECT_EQ(twice.LinkAt(3).speed.rate, Bandwidth(12'500'000'000));
  EXPECT_EQ(twice.LinkAt(2).speed.rate, Bandwidth(25'000'000'000));
  EXPECT_NE(slowed.FasterLinks(), twice.FasterLinks());
}

}  // namespace
}  // namespace named_links_test_cc
}  // namespace orrery::cluster
