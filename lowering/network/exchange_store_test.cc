#include "lowering/network/exchange_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "cluster/cluster.h"
#include "cost_models/cost_model.h"

namespace orrery::lowering {
namespace exchange_store_test_cc {
namespace {

using cost_models::CollectiveKind;
using cost_models::LinkVolume;

Devices Row(int32_t first, int32_t count) {
  Devices devices;
  for (int32_t d = 0; d < count; ++d) devices.push_back(cluster::DeviceId(first + d));
  return devices;
}

// What differs in the groups, the kind, the algorithm or the number of parts is another exchange,
// and what is the same is not made again.
TEST(ExchangeStore, FindsEachExchangeOnce) {
  const cluster::Topology topology = cluster::ParseCluster("dgx-a100:2")->topology;
  ExchangeStore store(topology);
  const auto find = [&](const std::vector<Devices>& groups, CollectiveKind kind, int64_t size,
                        absl::string_view algorithm = "auto") {
    const auto choice = *cost_models::CollectiveChoice::Parse(algorithm);
    const auto chosen = *cost_models::ChooseCollective(
        {.kind = kind, .size = Bytes(size), .group = groups.front()}, topology, choice);
    const Exchange& found = store.Find(groups, chosen);
    const Exchange made = MakeExchange(groups, chosen.rounds, topology);
    EXPECT_EQ(TimeOf(found.together, Bytes(1 << 20)), TimeOf(made.together, Bytes(1 << 20)));
    EXPECT_EQ(found.links.size(), groups.size());
    return &found;
  };
  constexpr auto kGather = CollectiveKind::kAllGather, kReduce = CollectiveKind::kAllReduce;
  const Exchange* const first = find({Row(0, 4), Row(4, 4)}, kGather, 1 << 20);
  EXPECT_EQ(find({Row(0, 4), Row(4, 4)}, kGather, 1 << 20), first);
  EXPECT_EQ(find({Row(0, 4), Row(4, 4)}, kGather, 3 << 20), first);  // rounds know no size
  EXPECT_NE(find({Row(0, 4), Row(8, 4)}, kGather, 1 << 20), first);
  EXPECT_NE(find({Row(0, 4)}, kGather, 1 << 20), first);
  EXPECT_NE(find({Row(0, 8)}, kGather, 1 << 20), first);  // as many devices
  const Exchange* const reduce = find({Row(0, 4)}, kReduce, 1 << 20, "ring");
  EXPECT_NE(find({Row(0, 4)}, kReduce, 1 << 20, "halving-doubling"), reduce);
  const Exchange* const pipeline = find({Row(0, 16)}, kReduce, 1 << 20, "tree");
  EXPECT_NE(find({Row(0, 16)}, kReduce, 1 << 30, "tree"), pipeline);  // in more chunks
}

// Lists are told apart by all that says which groups they are of; of what is the same the first is
// kept, with its layouts and its exchanges.
TEST(ExchangeStore, MakesEachListOfGroupsOnce) {
  const cluster::Topology topology = cluster::ParseCluster("dgx-a100:2")->topology;
  ExchangeStore store(topology);
  const GroupsKey key = {.mesh = ir::Mesh({{"pp", 2}, {"dp", 2}, {"hp", 4}}),
                         .axes = ir::AxisList(ir::AxisIndex(1)),
                         .kind = CollectiveKind::kAllReduce};
  const auto make = [] { return std::vector<Devices>{Row(0, 4), Row(8, 4), Row(6, 4)}; };
  const GroupList& first = store.Groups(key, make);
  EXPECT_EQ(first.groups, make());
  EXPECT_EQ(&store.Groups(key, [] { return std::vector<Devices>(); }), &first);
  const auto differs = [&](const auto& change) {
    GroupsKey other = key;
    change(other);
    return &store.Groups(other, make) != &first;
  };
  EXPECT_TRUE(differs([](GroupsKey& k) { k.mesh = ir::Mesh({{"dp", 4}, {"hp", 4}}); }));
  EXPECT_TRUE(differs([](GroupsKey& k) { k.devices = {1, 0}; }));
  EXPECT_TRUE(differs([](GroupsKey& k) { k.position = 1; }));
  EXPECT_TRUE(differs([](GroupsKey& k) { k.to = 1; }));
  EXPECT_TRUE(differs([](GroupsKey& k) { k.axes = ir::AxisList(ir::AxisIndex(2)); }));
  EXPECT_TRUE(differs([](GroupsKey& k) { k.kind = CollectiveKind::kAllGather; }));
  // The third group has ranks on two nodes.
  const Layouts& layouts = store.LayoutsOf(first);
  EXPECT_EQ(layouts, (Layouts{{0, 1}, {2}}));
  EXPECT_EQ(&store.LayoutsOf(first), &layouts);
  // Rings that pass something on are groups like others; of sends every pair is alike.
  GroupsKey passed_on = key;
  passed_on.kind = CollectiveKind::kSendReceive;
  EXPECT_EQ(store.LayoutsOf(store.Groups(passed_on, make)), layouts);
  passed_on.to = 1;
  EXPECT_EQ(store.LayoutsOf(store.Groups(passed_on, make)), (Layouts{{0, 1, 2}}));
  const auto chosen = *cost_models::ChooseCollective(
      {.kind = CollectiveKind::kAllReduce, .size = Bytes(1 << 20), .group = first.groups[0]},
      topology);
  const Exchange& exchange = store.Find(first, layouts[0], chosen);
  EXPECT_EQ(&store.Find(first, layouts[0], chosen), &exchange);
  EXPECT_EQ(&store.Find({Row(0, 4), Row(8, 4)}, chosen), &exchange);
  EXPECT_NE(&store.Find(first, layouts[1], chosen), &exchange);
}

// What a plan follows from is another plan, and what is the same is not made again.
TEST(ExchangeStore, FindsEachPlanOnce) {
  const cluster::Topology topology = cluster::ParseCluster("dgx-a100:2")->topology;
  const auto kernels = cost_models::MakeCostModel("kernels").value();
  const auto roofline = cost_models::MakeCostModel("roofline").value();
  ExchangeStore store(topology);
  const auto find = [&](const cost_models::CostModel& cost_model, const Devices& group,
                        CollectiveKind kind, int64_t size, absl::string_view algorithm = "auto") {
    const auto choice = *cost_models::CollectiveChoice::Parse(algorithm);
    const cost_models::CollectiveRequest request = {
        .kind = kind, .size = Bytes(size), .group = group};
    const cost_models::ChosenCollective& found = store.PlanOf(cost_model, request, choice);
    const cost_models::ChosenCollective made = cost_model.Plan(request, topology, choice);
    EXPECT_EQ(found.algorithm, made.algorithm);
    EXPECT_EQ(found.time, made.time);
    EXPECT_EQ(found.group, made.group);
    return &found;
  };
  constexpr auto kGather = CollectiveKind::kAllGather, kReduce = CollectiveKind::kAllReduce;
  const auto* const first = find(*roofline, Row(0, 8), kReduce, 1 << 20);
  EXPECT_EQ(find(*roofline, Row(0, 8), kReduce, 1 << 20), first);
  EXPECT_NE(find(*kernels, Row(0, 8), kReduce, 1 << 20), first);
  EXPECT_NE(find(*roofline, Row(4, 8), kReduce, 1 << 20), first);
  EXPECT_NE(find(*roofline, Row(0, 8), kGather, 1 << 20), first);
  EXPECT_NE(find(*roofline, Row(0, 8), kReduce, 2 << 20), first);
  EXPECT_NE(find(*roofline, Row(0, 8), kReduce, 1 << 20, "tree"), first);
  EXPECT_EQ(find(*roofline, Row(0, 8), kReduce, 1 << 20), first) << "it stays";
}

TEST(ExchangeStore, ClassesAreOfLanesToo) {
  const cluster::Topology topology = cluster::ParseCluster("ring:4@50GB/s")->topology;
  ExchangeStore store(topology);
  const Exchange exchange = MakeExchange({Row(0, 2)}, MessageRounds(), topology);
  const auto classes = [&](Lane lane) {
    const std::vector<PlacedExchange> both = {{.exchange = &exchange, .lanes = {0}},
                                              {.exchange = &exchange, .lanes = {lane}}};
    return &store.ClassesOf(both);
  };
  EXPECT_TRUE(classes(1)->classes.at(0).shared);
  EXPECT_FALSE(classes(0)->classes.at(0).shared);
  EXPECT_EQ(classes(1), classes(1));
}

// Links by what they carry, link by link, however far they lie from each other.
TEST(LinkClasses, AreThoseOfEqualLoads) {
  std::mt19937 random(7);
  const auto draw = [&](int32_t most) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(most));
  };
  for (const char* name : {"nodes:4x4@300GB/s,nic=25GB/s", "fully-connected:4000@50GB/s"}) {
    const cluster::Topology topology = cluster::ParseCluster(name)->topology;
    for (int i = 0; i < 50; ++i) {
      std::vector<std::vector<LinkVolume>> volumes(4);
      std::map<cluster::LinkNumber, std::vector<std::pair<size_t, int64_t>>> carried;
      for (size_t t = 0; t < volumes.size(); ++t) {
        for (int32_t l = 0; l < 20; ++l) {
          const cluster::LinkNumber link =
              draw(static_cast<int32_t>(std::min<int64_t>(topology.link_count(), 1 << 24)));
          auto& loads = carried[link];
          if (!loads.empty() && loads.back().first == t) continue;
          volumes[t].push_back({.link = link, .parts = 1 + draw(2)});
          loads.emplace_back(t, volumes[t].back().parts);
        }
      }
      // Something else comes between, and they are not in the order in which they were added.
      LinkLoads on_links(topology);
      std::vector<Traffic> traffic(volumes.size());
      for (size_t t = volumes.size(); t-- > 0;) {
        traffic[t] = {.lanes = {static_cast<Lane>(t / 2)}, .number = on_links.Add(volumes[t])};
        on_links.Add(volumes[static_cast<size_t>(draw(4))]);
        if (draw(2) == 0) on_links.Classify({{Traffic{.number = traffic[t].number}}});
      }
      const LinkClasses found = on_links.Classify(traffic);
      std::map<int32_t, int64_t> links;
      for (const auto& [link, loads] : carried) {
        const int32_t of_link = on_links.ClassOf(link, found);
        const LinkClass& row = found.classes[static_cast<size_t>(of_link)];
        if (++links[of_link] == 1) {
          EXPECT_EQ(row.first, link);
        }
        bool shared = false;
        for (const auto& [t, parts] : loads) shared |= t / 2 != loads.front().first / 2;
        EXPECT_EQ(row.shared, shared);
        for (const auto& [other, other_loads] : carried) {
          const bool alike =
              loads == other_loads && topology.LinkAt(link).kind == topology.LinkAt(other).kind;
          EXPECT_EQ(of_link == on_links.ClassOf(other, found), alike);
        }
        for (const auto& carries : loads) {
          const auto& of_traffic = found.by_traffic[carries.first];
          EXPECT_TRUE(std::ranges::any_of(of_traffic, [&, of_link](const ClassParts& load) {
            return load.link_class == of_link && load.parts == carries.second;
          }));
        }
      }
      for (const auto& [of_link, count] : links) {
        EXPECT_EQ(found.classes[static_cast<size_t>(of_link)].links, count);
      }
      EXPECT_EQ(links.size(), found.classes.size());
    }
  }
}

}  // namespace
}  // namespace exchange_store_test_cc
}  // namespace orrery::lowering
