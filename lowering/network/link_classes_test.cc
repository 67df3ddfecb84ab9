#include "lowering/network/link_classes.h"

#include <gtest/gtest.h>

#include "cluster/cluster.h"

namespace orrery::lowering {
namespace link_classes_test_cc {
namespace {

using cost_models::LinkVolume;

// Eight devices on a switch: links 0 to 7 go up, 8 to 15 down, or however they are numbered; all
// are alike but for what they carry.
const cluster::Topology& Switch() {
  static const auto& topology =
      *new cluster::Topology(cluster::ParseCluster("switch:8@50GB/s")->topology);
  return topology;
}

// What flows that occupy those lanes put on links.
struct Flows {
  absl::InlinedVector<Lane, 2> lanes;
  std::vector<LinkVolume> volumes;
};

LinkClasses Classify(const std::vector<Flows>& flows, const cluster::Topology& topology) {
  LinkLoads loads(topology);
  std::vector<Traffic> traffic;
  for (const Flows& each : flows) {
    traffic.push_back({.lanes = each.lanes, .number = loads.Add(each.volumes)});
  }
  return loads.Classify(traffic);
}

TEST(LinkClasses, LinksThatCarryTheSameAreOne) {
  const std::vector<LinkVolume> all = {{0, 2}, {1, 2}, {2, 2}, {3, 2}}, some = {{3, 5}, {2, 5}};
  const LinkClasses found = Classify({{{0}, all}, {{1}, some}}, Switch());
  ASSERT_EQ(found.classes.size(), 2u);
  EXPECT_EQ(found.classes[0].first, 0);
  EXPECT_EQ(found.classes[0].links, 2);
  EXPECT_FALSE(found.classes[0].shared);
  EXPECT_EQ(found.classes[1].first, 2);
  EXPECT_EQ(found.classes[1].links, 2);
  EXPECT_TRUE(found.classes[1].shared);
  ASSERT_EQ(found.by_traffic[0].size(), 2u);
  EXPECT_EQ(found.by_traffic[0][1].link_class, 1);
  EXPECT_EQ(found.by_traffic[0][1].parts, 2);
  ASSERT_EQ(found.by_traffic[1].size(), 1u);
  EXPECT_EQ(found.by_traffic[1][0].parts, 5);
}

TEST(LinkClasses, WhatRunsOnOneLaneIsNeverShared) {
  const std::vector<LinkVolume> volumes = {{0, 1}};
  const auto shared = [&](const absl::InlinedVector<Lane, 2>& a,
                          const absl::InlinedVector<Lane, 2>& b) {
    return Classify({{a, volumes}, {b, volumes}}, Switch()).classes.at(0).shared;
  };
  EXPECT_TRUE(shared({0}, {1}));
  EXPECT_FALSE(shared({0}, {0}));
  EXPECT_FALSE(shared({0, 5}, {1, 5}));
  EXPECT_TRUE(shared({0, 5}, {1, 4}));
}

// Of three flows on a link, two that can meet are enough.
TEST(LinkClasses, AnyTwoThatMeetShare) {
  const std::vector<LinkVolume> volumes = {{0, 1}};
  const std::vector<Flows> flows = {{{0}, volumes}, {{0}, volumes}, {{1}, volumes}};
  EXPECT_TRUE(Classify(flows, Switch()).classes.at(0).shared);
}

TEST(LinkClasses, LinksOfOtherRatesOrKindsAreNotAlike) {
  const cluster::Topology nodes = cluster::ParseCluster("nodes:2x2@50GB/s,nic=25GB/s")->topology;
  std::vector<LinkVolume> volumes;
  for (cluster::LinkNumber link = 0; link < nodes.link_count(); ++link)
    volumes.push_back({link, 1});
  const LinkClasses found = Classify({{{0}, volumes}}, nodes);
  ASSERT_EQ(found.classes.size(), 2u);
  EXPECT_NE(nodes.LinkAt(found.classes[0].first).kind, nodes.LinkAt(found.classes[1].first).kind);
  EXPECT_EQ(found.classes[0].links + found.classes[1].links, nodes.link_count());
}

// Groups that see classes which the first does not see, or fewer than it, do not see the same; how
// many links of a class they see does not count.
TEST(LinkClasses, GroupsSeeTheSameClasses) {
  const std::vector<LinkVolume> a = {{0, 1}, {1, 1}, {2, 1}, {3, 1}}, b = {{2, 3}, {3, 3}};
  LinkLoads loads(Switch());
  const std::vector<Traffic> traffic = {{{0}, loads.Add(a)}, {{1}, loads.Add(b)}};
  const LinkClasses found = loads.Classify(traffic);
  const auto see_the_same = [&](const std::vector<std::vector<cluster::LinkNumber>>& groups) {
    GroupLinks links;
    for (const auto& group : groups) {
      links.all.insert(links.all.end(), group.begin(), group.end());
      links.ends.push_back(links.all.size());
    }
    EXPECT_EQ(links.size(), groups.size());
    return loads.SeeTheSame(links, found);
  };
  EXPECT_TRUE(see_the_same({{0, 2}}));
  EXPECT_TRUE(see_the_same({{0, 2}, {3, 1}}));
  EXPECT_TRUE(see_the_same({{0, 2, 1}, {3, 1}}));
  EXPECT_TRUE(see_the_same({{0}, {1}}));
  EXPECT_FALSE(see_the_same({{0}, {2}}));
  EXPECT_FALSE(see_the_same({{0, 2}, {1}}));
  EXPECT_FALSE(see_the_same({{0}, {1, 3}}));
  EXPECT_FALSE(see_the_same({{0, 1}, {0, 1}, {0, 3}}));
  EXPECT_TRUE(see_the_same({{}, {}}));
}

}  // namespace
}  // namespace link_classes_test_cc
}  // namespace orrery::lowering
