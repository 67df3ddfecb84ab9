#include "lowering/network/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "cluster/random_graph_test_util.h"
#include "cluster/switched_nodes_test_util.h"
#include "cluster/topologies.h"
#include "cost_models/cost_model.h"
#include "lowering/network/exchange_store.h"

namespace orrery::lowering {
namespace places_test_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;

Devices Group(std::initializer_list<int32_t> devices) {
  Devices group;
  for (const int32_t device : devices) group.push_back(DeviceId(device));
  return group;
}

// Two nodes of four: the nodes can change places, and so can the devices of each, in a circle.
TEST(Places, AreOfGroupsThatRotationsMoveOntoEachOther) {
  Places places(cluster::ParseCluster("nodes:2x4@300GB/s,nic=25GB/s")->topology);
  const auto same = [&](std::initializer_list<int32_t> a, std::initializer_list<int32_t> b) {
    return places.Of(Group(a)) == places.Of(Group(b));
  };
  EXPECT_TRUE(same({0, 1}, {0, 1}));
  EXPECT_TRUE(same({0, 1}, {4, 5}));
  EXPECT_TRUE(same({0, 1}, {6, 7}));
  EXPECT_TRUE(same({0, 1}, {7, 4}));
  EXPECT_FALSE(same({0, 1}, {4, 7}));  // the other way round
  EXPECT_FALSE(same({0, 1}, {0, 2}));
  EXPECT_FALSE(same({0, 1}, {0, 4}));
  EXPECT_TRUE(same({0, 4}, {3, 7}));
  EXPECT_TRUE(same({0, 4}, {7, 3}));
  EXPECT_TRUE(same({0, 5}, {2, 7}));
  EXPECT_FALSE(same({0, 1}, {0, 1, 2}));
}

// Each device could be any other, but a rank's node is then another.
TEST(Places, KeepNodesTogether) {
  const auto places_on = [](int32_t devices_per_node) {
    const cluster::TopologyShape shape = {.devices = 8,
                                          .devices_per_node = devices_per_node,
                                          .port = {Bandwidth(1'000'000'000), Duration(0)}};
    return Places(*Topology::Create(cluster::kFullyConnectedTopology, shape));
  };
  Places apart = places_on(1), nodes = places_on(4);
  EXPECT_EQ(apart.Of(Group({0, 1})), apart.Of(Group({3, 4})));
  EXPECT_NE(nodes.Of(Group({0, 1})), nodes.Of(Group({3, 4})));
  EXPECT_NE(nodes.Of(Group({0, 1})), nodes.Of(Group({1, 2})));  // not looked for
  EXPECT_EQ(nodes.Of(Group({0, 1})), nodes.Of(Group({4, 5})));
  EXPECT_EQ(nodes.Of(Group({3, 4})), nodes.Of(Group({7, 0})));
}

// Nothing is known of a mesh, whose ends differ from its middle.
TEST(Places, AreOfOneGroupWhereNoRotationIsKnown) {
  Places places(cluster::ParseCluster("mesh:4@50GB/s")->topology);
  const PlaceId first = places.Of(Group({0, 1}));
  EXPECT_EQ(places.Of(Group({0, 1})), first);
  EXPECT_NE(places.Of(Group({1, 2})), first);
}

// One switch does not reduce, and one device has a degraded link.
std::string UnlikeNodes() { return cluster::SwitchedNodes({true, false, true}, /*degraded=*/5); }

// Of each kind, with and without all that tells devices apart; files, too.
std::vector<Topology> Topologies() {
  std::vector<Topology> topologies;
  for (const char* name :
       {"fully-connected:12@50GB/s", "switch:12@50GB/s,latency=1us,reduces", "ring:12@50GB/s",
        "ring:12@50GB/s,one-way", "torus:4x3@50GB/s", "mesh:4x3@50GB/s",
        "product:ring(4)@20GB/s,line(3)@90GB/s,switch(2)@50GB/s",
        "product:fully-connected(3)@90GB/s,switch(4)@10GB/s", "nodes:3x4@300GB/s,nic=25GB/s",
        "nodes:3x4@20GB/s,nic=25GB/s,nics=2", "dgx-a100:2", "dgx-h100:3", "dgx-v100:2",
        "rails:3x4@450GB/s,nic=50GB/s,oversubscription=2", "fat-tree:16@50GB/s,radix=4",
        "fat-tree:15@50GB/s,radix=8,oversubscription=2", "dragonfly:2x3x3@25GB/s"}) {
    topologies.push_back(cluster::ParseCluster(name).value().topology);
  }
  const cluster::TopologyShape nodes = {
      .devices = 12, .devices_per_node = 4, .port = {Bandwidth(1'000'000'000), Duration(1000)}};
  topologies.push_back(*Topology::Create(cluster::kFullyConnectedTopology, nodes));
  topologies.back().SetCollectiveProfile(
      cluster::ParseCluster("dgx-h100:1")->topology.collective_profile());
  topologies.push_back(
      cluster::ParseClusterText(UnlikeNodes(), cluster::ClusterFormat::kText, "test.textproto")
          .value()
          .topology);
  std::mt19937 random(11);
  topologies.push_back(cluster::RandomGraph(12, 8, random));
  return topologies;
}

int32_t Draw(std::mt19937& random, int32_t least, int32_t most) {
  return least + static_cast<int32_t>(random() % static_cast<uint32_t>(most - least + 1));
}

// Groups of as many ranks each: runs, every so many devices, or any, as they are after some devices
// changed places.
std::vector<Devices> RandomGroups(const Topology& topology, std::mt19937& random) {
  const int32_t devices = topology.devices();
  std::vector<int32_t> order(static_cast<size_t>(devices));
  for (int32_t d = 0; d < devices; ++d) order[static_cast<size_t>(d)] = d;
  const int32_t swaps = Draw(random, 0, 3);
  for (int32_t i = 1; i < swaps; ++i) {
    std::swap(order[static_cast<size_t>(Draw(random, 0, devices - 1))],
              order[static_cast<size_t>(Draw(random, 0, devices - 1))]);
  }
  const int32_t ranks = Draw(random, 2, devices), count = devices / ranks;
  const bool runs = Draw(random, 0, 1) == 0;
  std::vector<Devices> groups(static_cast<size_t>(count));
  for (int32_t i = 0; i < ranks * count; ++i) {
    groups[static_cast<size_t>(runs ? i / ranks : i % count)].push_back(
        DeviceId(order[static_cast<size_t>(i)]));
  }
  return groups;
}

auto Fields(const cost_models::RoundsCost& cost) {
  std::vector<std::tuple<int64_t, int64_t>> rounds;
  std::vector<cost_models::RoundCandidate> candidates;
  for (const cost_models::RoundCost& round : cost.rounds) {
    rounds.emplace_back(round.repeat, round.active);
    candidates.insert(candidates.end(), round.candidates.begin(), round.candidates.end());
  }
  std::vector<std::tuple<cluster::LinkNumber, int64_t, int64_t>> volumes;
  for (const cost_models::LinkVolume& volume : cost.volumes) {
    volumes.emplace_back(volume.link, volume.parts, volume.rate.bytes_per_second());
  }
  return std::tuple(cost.parts_a_size, rounds, candidates, volumes, cost.steps, cost.own_parts);
}

void ExpectSame(const Exchange& found, const Exchange& made) {
  EXPECT_TRUE(Fields(found.alone) == Fields(made.alone));
  EXPECT_TRUE(Fields(found.together) == Fields(made.together));
  EXPECT_EQ(found.links.all, made.links.all);
  EXPECT_EQ(found.links.ends, made.links.ends);
  EXPECT_EQ(found.alike, made.alike);
  EXPECT_EQ(found.busiest_s_a_part, made.busiest_s_a_part);
  EXPECT_EQ(found.busiest, made.busiest);
}

// What a store finds by places is what pricing each group by itself finds, field by field, of each
// algorithm.
TEST(Places, ExchangesAreAsIfEachGroupWerePriced) {
  std::mt19937 random(3);
  int32_t moved = 0, unlike = 0, meet = 0;
  for (const Topology& topology : Topologies()) {
    for (int32_t i = 0; i < 12; ++i) {
      SCOPED_TRACE(absl::StrCat(topology.kind().name, " ", i));
      ExchangeStore store(topology);
      const std::vector<Devices> drawn = RandomGroups(topology, random);
      for (const auto& kind : cost_models::AllCollectiveKinds()) {
        const auto ordered = [&] {
          std::vector<Devices> groups;
          for (const Devices& group : drawn) {
            groups.push_back(cost_models::RanksOf(kind.kind, group, topology));
          }
          return groups;
        };
        const GroupList& list = store.Groups({.mesh = {}, .kind = kind.kind}, ordered);
        for (const std::vector<int32_t>& layout : store.LayoutsOf(list)) {
          std::vector<Devices> groups;
          for (const int32_t g : layout) groups.push_back(list.groups[static_cast<size_t>(g)]);
          for (const auto* algorithm : cost_models::AllCollectiveAlgorithms()) {
            const auto chosen = cost_models::ChooseCollective(
                {.kind = kind.kind, .size = Bytes(1 << 20), .group = groups.front()}, topology,
                *cost_models::CollectiveChoice::Parse(algorithm->name));
            if (!chosen.ok() || chosen->algorithm != algorithm) continue;
            const Exchange& found = store.Find(list, layout, *chosen);
            ExpectSame(found, MakeExchange(groups, chosen->rounds, topology));
            for (size_t g = 1; g < layout.size(); ++g) {
              moved += list.places[static_cast<size_t>(layout[g])] ==
                       list.places[static_cast<size_t>(layout[0])];
            }
            unlike += !found.alike;
            meet += found.busiest_s_a_part > 0;
          }
        }
      }
    }
  }
  EXPECT_GT(moved, 1000);
  EXPECT_GT(unlike, 100);
  EXPECT_GT(meet, 100);
}

// Layouts are those that looking at each group finds, and a plan is that of each group, but for
// which links it names.
TEST(Places, LayoutsAndPlansAreThoseOfEachGroup) {
  std::mt19937 random(5);
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  for (const Topology& topology : Topologies()) {
    for (int32_t i = 0; i < 12; ++i) {
      SCOPED_TRACE(absl::StrCat(topology.kind().name, " ", i));
      ExchangeStore store(topology);
      constexpr auto kKind = cost_models::CollectiveKind::kAllReduce;
      std::vector<Devices> groups = RandomGroups(topology, random);
      for (Devices& group : groups) group = cost_models::RanksOf(kKind, group, topology);
      const GroupList& list = store.Groups({.mesh = {}, .kind = kKind}, [&] { return groups; });
      const Layouts& layouts = store.LayoutsOf(list);
      const auto looks = [&](int32_t g) {
        const Devices& group = groups[static_cast<size_t>(g)];
        const auto call = cost_models::MakeCall({.kind = kKind, .group = group}, topology);
        return std::tuple(call.ranks_a_node, call.node_reduces, call.fabric_reduces,
                          call.hop.rate.bytes_per_second(), call.hop.latency.picoseconds());
      };
      for (const std::vector<int32_t>& layout : layouts) {
        for (const int32_t g : layout) {
          EXPECT_EQ(looks(g), looks(layout.front()));
          for (const int64_t size : {1'000, 1'000'000, 3'000'000, 1'000'000'000}) {
            const cost_models::CollectiveRequest request = {
                .kind = kKind, .size = Bytes(size), .group = groups[static_cast<size_t>(g)]};
            const auto& found = store.PlanOf(*cost_model, request, {});
            const cost_models::ChosenCollective made = cost_model->Plan(request, topology, {});
            EXPECT_EQ(found.time, made.time);
            EXPECT_EQ(KeyOf(found.algorithm, found.rounds), KeyOf(made.algorithm, made.rounds));
            EXPECT_EQ(found.protocol.name, made.protocol.name);
          }
        }
        if (topology.shape().graph != nullptr) continue;  // trees tell them apart, too
        for (const std::vector<int32_t>& other : layouts) {
          EXPECT_EQ(looks(layout.front()) == looks(other.front()), &layout == &other);
        }
      }
    }
  }
}

}  // namespace
}  // namespace places_test_cc
}  // namespace orrery::lowering
