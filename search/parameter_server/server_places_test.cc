#include "search/parameter_server/server_places.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simulator/parameter_server/arithmetic.h"
#include "simulator/parameter_server/balance.h"

namespace orrery::search {
namespace server_places_test_cc {
namespace {

namespace ps = simulator::parameter_server;
using Kind = ServerPlace::Kind;

cluster::Cluster Parsed(const std::string& spec) { return cluster::ParseCluster(spec).value(); }

// "device0 -> switch0 (port), switch0 -> device2 (port)"
std::string LinksOf(const ps::Training& training, const ps::Route& route) {
  std::string text;
  for (const simulator::Load& load : route.loads) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", training.network.resource(load.resource).name);
  }
  return text;
}

ps::Training Placed(const std::string& cluster, const PlaceQuestion& question) {
  ps::Training training;
  const absl::Status status = PlaceServers(Parsed(cluster), question, training);
  EXPECT_TRUE(status.ok()) << status;
  return training;
}

std::string ErrorOf(const std::string& cluster, const PlaceQuestion& question) {
  ps::Training training;
  return std::string(PlaceServers(Parsed(cluster), question, training).message());
}

TEST(PlaceServers, OnHostsBehindTheWorkers) {
  const ps::Training training =
      Placed("switch:4@25gbe", {.workers = 3, .servers = 1, .place = Kind::kHosts});
  EXPECT_EQ(LinksOf(training, training.push[2]),
            "device2 -> switch0 (port), switch0 -> device3 (port)");
  EXPECT_EQ(LinksOf(training, training.pull[2]),
            "device3 -> switch0 (port), switch0 -> device2 (port)");
  // Two links each way of each worker and of the server, which all share.
  EXPECT_EQ(training.network.resource_count(), 8);
  EXPECT_GT(training.rates[0], Bandwidth(0));
}

// Each worker of a host of four comes to another card of the server's host.
TEST(PlaceServers, AllCardsOfAHostServe) {
  const ps::Training training = Placed("nodes:3x4@300GB/s,nic=25GB/s,device=a100-80gb",
                                       {.workers = 8, .servers = 1, .place = Kind::kHosts});
  for (int32_t w = 0; w < 8; ++w) {
    const std::string links = LinksOf(training, training.push[static_cast<size_t>(w)]);
    EXPECT_NE(links.find(absl::StrCat("device", 8 + w % 4, " (nic)")), std::string::npos) << links;
  }
  EXPECT_EQ(training.rates[0],
            Bandwidth(4 * Parsed("dgx-a100:1").device.host_memory_bandwidth.bytes_per_second()));
}

TEST(PlaceServers, OnDevicesOfTheirOwnAndWithWorkers) {
  const std::string cluster = "nodes:2x4@300GB/s,nic=25GB/s,device=a100-80gb";
  const ps::Training devices =
      Placed(cluster, {.workers = 6, .servers = 2, .place = Kind::kDevices});
  EXPECT_EQ(LinksOf(devices, devices.push[5 * 2]),
            "device5 -> switch1 (port), switch1 -> device6 (port)");
  EXPECT_EQ(devices.rates[1], Parsed(cluster).device.memory_bandwidth);
  const ps::Training workers =
      Placed(cluster, {.workers = 8, .servers = 2, .place = Kind::kWorkers});
  EXPECT_EQ(LinksOf(workers, workers.push[1 * 2]), "device1 -> its host");
  EXPECT_EQ(LinksOf(workers, workers.pull[1 * 2]), "host -> device1");
  EXPECT_NE(LinksOf(workers, workers.push[1 * 2 + 1]).find("device5 (nic)"), std::string::npos);
}

// Those with the workers come first.
TEST(PlaceServers, MixedAreOnHostsOfWorkersAndBehindThem) {
  const std::string cluster = "nodes:4x4@300GB/s,nic=25GB/s,device=a100-80gb";
  const PlaceQuestion question = {.workers = 8, .servers = 2, .place = Kind::kMixed};
  EXPECT_EQ(ServersWithWorkers(Parsed(cluster), question), 2);
  const ps::Training training = Placed(cluster, question);
  EXPECT_EQ(training.servers, 4);
  EXPECT_EQ(training.rates.size(), 4u);
  EXPECT_EQ(LinksOf(training, training.push[5 * 4 + 1]), "device5 -> its host");
  EXPECT_NE(LinksOf(training, training.push[5 * 4]).find("device1 (nic)"), std::string::npos);
  EXPECT_NE(LinksOf(training, training.push[5 * 4 + 2]).find("device9 (nic)"), std::string::npos);
  EXPECT_NE(LinksOf(training, training.pull[5 * 4 + 3]).find("device13 -> "), std::string::npos);
  EXPECT_EQ(ServersWithWorkers(Parsed(cluster), {.workers = 8, .servers = 2}), 0);
}

TEST(PlaceServers, WorkersThatAddUpAreLinked) {
  const std::string cluster = "nodes:3x4@300GB/s,nic=25GB/s,device=a100-80gb";
  const ps::Training training = Placed(cluster, {.workers = 6, .servers = 1, .adds_up = true});
  EXPECT_EQ(training.adding.lanes, 4);
  ASSERT_EQ(training.adding.routes.size(), 24u);
  EXPECT_EQ(LinksOf(training, training.adding.routes[5 * 4]),
            "device5 -> switch1 (port), switch1 -> device4 (port)");
  EXPECT_TRUE(training.adding.routes[5 * 4 + 1].loads.empty());  // itself
  EXPECT_TRUE(training.adding.routes[5 * 4 + 2].loads.empty());  // nobody
  EXPECT_EQ(Placed("switch:4@25gbe", {.workers = 3, .servers = 1, .adds_up = true}).adding.lanes,
            1);
}

// Of 6 hosts of 4 workers that add up, and 3 more: BytePS's shares of 6 and 3, 2n(n - 1)/(n² + kn -
// 2k) of what a card of each host carries.
TEST(PlaceServers, MixedWithSumsOfHostsAreBytePSsOfHosts) {
  ps::Training training =
      Placed("nodes:9x4@300GB/s,nic=10GB/s,device=a100-80gb", {.workers = 24,
                                                               .servers = 3,
                                                               .place = Kind::kMixed,
                                                               .rate = Bandwidth(1'000'000'000'000),
                                                               .adds_up = true});
  training.keys = {{.gradient = Bytes(400'000'000), .parameter = Bytes(400'000'000)}};
  ps::BalanceShares(6, training);
  const double divisor = 36 + 18 - 6;
  EXPECT_NEAR(training.shares.front(), 3 / divisor, 1e-9);
  EXPECT_NEAR(training.shares.back(), 10 / divisor, 1e-9);
  training.segments = {{.needs = {0}, .completes = {0}}};
  training.parts = ps::SpreadKeys(training, Bytes(100'000));
  EXPECT_NEAR(ps::ArithmeticOf(training).link_s, 60 / divisor * 100e6 / 10e9, 1e-4);
}

TEST(PlaceServers, ARateThatIsGivenHolds) {
  const ps::Training training =
      Placed("switch:2@25gbe", {.workers = 1, .servers = 1, .rate = Bandwidth(7)});
  EXPECT_EQ(training.rates[0], Bandwidth(7));
  // Of a device of one's own nobody knows its host.
  cluster::Cluster unknown = Parsed("switch:2@25gbe");
  unknown.device.host_memory_bandwidth = Bandwidth(0);
  EXPECT_TRUE(AssumesHostMemory(unknown, {}));
  EXPECT_FALSE(AssumesHostMemory(unknown, {.rate = Bandwidth(7)}));
  EXPECT_FALSE(AssumesHostMemory(unknown, {.place = Kind::kDevices}));
  EXPECT_FALSE(AssumesHostMemory(Parsed("dgx-h100:2"), {}));
  ps::Training assumed;
  ASSERT_TRUE(PlaceServers(unknown, {.workers = 1, .servers = 1}, assumed).ok());
  EXPECT_EQ(assumed.rates[0], kAssumedHostMemory);
}

TEST(PlaceServers, MoreServersThanThereIsRoomForAreErrors) {
  EXPECT_EQ(ErrorOf("switch:10@25gbe", {.workers = 8, .servers = 3}),
            "--servers 3: of 10 hosts workers have 8, which leaves 2; wanted at most 2, a larger "
            "--cluster, or --server-place workers");
  EXPECT_EQ(ErrorOf("dgx-h100:2", {.workers = 9, .servers = 1}),
            "--servers 1: of 2 hosts workers have 2, which leaves 0; wanted at most 0, a larger "
            "--cluster, or --server-place workers");
  EXPECT_EQ(ErrorOf("dgx-h100:2", {.workers = 9, .servers = 8, .place = Kind::kDevices}),
            "--servers 8: of 16 devices workers have 9; wanted at most 7, a larger --cluster, or "
            "--server-place workers");
  EXPECT_EQ(ErrorOf("dgx-h100:2", {.workers = 8, .servers = 2, .place = Kind::kWorkers}),
            "--servers 2: workers are on 1 host; wanted at most 1, one on each, or --server-place "
            "hosts");
  EXPECT_EQ(ErrorOf("switch:200000@25gbe", {.workers = 100'000, .servers = 50}),
            "--servers 50: with 100000 workers more than 4000000 connections; wanted at most 40, "
            "or fewer workers");
  EXPECT_EQ(ErrorOf("dgx-h100:2", {.workers = 8, .servers = 2, .place = Kind::kMixed}),
            "--servers 2: of 2 hosts workers have 1, which leaves 1; wanted at most 1, a larger "
            "--cluster, or --server-place workers");
  EXPECT_EQ(ErrorOf("dgx-h100:2", {.workers = 17, .servers = 1}),
            "--dp 17: the cluster has 16 devices, and a worker is one");
}

}  // namespace
}  // namespace server_places_test_cc
}  // namespace orrery::search
