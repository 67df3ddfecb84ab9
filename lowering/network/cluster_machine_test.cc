#include "lowering/network/cluster_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "cluster/cluster_file.h"
#include "cost_models/collectives/pricing.h"
#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/time_alone.h"

namespace orrery::lowering {
namespace cluster_machine_test_cc {
namespace {

using simulator::Program;

cluster::Cluster Parse(const std::string& name) {
  absl::StatusOr<cluster::Cluster> cluster = cluster::ParseCluster(name);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *std::move(cluster);
}

absl::StatusOr<Duration> Play(const std::string& text, const cluster::Cluster& cluster) {
  const auto kinds = ClusterMachine::Collectives();
  const auto ranks = simulator::ParseRankPrograms("rank-programs\n" + text, kinds);
  if (!ranks.ok()) return ranks.status();
  Program program;
  ClusterMachine machine(cluster, program);
  const absl::Status joined = Join(*ranks, machine, program);
  if (!joined.ok()) return joined;
  simulator::FluidNetwork network(program);
  const auto trace = simulator::RunEvents(program, network);
  if (!trace.ok()) return trace.status();
  return trace->makespan;
}

TEST(ClusterMachine, ACollectiveAloneTakesItsPrice) {
  const cluster::Cluster cluster = Parse("dgx-h100:2");
  for (const absl::string_view kind : ClusterMachine::Collectives()) {
    for (const int64_t size : {0, 1, 70'001, 1 << 26}) {
      std::vector<cluster::DeviceId> group;
      for (int32_t device = 0; device < 12; ++device) group.emplace_back(device);
      const Duration price = cost_models::FastestTime(
          {.kind = *cost_models::FindCollectiveKind(kind), .size = Bytes(size), .group = group},
          cluster.topology);
      EXPECT_EQ(*Play(absl::StrCat("communicator c 0-11\nrank 0-11\n", kind, " c ", size), cluster),
                price)
          << kind << size;
    }
  }
}

TEST(ClusterMachine, AMessageTakesItsPath) {
  const cluster::Cluster cluster = Parse("dgx-a100:2");
  const cluster::PathInfo path = cluster.topology.Path(cluster::DeviceId(1), cluster::DeviceId(9));
  EXPECT_EQ(*Play("rank 1\nsend to 9 1000000\nrank 9\nreceive from 1 1000000", cluster),
            path.latency + TransferTime(Bytes(1000000), path.rate));
}

// One size, and paths of three speeds: within the node, and across, from and to either.
TEST(ClusterMachine, MessagesOfOneSizeTakeTheirOwnPaths) {
  const cluster::Cluster cluster = Parse("dgx-a100:2");
  constexpr int32_t kPairs[][2] = {{1, 9}, {1, 2}, {8, 9}, {9, 1}};
  std::map<int32_t, std::string> steps;
  Duration sum;
  for (const auto& [from, to] : kPairs) {
    absl::StrAppend(&steps[from], "send to ", to, " 1000000\n");
    absl::StrAppend(&steps[to], "receive from ", from, " 1000000\n");
    const cluster::PathInfo path =
        cluster.topology.Path(cluster::DeviceId(from), cluster::DeviceId(to));
    if (from != 8) sum += path.latency + TransferTime(Bytes(1000000), path.rate);
  }
  std::string text;
  for (const auto& [rank, lines] : steps) absl::StrAppend(&text, "rank ", rank, "\n", lines);
  // Rank 1 takes part in all but one, which is short and done while it sends to 2.
  EXPECT_EQ(*Play(text, cluster), sum);
}

TEST(ClusterMachine, CommunicatorsThatShareLinksSlowEachOther) {
  const cluster::Cluster cluster = Parse("dgx-a100:1,ideal-collectives");
  const std::string left = "communicator left 0-3\nrank 0-3\nall-reduce left 256MiB on data\n";
  const std::string right = "communicator right 4-7\nrank 4-7\nall-reduce right 256MiB on data\n";
  const std::string again = "communicator again 0-3\nrank 0-3\nall-reduce again 256MiB on side\n";
  const double alone = Play(left, cluster)->seconds();
  EXPECT_EQ(Play(left + right, cluster)->seconds(), alone);
  EXPECT_NEAR(Play(left + again, cluster)->seconds(), 2 * alone, 0.02 * alone);
}

TEST(ClusterMachine, ComputeSlowsDownAsTheDeviceSays) {
  cluster::Cluster cluster = Parse("dgx-a100:1");
  const std::string text =
      "communicator all 0-7\nrank 0-7\ncompute 50ms\nall-reduce all 1GiB on data\n";
  const Duration reduce = *Play("communicator all 0-7\nrank 0-7\nall-reduce all 1GiB", cluster);
  EXPECT_EQ(*Play(text, cluster), Duration(50'000'000'000));
  cluster.device.communication_slowdown = 0.5;
  const Duration lost((reduce.picoseconds() + 1) / 2);
  EXPECT_EQ(*Play(text, cluster), Duration(50'000'000'000) + lost);
}

// Links can be faster one way than the other.
TEST(ClusterMachine, AMessageTakesThePathFromSenderToReceiver) {
  const cluster::Cluster cluster =
      cluster::ParseClusterText(
          "devices { kind: \"a100-80gb\" count: 2 }\n"
          "topology { kind: \"graph\" graph { links { between: [\"device0\", \"device1\"] "
          "rate: \"10GB/s\" back_rate: \"1GB/s\" } } }\n",
          cluster::ClusterFormat::kText, "unlike.textproto")
          .value();
  const auto time = [&](int from, int to) {
    return *Play(absl::StrCat("rank ", from, "\nsend to ", to, " 1000000\nrank ", to,
                              "\nreceive from ", from, " 1000000"),
                 cluster);
  };
  EXPECT_EQ(time(0, 1), Duration(100'000'000));
  EXPECT_EQ(time(1, 0), Duration(1'000'000'000));
}

// The second device is of another kind, with less memory, and slows down more.
TEST(ClusterMachine, EachRankIsAsItsDevice) {
  const cluster::Cluster cluster =
      cluster::ParseClusterText(
          "device_kinds { name: \"a\" like: \"a100-80gb\" communication_slowdown: 0.25 }\n"
          "device_kinds { name: \"b\" like: \"a100-40gb\" communication_slowdown: 0.5 }\n"
          "devices { kind: \"a\" count: 1 }\ndevices { kind: \"b\" count: 1 }\n"
          "topology { kind: \"switch\" port { rate: \"50GB/s\" } }\n",
          cluster::ClusterFormat::kText, "mixed.textproto")
          .value();
  Program program;
  ClusterMachine machine(cluster, program);
  EXPECT_EQ(machine.RankOf(0)->communication_slowdown, 0.25);
  EXPECT_EQ(machine.RankOf(1)->communication_slowdown, 0.5);
  EXPECT_EQ(machine.RankOf(0)->capacity, cluster.kind(0).memory);
  EXPECT_EQ(machine.RankOf(1)->capacity, cluster.kind(1).memory);
  EXPECT_GT(machine.RankOf(0)->capacity, machine.RankOf(1)->capacity);
}

TEST(ClusterMachine, AnAlgorithmCanBeChosenByHand) {
  const cluster::Cluster cluster = Parse("switch:8@50GB/s");
  const auto by_hand = cost_models::CollectiveChoice::Parse("all-reduce=tree").value();
  Program program;
  ClusterMachine tree(cluster, program, by_hand), any(cluster, program);
  const std::vector<int32_t> ranks = {0, 1, 2, 3, 4, 5, 6, 7};
  const simulator::Call call = {.kind = "all-reduce", .size = Bytes(1 << 26), .ranks = ranks};
  const auto time = [&](ClusterMachine& machine) {
    return simulator::TimeAlone(program.flow(machine.TimeOf(call)->flow), program);
  };
  EXPECT_GT(time(tree), time(any));
}

TEST(ClusterMachine, SaysWhichRankHasNoDevice) {
  EXPECT_EQ(Play("rank 8\ncompute 1us", Parse("dgx-a100:1")).status().message(),
            "rank 8: dgx-a100:1 has 8 devices; wanted ranks 0 to 7");
}

}  // namespace
}  // namespace cluster_machine_test_cc
}  // namespace orrery::lowering
