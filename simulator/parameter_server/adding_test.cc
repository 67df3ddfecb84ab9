#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/parameter_server/arithmetic.h"
#include "simulator/parameter_server/hosts.h"
#include "simulator/parameter_server/play_training.h"
#include "simulator/parameter_server/star_test_util.h"

// Workers that add up on their hosts before they push.

namespace orrery::simulator::parameter_server {
namespace adding_test_cc {
namespace {

// Hosts of workers, each with a card to the network and a port to the others of its host; servers
// on hosts with as many cards, the i-th for the i-th of each host.
struct Site {
  int32_t workers = 4;
  int32_t lanes = 2;
  int32_t servers = 1;
  int64_t card = 1'000'000'000;
  int64_t port = 100'000'000'000;
  int64_t server_memory = 0;
  bool adds = true;
};

std::pair<ResourceId, ResourceId> Port(const std::string& name, int64_t rate, Training& training) {
  const auto one = [&](absl::string_view way) {
    return training.network.AddResource(
        {.name = absl::StrCat(name, way), .kind = "nic", .capacity = Bandwidth(rate)});
  };
  const ResourceId out = one(" out");
  return {out, one(" in")};
}

Training At(const Site& site, const std::vector<Layer>& layers, Bytes most) {
  // The kernels are those of one worker of a star.
  Training training = MakeTraining({.workers = 1, .servers = 1}, layers);
  training.network = Program();
  training.push.clear();
  training.pull.clear();
  training.workers = site.workers;
  training.servers = site.servers;
  training.rates.assign(static_cast<size_t>(site.servers), Bandwidth(site.server_memory));
  std::vector<std::pair<ResourceId, ResourceId>> cards, ports, servers;  // out, in
  for (int32_t w = 0; w < site.workers; ++w) {
    cards.push_back(Port(absl::StrCat("card ", w), site.card, training));
    ports.push_back(Port(absl::StrCat("port ", w), site.port, training));
  }
  for (int32_t s = 0; s < site.servers * site.lanes; ++s) {
    servers.push_back(Port(absl::StrCat("server's ", s), site.card, training));
  }
  for (int32_t w = 0; w < site.workers; ++w) {
    const auto& card = cards[static_cast<size_t>(w)];
    for (int32_t s = 0; s < site.servers; ++s) {
      const int32_t place = s * site.lanes + w % site.lanes;
      const auto& other = servers[static_cast<size_t>(place)];
      training.push.push_back({.loads = {{card.first, 1}, {other.second, 1}}});
      training.pull.push_back({.loads = {{other.first, 1}, {card.second, 1}}});
    }
    for (int32_t i = 0; i < site.lanes && site.adds && site.lanes > 1; ++i) {
      Route& route = training.adding.routes.emplace_back();
      const int32_t to = w / site.lanes * site.lanes + i;
      if (to == w || to >= site.workers) continue;
      route.loads = {{ports[static_cast<size_t>(w)].first, 1},
                     {ports[static_cast<size_t>(to)].second, 1}};
    }
  }
  if (site.adds) training.adding.lanes = site.lanes;
  training.parts = SpreadKeys(training, most);
  training.steps = 4;
  return training;
}

Outcome Played(const Training& training, int32_t traced = 0) {
  absl::StatusOr<Outcome> outcome = Play(training, traced);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return *std::move(outcome);
}

double StepOf(const Training& training) { return training.workers / Played(training).rate(); }

Site RandomSite(std::mt19937_64& random, bool full) {
  const int32_t lanes = Draw(random, 2, 5), hosts = Draw(random, full ? 2 : 1, 5);
  return {.workers = lanes * hosts - (full ? 0 : Draw(random, 0, lanes - 1)),
          .lanes = lanes,
          .servers = Draw(random, 1, 3)};
}

// H hosts push and pull M bytes each through the L cards of S servers: C + 2·M·H/(S·L·B), and L
// times as much sent if each worker pushes by itself.
TEST(Adding, TakesHostsInPlaceOfWorkers) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    Site site = RandomSite(random, true);
    site.servers = std::min(site.servers, site.workers / site.lanes);
    const std::vector<Layer> layers = RandomLayers(random, Draw(random, 1, 6));
    const Bytes most(static_cast<int64_t>(AllBytes(At(site, layers, Bytes(0)))) /
                     (60 * site.servers * site.lanes));
    Training training = At(site, layers, most);
    training.policy.overlap = false;
    const int32_t hosts = site.workers / site.lanes;
    const double sent = AllBytes(training) * hosts / (site.servers * site.lanes * 1e9);
    const double paper = ComputeSeconds(training) + 2 * sent;
    const Arithmetic of = ArithmeticOf(training);
    EXPECT_NEAR(of.push_s / sent, 1, 0.03) << "case " << i;
    EXPECT_NEAR(of.pull_s / sent, 1, 0.03) << "case " << i;
    const double step = StepOf(training);
    EXPECT_NEAR(step / paper, 1, 0.05) << "case " << i;
    EXPECT_GE(step * (1 + 1e-9), paper) << "case " << i;
    site.adds = false;
    training = At(site, layers, most);
    training.policy.overlap = false;
    EXPECT_NEAR(StepOf(training) / (ComputeSeconds(training) + 2 * site.lanes * sent), 1, 0.05)
        << "case " << i;
  }
}

// A server adds up one gradient a host, and where its memory is the limit, that is the step.
TEST(Adding, LeavesServersOneGradientAHost) {
  const std::vector<Layer> layers = {{.bytes = Bytes(60'000'000)}};
  const Training training =
      At({.workers = 12, .lanes = 4, .server_memory = 5'000'000'000}, layers, Bytes(200'000));
  const Arithmetic of = ArithmeticOf(training);
  // Two of three are added, and the last updates: 3 + 3 + 1 + 2.
  EXPECT_NEAR(of.server_s, 60e6 * (3 * 2 + 3) / 5e9, 1e-4);
  EXPECT_NEAR(StepOf(training) / of.server_s, 1, 0.05);
}

// Links within hosts that are slow are what is waited for, and what arithmetic says: each worker
// sends and gets (L - 1)/L of all each way.
TEST(Adding, LoadsTheLinksOfHosts) {
  const std::vector<Layer> layers = {{.bytes = Bytes(80'000'000)}};
  const Training training =
      At({.workers = 8, .lanes = 4, .card = 100'000'000'000, .port = 1'000'000'000}, layers,
         Bytes(200'000));
  const Arithmetic of = ArithmeticOf(training);
  EXPECT_NEAR(of.push_s, 0.06, 1e-3);
  EXPECT_NEAR(of.link_s, 0.12, 2e-3);
  EXPECT_NEAR(StepOf(training) / of.link_s, 1, 0.05);
}

TEST(Adding, IsNeverBelowItsBoundsNorAboveTheirSum) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 40; ++i) {
    Site site = RandomSite(random, false);
    site.card = int64_t{100'000'000} * Draw(random, 1, 20);
    site.port = int64_t{100'000'000} * Draw(random, 1, 200);
    site.server_memory = int64_t{1'000'000'000} * Draw(random, 0, 9);
    Training training =
        At(site, RandomLayers(random, Draw(random, 1, 8)), Bytes(100'000 * Draw(random, 0, 20)));
    training.steps = 6;
    const double step = StepOf(training);
    EXPECT_GE(step * (1 + 1e-9), ArithmeticOf(training).least_s()) << "case " << i;
    training.policy.overlap = false;
    EXPECT_LE(step, StepOf(training) * (1 + 1e-9)) << "case " << i;
  }
}

using Of = std::tuple<int32_t, int32_t, int32_t>;  // step, worker or host, part

// Each message once, and none before what it is made of: a host pushes when all its workers have
// sent their gradients, servers update when all hosts have, workers have what was pulled.
TEST(Adding, PushesOncePerHostWhatAllItsWorkersMade) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    const Site site = RandomSite(random, false);
    Training training =
        At(site, RandomLayers(random, Draw(random, 1, 5)), Bytes(500'000 * Draw(random, 0, 4)));
    training.disturbances.slow = {{.rank = 0, .factor = 1.4}};
    training.policy.overlap = i % 3 != 0;
    const Outcome outcome = Played(training, 2);
    const Hosts hosts(training);
    std::map<Span::Kind, std::map<Of, std::vector<Span>>> spans;  // by host
    for (const Span& span : outcome.spans) {
      const int32_t host = span.kind == Span::Kind::kUpdate ? 0 : hosts.FirstOf(span.worker);
      spans[span.kind][{span.step, host, span.what}].push_back(span);
    }
    for (const auto& [of, pushes] : spans[Span::Kind::kPush]) {
      const auto& [step, host, part] = of;
      ASSERT_EQ(pushes.size(), 1u);
      const auto size = static_cast<size_t>(hosts.SizeOf(host));
      const auto& added = spans[Span::Kind::kAddUp][of];
      EXPECT_EQ(added.size(), size - 1);
      for (const Span& each : added) EXPECT_LE(each.end, pushes[0].start);
      EXPECT_EQ(pushes[0].worker,
                hosts.AgentOf(host, training.parts[static_cast<size_t>(part)].lane));
      if (step > 0) continue;
      const auto& pulls = spans[Span::Kind::kPull][{1, host, part}];
      const auto& updates = spans[Span::Kind::kUpdate][{0, 0, part}];
      const auto& spreads = spans[Span::Kind::kSpread][{1, host, part}];
      ASSERT_EQ(pulls.size(), 1u);
      ASSERT_EQ(updates.size(), 1u);
      EXPECT_LE(pushes[0].end, updates[0].start);
      EXPECT_LE(updates[0].end, pulls[0].start);
      EXPECT_EQ(spreads.size(), size - 1);
      for (const Span& each : spreads) EXPECT_LE(pulls[0].end, each.start);
    }
    EXPECT_EQ(spans[Span::Kind::kPush].size(),
              2 * training.parts.size() * static_cast<size_t>(hosts.count()));
  }
}

TEST(Adding, WaitsAndKernelsAreAllOfTheTime) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20; ++i) {
    Training training = At(RandomSite(random, false), RandomLayers(random, 3), Bytes(500'000));
    training.disturbances.slow = {{.rank = 0, .factor = 1.4}};
    training.policy.overlap = i % 2 == 0;
    training.steps = 8;
    const Outcome outcome = Played(training);
    Duration most(0);
    for (const WorkerFigures& worker : outcome.workers) {
      most = std::max(most, worker.computing + worker.waiting());
    }
    EXPECT_EQ(most, outcome.end - outcome.warm) << "case " << i;
  }
}

TEST(Adding, IsOfBulkUpdatesAlone) {
  Training training = At({}, {{.bytes = Bytes(1'000)}}, Bytes(0));
  ASSERT_TRUE(Check(training).ok());
  training.policy.sync = Sync::kAsync;
  EXPECT_EQ(Check(training).message(),
            "workers of a host that add up; wanted bulk synchronization without backup workers");
  training.policy = {.backup = 1};
  EXPECT_FALSE(Check(training).ok());
  training.policy = {};
  training.parts[0].lane = 2;
  EXPECT_EQ(Check(training).message(), "no lane 2 of 2");
  training.parts[0].lane = 0;
  training.adding.routes.pop_back();
  EXPECT_EQ(Check(training).message(), "7 routes within hosts; wanted 8");
}

}  // namespace
}  // namespace adding_test_cc
}  // namespace orrery::simulator::parameter_server
