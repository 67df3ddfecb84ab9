#include "lowering/network/transfers.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/pricing_test_util.h"
#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"

// Prices of collectives against a simulation of every transfer as its own flow.

namespace orrery::lowering {
namespace transfers_test_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;
using cost_models::CollectiveAlgorithm;
using cost_models::CollectiveCall;
using cost_models::CollectiveKind;
using cost_models::Rounds;

Topology Make(absl::string_view kind, const cluster::TopologyShape& shape) {
  for (const cluster::TopologyKind* candidate : cluster::AllTopologies()) {
    if (candidate->name == kind) return *Topology::Create(*candidate, shape);
  }
  ADD_FAILURE() << kind;
  return Topology();
}

std::vector<DeviceId> First(int32_t count) {
  std::vector<DeviceId> devices;
  for (int32_t i = 0; i < count; ++i) devices.push_back(DeviceId(i));
  return devices;
}

Duration Simulate(const Topology& topology, const Rounds& rounds, Bytes size) {
  simulator::Program program;
  LinkResources links(topology, program);
  const std::vector<DeviceId> group = First(rounds.ranks);
  EXPECT_TRUE(AddTransfers(group, rounds, size, links).ok());
  EXPECT_EQ(program.Verify(), absl::OkStatus());
  simulator::FluidNetwork network(program);
  const auto trace = simulator::RunEvents(program, network);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? trace->makespan : Duration(0);
}

Duration Price(const Topology& topology, const Rounds& rounds, Bytes size) {
  return cost_models::PriceOn(topology, First(rounds.ranks), rounds, size);
}

// Whether two transfers of one round are of the same pair, or rounds overlap.
bool Shares(const Rounds& rounds) {
  for (const cost_models::Round& round : rounds.rounds) {
    std::set<std::pair<int32_t, int32_t>> pairs;
    if (round.overlaps_next) return true;
    for (const cost_models::Transfer& transfer : round.transfers) {
      if (!pairs.insert({transfer.from, transfer.to}).second) return true;
    }
  }
  return false;
}

// Sizes whose parts are whole, so that nothing is rounded differently.
Bytes WholeSize(const Rounds& rounds) { return Bytes(rounds.parts_a_size * 1000); }

template <typename Check>
void ForAllRounds(Check check) {
  for (const CollectiveAlgorithm* algorithm : cost_models::AllCollectiveAlgorithms()) {
    for (const auto& kind : cost_models::AllCollectiveKinds()) {
      for (const int32_t ranks : {2, 3, 4, 5, 6, 7, 8, 12, 16}) {
        for (const int32_t a_node : {1, 2, 4}) {
          const CollectiveCall call{.kind = kind.kind,
                                    .size = Bytes(100'000),
                                    .ranks = ranks,
                                    .ranks_a_node = a_node,
                                    .hop = {Bandwidth(1'000'000'000), Duration(10'000'000)}};
          if (ranks % a_node != 0 || !algorithm->Supports(call)) continue;
          SCOPED_TRACE(absl::StrCat(algorithm->name, " ", kind.name, " of ", ranks, ", ", a_node,
                                    " a node"));
          check(algorithm->rounds(call));
        }
      }
    }
  }
}

// Where no link is shared, the price is the simulation, picosecond for picosecond.
TEST(Transfers, OnUnsharedLinksTakeThePrice) {
  int equal = 0;
  ForAllRounds([&](const Rounds& rounds) {
    if (Shares(rounds)) return;
    const Topology topology =
        Make("fully_connected",
             {.devices = rounds.ranks, .port = {Bandwidth(1'000'000'007), Duration(1'234'567)}});
    const Bytes size = WholeSize(rounds);
    const Duration price = Price(topology, rounds, size),
                   simulated = Simulate(topology, rounds, size);
    // The price is rounded once, the simulation once a step.
    EXPECT_GE(simulated, price);
    EXPECT_LE(simulated, price + Duration(cost_models::RepetitionCount(rounds)));
    ++equal;
  });
  EXPECT_GT(equal, 100);
}

// With a rate that divides a picosecond evenly nothing is rounded at all.
TEST(Transfers, OnUnsharedLinksTakeThePriceExactly) {
  ForAllRounds([&](const Rounds& rounds) {
    if (Shares(rounds)) return;
    const Topology topology =
        Make("fully_connected",
             {.devices = rounds.ranks, .port = {Bandwidth(1'000'000'000), Duration(1'234'567)}});
    const Bytes size = WholeSize(rounds);
    EXPECT_EQ(Simulate(topology, rounds, size), Price(topology, rounds, size));
  });
}

// A ring whose hops are unlike takes its steps times its slowest hop.
TEST(Transfers, OfARingOverUnlikeHopsTakeThePriceExactly) {
  const Topology topology = Make("nodes", {.devices = 16,
                                           .devices_per_node = 4,
                                           .port = {Bandwidth(10'000'000'000), Duration(1'000'000)},
                                           .nic = {Bandwidth(1'000'000'000), Duration(5'000'000)}});
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const Rounds rounds =
        (*cost_models::FindCollectiveAlgorithm("ring"))->rounds({.kind = kind, .ranks = 16});
    EXPECT_EQ(Simulate(topology, rounds, WholeSize(rounds)),
              Price(topology, rounds, WholeSize(rounds)));
  }
}

// Regression: rings of different lengths went in step, a step of the short ones as long as one of
// the long ones. The price adds up the latencies of rounds that overlap, a little more than it
// takes.
TEST(Transfers, OfRingsOfDifferentLengthsTakeThePrice) {
  const auto* algorithm = *cost_models::FindCollectiveAlgorithm("multidimensional-ring");
  for (const std::vector<int32_t>& sides :
       {std::vector<int32_t>{3, 5}, {7, 3}, {4, 4}, {3, 4, 5}}) {
    std::string box;
    CollectiveCall call{.ranks = 1, .grid = sides};
    for (const int32_t side : sides) {
      call.ranks *= side;
      absl::StrAppend(&box, box.empty() ? "torus:" : "x", side);
    }
    const auto cluster = cluster::ParseCluster(absl::StrCat(box, "@1GB/s,latency=500ns"));
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      call.kind = kind;
      const Rounds rounds = algorithm->rounds(call);
      const Duration price = Price(cluster->topology, rounds, WholeSize(rounds));
      const Duration simulated = Simulate(cluster->topology, rounds, WholeSize(rounds));
      EXPECT_LE(simulated, price) << box;
      EXPECT_GE(simulated.seconds(), price.seconds() * 0.99) << box;
    }
  }
}

// Elsewhere no rank waits longer than the price says: rounds in step are the slowest way.
TEST(Transfers, OnSharedLinksTakeAtMostThePrice) {
  const Topology nodes = Make("nodes", {.devices = 16,
                                        .devices_per_node = 4,
                                        .port = {Bandwidth(10'000'000'000), Duration(1'000'000)},
                                        .nic = {Bandwidth(1'000'000'000), Duration(5'000'000)}});
  ForAllRounds([&](const Rounds& rounds) {
    for (const cost_models::Round& round : rounds.rounds) {
      if (round.overlaps_next) return;
    }
    const Bytes size = WholeSize(rounds);
    const Duration price = Price(nodes, rounds, size), simulated = Simulate(nodes, rounds, size);
    const double most = 1e-6 * price.seconds();
    EXPECT_LE(simulated.seconds(), price.seconds() + most);
  });
}

// ADR 7: of the whole collective as one flow.
TEST(Transfers, AsOneFlowTakeThePrice) {
  ForAllRounds([&](const Rounds& rounds) {
    const Topology topology =
        Make("nodes", {.devices = 16,
                       .devices_per_node = 4,
                       .port = {Bandwidth(10'000'000'000), Duration(1'000'000)},
                       .nic = {Bandwidth(1'000'000'000), Duration(5'000'000)}});
    simulator::Program program;
    LinkResources links(topology, program);
    const std::vector<DeviceId> group = First(rounds.ranks);
    const cost_models::DeviceGroup span = group;
    const Bytes size(123'457);
    const auto flow = cost_models::LoadsOf(topology, std::span(&span, 1), rounds, size);
    std::vector<simulator::Load> loads;
    for (const auto& load : flow.loads) loads.push_back({links.Find(load.link), load.load});
    const auto id = program.AddFlow(
        {.size = flow.size, .rate = flow.rate, .latency = flow.latency, .loads = loads});
    const auto rank = program.AddRank({.name = "all", .members = {0}});
    const auto stream = program.AddStream(rank, simulator::StreamKind::kData);
    program.AddTask(stream, {.flow = id, .label = program.AddLabel({.name = "collective"})});
    ASSERT_TRUE(program.Verify().ok()) << program.Verify();
    simulator::FluidNetwork network(program);
    const Duration price = Price(topology, rounds, size);
    const Duration simulated = simulator::RunEvents(program, network)->makespan;
    EXPECT_LE(simulated, price + Duration(1 + price.picoseconds() / 1'000'000'000));
    EXPECT_GE(simulated, price);
  });
}

TEST(Transfers, AreLimited) {
  const Topology topology = Make("fully_connected", {.devices = 2048, .port = {Bandwidth(1), {}}});
  const Rounds rounds = (*cost_models::FindCollectiveAlgorithm("ring"))->rounds({.ranks = 2048});
  simulator::Program program;
  LinkResources links(topology, program);
  EXPECT_EQ(AddTransfers(First(2048), rounds, Bytes(8), links).message(),
            "got 8384512 transfers to simulate one by one; wanted at most 4194304; try the "
            "collective as one flow, or a smaller group");
}

}  // namespace
}  // namespace transfers_test_cc
}  // namespace orrery::lowering
