#include "transforms/redistribution/dtensor_price.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "transforms/redistribution/dtensor_test_util.h"

namespace orrery::transforms::redistribution {
namespace dtensor_price_test_cc {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;

DtensorTopology TopologyOf(const nlohmann::json& golden) {
  return DtensorTopology(MeshOf(golden["mesh"].get<std::vector<int64_t>>()),
                         golden["devices_per_host"]);
}

TEST(DtensorTopology, IsThatOfTheGoldens) {
  for (const auto& golden : DtensorGolden()["topologies"]) {
    const DtensorTopology topology = TopologyOf(golden);
    ASSERT_EQ(static_cast<size_t>(topology.axes()), golden["mesh"].size());
    for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(topology.axes()); ++axis) {
      EXPECT_THAT(topology.ring(axis).bandwidth,
                  DoubleEq(golden["bandwidth_gbps"][axis].get<double>()));
      EXPECT_EQ(topology.ring(axis).latency, golden["latency_us"][axis]) << golden;
      EXPECT_EQ(topology.ring(axis).ranks, golden["mesh"][axis]) << golden;
    }
  }
}

TEST(DtensorTopology, AFlatRingHasAllRanksAndTheSlowestLink) {
  const DtensorTopology topology(MeshOf({2, 4, 8}), 8);
  const DtensorRing within = topology.Flat(0b100), across = topology.Flat(0b101);
  EXPECT_EQ(within.ranks, 8);
  EXPECT_EQ(within.latency, 0.6);
  EXPECT_EQ(across.ranks, 16);
  EXPECT_EQ(across.latency, 2.7);
  EXPECT_EQ(across.bandwidth, topology.ring(0).bandwidth);
}

TEST(DtensorPrices, AreTheGoldens) {
  for (const auto& golden : DtensorGolden()["primitives"]) {
    const DtensorTopology topology = TopologyOf(golden);
    const DtensorRing& ring = topology.ring(golden["mesh_dim"].get<ir::AxisIndex>());
    const double bytes = golden["bytes"];
    EXPECT_THAT(DtensorAllGather(ring, bytes).total(),
                DoubleNear(golden["allgather_us"].get<double>(), 1e-9));
    EXPECT_THAT(DtensorAllGather(ring, bytes).total(),
                DoubleNear(golden["reduce_scatter_us"].get<double>(), 1e-9));
    EXPECT_THAT(DtensorAllReduce(ring, bytes).total(),
                DoubleNear(golden["allreduce_us"].get<double>(), 1e-9));
  }
}

TEST(DtensorPrices, HaveTheirParts) {
  const DtensorRing ring = {.ranks = 4, .bandwidth = 2, .latency = 3};
  const StepCost cost = DtensorAllToAll(ring, 1 << 20, 1);
  EXPECT_EQ(cost.launches, 6.6);
  EXPECT_EQ(cost.latency, 9);
  EXPECT_THAT(cost.transfer, DoubleEq(1e6 * 0.75 / 1024 / 2));
  EXPECT_EQ(cost.copy, 1);
}

// The orders of an all-reduce over axis 0, a reduce-scatter over axis 1 and an all-reduce over axis
// 2, and what remains when the two all-reduces are one flat ring.
TEST(DtensorPrices, OfTheOrdersOfThreeReductions) {
  const DtensorTopology topology(MeshOf({2, 4, 8}), 8);
  const auto& golden = DtensorGolden()["hsdp_ppp_to_rsr"]["bytes"];
  for (const auto& [name, size] : {std::pair{"1MiB", 1 << 20}, {"256MiB", 1 << 28}}) {
    const DtensorPrices prices(topology, size, 1, false);
    for (const auto& [order, cost] : golden[name].items()) {
      if (order[0] == 'g' && order != "greedy_012") continue;  // planned ones
      double found = 0;
      if (order[0] == 'r') {
        found = prices.scatter(0b010, 0) + prices.reduce(0b101, 0b010);
      } else {
        AxisMask splitting = 0;
        for (const char axis : order.substr(order.size() - 3)) {
          const AxisMask bit = 1u << (axis - '0');
          found += bit == 0b010 ? prices.scatter(bit, 0) : prices.reduce(bit, splitting);
          if (bit == 0b010) splitting = bit;
        }
      }
      EXPECT_THAT(found, DoubleNear(cost.get<double>(), 5e-4)) << name << " " << order;
    }
  }
}

TEST(DtensorPrices, OfStagesHaveALaunchEach) {
  const DtensorTopology topology(MeshOf({2, 8}), 8);
  const DtensorPrices prices(topology, 1 << 25, 1, true);
  // Reduce-scatter within the host, all-reduce between hosts, all-gather within.
  EXPECT_THAT(prices.reduce(0b11, 0), DoubleNear(859.6, 0.05));
  EXPECT_THAT(prices.reduce(0b11, 0),
              DoubleEq(2 * prices.scatter(0b10, 0) + prices.reduce(0b01, 0b10)));
  EXPECT_THAT(prices.ReduceCost(0b11, 0).launches, DoubleEq(3 * kDtensorLaunch));
  // A flat ring is less where latency is all.
  const DtensorPrices small(DtensorTopology(MeshOf({2, 2}), 8), 64, 1, true);
  EXPECT_THAT(small.ReduceCost(0b11, 0).launches, DoubleEq(kDtensorLaunch));
}

class MergedPrices : public testing::TestWithParam<int> {};

// What must hold of any sensible price, on random meshes and sizes.
TEST_P(MergedPrices, AreSensible) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  std::vector<int64_t> sizes;
  for (int i = 0; i < 4; ++i) sizes.push_back(1 + static_cast<int64_t>(random() % 8));
  const DtensorTopology topology(MeshOf(sizes), 1 + static_cast<int64_t>(random() % 16));
  const double bytes = std::exp2(static_cast<double>(random() % 30));
  const DtensorPrices prices(topology, bytes, 1, true), larger(topology, 1.5 * bytes, 1, true);
  for (AxisMask axes = 1; axes < 16; ++axes) {
    for (AxisMask splitting = 0; splitting < 16; ++splitting) {
      if ((axes & splitting) != 0) continue;
      const double scatter = prices.scatter(axes, splitting);
      const double reduce = prices.reduce(axes, splitting);
      EXPECT_GE(reduce, scatter);
      EXPECT_LE(scatter, larger.scatter(axes, splitting));
      EXPECT_LE(reduce, larger.reduce(axes, splitting));
      EXPECT_THAT(prices.ScatterCost(axes, splitting).total(), DoubleNear(scatter, 1e-9 * scatter));
      EXPECT_THAT(prices.ReduceCost(axes, splitting).total(), DoubleNear(reduce, 1e-9 * reduce));
      const DtensorRing flat = topology.Flat(axes);
      EXPECT_LE(scatter, DtensorAllGather(flat, prices.bytes(splitting)).total());
      // No faster than all that a rank must send over the fastest link, nor than a launch.
      const auto ranks = static_cast<double>(flat.ranks);
      const double wire = prices.bytes(splitting) * (ranks - 1) / ranks / (87.7 * (1 << 30)) * 1e6;
      EXPECT_GE(scatter * (1 + 1e-12), kDtensorLaunch + wire);
      EXPECT_GE(reduce * (1 + 1e-12), kDtensorLaunch + 2 * wire);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, MergedPrices, testing::Range(0, 20));

}  // namespace
}  // namespace dtensor_price_test_cc
}  // namespace orrery::transforms::redistribution
