#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/routes.h"
#include "lowering/network/transfers.h"
#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/program_text.h"
#include "simulator/testing/independent_flows.h"

// Every algorithm on clusters as --cluster names them: what is sent, and when it has arrived.

namespace orrery::lowering {
namespace transfers_property_test_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;
using cost_models::Round;
using cost_models::Rounds;
using cost_models::RoundsCost;
using cost_models::Transfer;

// One collective on one cluster, a group of all its devices.
struct Case {
  const Topology& topology;
  const std::vector<DeviceId>& group;
  const Rounds& rounds;
};

template <typename Check>
void ForAllCollectives(const Topology& topology, Check check) {
  std::vector<DeviceId> group;
  for (int32_t i = 0; i < topology.devices(); ++i) group.push_back(DeviceId(i));
  for (const auto& kind : cost_models::AllCollectiveKinds()) {
    const auto call = cost_models::MakeCall({kind.kind, Bytes(100'000), group}, topology);
    for (const auto* algorithm : cost_models::AllCollectiveAlgorithms()) {
      if (!algorithm->Supports(call)) continue;
      SCOPED_TRACE(absl::StrCat(kind.name, " by ", algorithm->name));
      const Rounds rounds = algorithm->rounds(call);
      check(Case{topology, group, rounds});
    }
  }
}

// At 1 GB/s a byte takes 1000 ps: nothing is rounded.
template <typename Check>
void ForAllCases(Check check) {
  const std::pair<absl::string_view, absl::string_view> clusters[] = {
      {"uniform", "@8Gbps"},
      {"switch", "@1GB/s,latency=500ns"},
      {"switch", "@1GB/s,latency=500ns,reduces"},
      {"ring", "@1GB/s,latency=500ns"},
      {"ring", "@1GB/s,latency=500ns,one-way"}};
  for (const auto& [name, options] : clusters) {
    for (int32_t ranks = 2; ranks <= 9; ++ranks) {
      const std::string spec = absl::StrCat(name, ":", ranks, options);
      SCOPED_TRACE(spec);
      const auto cluster = cluster::ParseCluster(spec);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      ForAllCollectives(cluster->topology, check);
    }
  }
}

simulator::Program ProgramOf(const Case& each, Bytes size) {
  simulator::Program program;
  LinkResources links(each.topology, program);
  EXPECT_EQ(AddTransfers(each.group, each.rounds, size, links), absl::OkStatus());
  return program;
}

simulator::Trace Play(const simulator::Program& program, simulator::NetworkModel& network) {
  const auto trace = simulator::RunEvents(program, network);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *trace : simulator::Trace();
}

simulator::Trace PlayFluid(const simulator::Program& program) {
  simulator::FluidNetwork network(program);
  return Play(program, network);
}

// Sizes whose parts are whole, so that nothing is rounded differently.
Bytes WholeSize(const Rounds& rounds) { return Bytes(rounds.parts_a_size * 1000); }

// By size, how many messages the rounds send when parts are of whole bytes, rounded up.
std::map<int64_t, int64_t> MessagesOf(const Rounds& rounds, Bytes size) {
  std::map<int64_t, int64_t> messages;
  for (const Round& round : rounds.rounds) {
    for (const Transfer& transfer : round.transfers) {
      const int64_t bytes =
          (size.count() * transfer.parts + rounds.parts_a_size - 1) / rounds.parts_a_size;
      const int64_t times = cost_models::ActiveRepetitions(transfer, round, rounds.parts);
      if (times > 0) messages[bytes] += times;
    }
  }
  return messages;
}

std::map<int64_t, int64_t> MessagesOf(const simulator::Program& program) {
  std::map<int64_t, int64_t> messages;
  for (const simulator::FlowId flow : program.task_flows()) {
    if (flow.valid()) ++messages[program.flow(flow).size.count()];
  }
  return messages;
}

TEST(TransfersProperty, AreAllThatTheRoundsSend) {
  int64_t cases = 0;
  ForAllCases([&](const Case& each) {
    for (const Bytes size : {Bytes(1), Bytes(1009), WholeSize(each.rounds)}) {
      const simulator::Program program = ProgramOf(each, size);
      EXPECT_EQ(program.Verify(), absl::OkStatus());
      EXPECT_EQ(MessagesOf(program), MessagesOf(each.rounds, size));
    }
    ++cases;
  });
  EXPECT_GT(cases, 500);
}

// Bytes that cross each link, by its name.
using Wire = std::map<std::string, int64_t>;

Wire WireOf(const simulator::Program& program) {
  Wire wire;
  for (const simulator::FlowId id : program.task_flows()) {
    if (!id.valid()) continue;
    const simulator::Flow flow = program.flow(id);
    for (const simulator::Load& load : flow.loads) {
      wire[program.resource(load.resource).name] += flow.size.count();
    }
  }
  return wire;
}

RoundsCost CostOf(const Case& each) {
  const cost_models::DeviceGroup group = each.group;
  return cost_models::CostOf(each.topology, std::span(&group, 1), each.rounds);
}

// The bytes on each link are those that the price counts, and none arrives before the busiest link
// has carried its own.
TEST(TransfersProperty, LoadLinksAsThePriceSaysAndNeverFasterThanTheyCarry) {
  ForAllCases([](const Case& each) {
    const Bytes size = WholeSize(each.rounds);
    const simulator::Program program = ProgramOf(each, size);
    const RoundsCost cost = CostOf(each);
    Wire priced;
    for (const auto& volume : cost.volumes) {
      priced[each.topology.LinkName(volume.link)] += volume.parts * 1000;
    }
    EXPECT_EQ(WireOf(program), priced);
    const Duration simulated = PlayFluid(program).makespan;
    EXPECT_GE(simulated, cost_models::BusiestLinkOf(cost, size).busy);
    for (const auto& [link, bytes] : priced) {
      EXPECT_GE(simulated, TransferTime(Bytes(bytes), Bandwidth(1'000'000'000))) << link;
    }
  });
}

// Whether no two transfers of a round cross one link, and all of a round are alike.
bool InStep(const Case& each) {
  for (const Round& round : each.rounds.rounds) {
    if (round.overlaps_next) return false;
    std::set<cluster::LinkNumber> taken;
    std::set<std::pair<size_t, int64_t>> alike;
    for (const Transfer& transfer : round.transfers) {
      std::vector<cluster::LinkNumber> route;
      cost_models::AppendTransferRoute(each.topology, each.group, each.rounds.ranks_a_node,
                                       transfer, route);
      alike.insert({route.size(), transfer.parts});
      for (const auto link : route) {
        if (!taken.insert(link).second) return false;
      }
    }
    if (alike.size() > 1) return false;
  }
  return true;
}

TEST(TransfersProperty, TakeThePriceWhereNoLinkIsShared) {
  std::map<std::string, int> equal;
  ForAllCases([&](const Case& each) {
    if (!InStep(each)) return;
    const Bytes size = WholeSize(each.rounds);
    EXPECT_EQ(PlayFluid(ProgramOf(each, size)).makespan, cost_models::TimeOf(CostOf(each), size));
    ++equal[std::string(each.topology.kind().name)];
  });
  EXPECT_EQ(equal.size(), 3);
  for (const auto& [name, count] : equal) EXPECT_GT(count, 50) << name;
}

// To share can only delay, every one of the transfers.
TEST(TransfersProperty, AreNeverSlowerAloneThanShared) {
  int64_t delayed = 0;
  ForAllCases([&](const Case& each) {
    const simulator::Program program = ProgramOf(each, Bytes(10'007));
    simulator::IndependentFlows alone(program);
    const simulator::Trace first = Play(program, alone), shared = PlayFluid(program);
    ASSERT_EQ(first.finish.size(), shared.finish.size());
    for (size_t i = 0; i < first.finish.size(); ++i) {
      EXPECT_LE(first.finish[i], shared.finish[i]) << "task " << i;
    }
    delayed += first.makespan < shared.makespan ? 1 : 0;
  });
  EXPECT_GT(delayed, 50);
}

TEST(TransfersProperty, AreTheSameEveryTime) {
  ForAllCases([](const Case& each) {
    const simulator::Program first = ProgramOf(each, Bytes(10'007)),
                             second = ProgramOf(each, Bytes(10'007));
    EXPECT_EQ(simulator::Print(first), simulator::Print(second));
    EXPECT_TRUE(PlayFluid(first) == PlayFluid(second));
  });
}

}  // namespace
}  // namespace transfers_property_test_cc
}  // namespace orrery::lowering
