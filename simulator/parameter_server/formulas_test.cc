#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "simulator/jitter/distribution.h"
#include "simulator/parameter_server/arithmetic.h"
#include "simulator/parameter_server/play_training.h"
#include "simulator/parameter_server/star_test_util.h"

// What is played beside what is written down on paper (docs/parameter_servers.md), over random
// sizes.

namespace orrery::simulator::parameter_server {
namespace formulas_test_cc {
namespace {

Outcome Played(const Training& training) {
  absl::StatusOr<Outcome> outcome = Play(training);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return *std::move(outcome);
}

// Seconds from one step of a worker to its next, of bulk synchronous ones.
double StepOf(const Training& training) { return training.workers / Played(training).rate(); }

constexpr int kCases = 40;

// Of a worker of `training` by itself, so much slower than the others, on the network of `one`.
double RateOfOne(const Training& training, Training one, double factor, int32_t steps) {
  one.segments = training.segments;
  one.keys = training.keys;
  one.parts = training.parts;
  one.policy = training.policy;
  one.steps = steps;
  one.disturbances.slow = {{.rank = 0, .factor = factor}};
  return Played(one).rate();
}

TEST(BulkStep, IsComputeAndTwiceTheBytesWhereServersAreTheLimit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < kCases; ++i) {
    const int servers = Draw(random, 1, 8), workers = servers + Draw(random, 0, 16);
    Training training = MakeTraining({.workers = workers, .servers = servers},
                                     RandomLayers(random, Draw(random, 1, 8)));
    // Small parts are spread evenly.
    const Bytes most(static_cast<int64_t>(AllBytes(training)) / (60 * servers));
    training.parts = SpreadKeys(training.keys, servers, most);
    training.policy.overlap = false;
    training.steps = 4;
    const double compute = ComputeSeconds(training);
    const double sent = 2 * AllBytes(training) * workers / (servers * 1e9);
    const double step = StepOf(training);
    EXPECT_NEAR(step / (compute + sent), 1, 0.02) << "case " << i;
    EXPECT_GE(step * (1 + 1e-9), compute + sent) << "case " << i;
    // What the others push meanwhile, a slow one does not wait for.
    const double slow = 1 + 0.1 * Draw(random, 1, 10);
    training.disturbances.slow = {{.rank = Draw(random, 0, workers - 1), .factor = slow}};
    const double slowed = StepOf(training);
    EXPECT_GE(slowed * (1 + 1e-9), compute + sent) << "case " << i;
    EXPECT_LE(slowed, (slow * compute + sent) * 1.02) << "case " << i;
    if (workers == 1) {
      EXPECT_NEAR(slowed / (slow * compute + sent), 1, 0.02) << "case " << i;
    }
  }
}

TEST(BulkStep, IsNeverBelowItsBoundsNorAboveTheirSum) {
  std::mt19937_64 random(2);
  for (int i = 0; i < kCases; ++i) {
    const Star star = {.workers = Draw(random, 1, 12),
                       .servers = Draw(random, 1, 6),
                       .worker_card = 100'000'000 * Draw(random, 1, 20),
                       .server_card = 100'000'000 * Draw(random, 1, 20)};
    Training training = MakeTraining(star, RandomLayers(random, Draw(random, 1, 10)),
                                     Bytes(100'000 * Draw(random, 0, 20)));
    training.policy.order = i % 2 == 0 ? Order::kNeed : Order::kFifo;
    training.steps = 8;
    const double servers =
        FullestServer(training) * star.workers / static_cast<double>(star.server_card);
    const double workers = AllBytes(training) / static_cast<double>(star.worker_card);
    const double compute = ComputeSeconds(training);
    const double step = StepOf(training);
    EXPECT_GE(step * (1 + 1e-9), std::max({compute, servers, workers})) << "case " << i;
    // Each connection may be slowed down by what other connections do at both of its ends.
    EXPECT_LE(step, (compute + 2 * (servers + workers)) * (1 + 1e-9)) << "case " << i;
    training.policy.overlap = false;
    EXPECT_LE(step, StepOf(training) * (1 + 1e-9)) << "case " << i;
    // Workers that are slower or faster in all steps are in the bounds.
    const int32_t rank = Draw(random, 0, star.workers - 1);
    training.disturbances.slow = {{.rank = rank, .factor = 0.3 * Draw(random, 1, 10)}};
    EXPECT_GE(StepOf(training) * (1 + 1e-9), ArithmeticOf(training).least_s()) << "case " << i;
  }
}

TEST(BulkStep, IsNoLongerWithMoreBandwidth) {
  std::mt19937_64 random(8);
  for (int i = 0; i < kCases / 2; ++i) {
    Star star = {.workers = Draw(random, 1, 8), .servers = Draw(random, 1, 4)};
    const std::vector<Layer> layers = RandomLayers(random, Draw(random, 1, 6));
    double before = 1e300;
    for (const int64_t megabytes : {50, 100, 300, 1000, 5000}) {
      star.worker_card = star.server_card = megabytes * 1'000'000;
      Training training = MakeTraining(star, layers, Bytes(500'000));
      training.steps = 6;
      const double step = StepOf(training);
      EXPECT_LE(step, before * (1 + 1e-9)) << "case " << i << ", " << megabytes << " MB/s";
      before = step;
    }
  }
}

TEST(AsyncRate, IsTheSumOfTheWorkersUntilServersSaturate) {
  std::mt19937_64 random(3);
  for (int i = 0; i < kCases; ++i) {
    const int workers = Draw(random, 1, 10), servers = Draw(random, 1, 4);
    const Star star = {.workers = workers, .servers = servers, .worker_card = 250'000'000};
    Training training =
        MakeTraining(star, RandomLayers(random, Draw(random, 1, 8)), Bytes(1'000'000));
    training.policy.sync = Sync::kAsync;
    training.steps = 30;
    double alone = 0;
    for (int w = 0; w < workers; ++w) {
      const double factor = 1 + 0.05 * Draw(random, 0, 30);
      training.disturbances.slow.push_back({.rank = w, .factor = factor});
      Training one = MakeTraining({.workers = 1, .servers = servers, .worker_card = 250'000'000},
                                  {}, Bytes(1'000'000));
      alone += RateOfOne(training, std::move(one), factor, 30);
    }
    const double saturated = 1e9 / FullestServer(training);
    const double rate = Played(training).rate();
    EXPECT_LE(rate, alone * 1.005) << "case " << i;
    EXPECT_LE(rate, saturated * 1.02) << "case " << i;
    if (alone < 0.5 * saturated) {
      EXPECT_NEAR(rate / alone, 1, 0.1) << "case " << i;
    }
    if (alone > 3 * saturated) {
      EXPECT_NEAR(rate / saturated, 1, 0.02) << "case " << i;
    }
  }
}

// Where no card is ever shared, nobody is slower beside others than alone.
TEST(AsyncRate, IsTheSumOfTheWorkersWhereNothingIsShared) {
  std::mt19937_64 random(10);
  for (int i = 0; i < 20; ++i) {
    const int workers = Draw(random, 2, 8);
    Training training =
        MakeTraining({.workers = workers, .servers = 2, .server_card = 1'000'000'000LL * workers},
                     RandomLayers(random, 3), Bytes(1'000'000));
    training.policy.sync = Sync::kAsync;
    training.steps = 40;
    double sum = 0;
    for (int w = 0; w < workers; ++w) {
      const double factor = 1 + 0.1 * Draw(random, 0, 20);
      training.disturbances.slow.push_back({.rank = w, .factor = factor});
      Training one =
          MakeTraining({.workers = 1, .servers = 2, .server_card = 1'000'000'000LL * workers}, {});
      sum += RateOfOne(training, std::move(one), factor, 40);
    }
    EXPECT_NEAR(Played(training).rate() / sum, 1, 1e-3) << "case " << i;
  }
}

// Servers that are slower than their cards: all update for each gradient, none adds any up.
TEST(AsyncRate, IsThatOfServersWhereTheyAreTheLimit) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 20; ++i) {
    Training training = MakeTraining({.workers = Draw(random, 4, 8),
                                      .servers = Draw(random, 1, 2),
                                      .server_memory = 200'000'000},
                                     RandomLayers(random, Draw(random, 2, 5)), Bytes(500'000));
    training.policy.sync = Sync::kAsync;
    const Arithmetic of = ArithmeticOf(training);
    EXPECT_EQ(of.least_s(), of.server_s);
    EXPECT_NEAR(Played(training).rate() / of.most_rate, 1, 0.03) << "case " << i;
  }
}

// A case with workers that are unlike, and vary.
Training Unlike(std::mt19937_64& random) {
  Training training = MakeTraining({.workers = Draw(random, 2, 8),
                                    .servers = Draw(random, 1, 3),
                                    .latency = Duration(1'000'000 * Draw(random, 0, 50))},
                                   RandomLayers(random, Draw(random, 1, 6)), Bytes(1'000'000));
  training.disturbances.seed = random();
  training.disturbances.rank = Spread{FindJitterDistribution("lognormal"), 0.3};
  training.disturbances.slow = {{.rank = 0, .factor = 1.5}};
  training.steps = 25;
  return training;
}

TEST(StaleRate, IsBulkAtBoundZeroAndAsyncWithoutBound) {
  std::mt19937_64 random(4);
  for (int i = 0; i < kCases; ++i) {
    Training training = Unlike(random);
    const Outcome bulk = Played(training);
    training.policy.sync = Sync::kAsync;
    const Outcome async = Played(training);
    training.policy.sync = Sync::kStale;
    const Outcome zero = Played(training);
    EXPECT_EQ(zero.step_times, bulk.step_times) << "case " << i;
    training.policy.bound = 1'000'000;
    const Outcome any = Played(training);
    EXPECT_EQ(any.step_times, async.step_times) << "case " << i;
  }
}

// What is measured begins later with some bounds: so many steps that it says little which are.
TEST(StaleRate, LiesBetweenBulkAndAsync) {
  std::mt19937_64 random(4);
  std::map<int32_t, double> gain;  // by bound, of all cases: the logarithm over the bound before
  constexpr int kFewer = kCases / 2;
  for (int i = 0; i < kFewer; ++i) {
    Training training = Unlike(random);
    training.steps = 100;
    const double bulk = Played(training).rate();
    double before = bulk;
    training.policy.sync = Sync::kAsync;
    const double async = Played(training).rate();
    training.policy.sync = Sync::kStale;
    for (const int32_t bound : {1, 3, 10}) {
      training.policy.bound = bound;
      const double rate = Played(training).rate();
      EXPECT_GE(rate, bulk * 0.97) << "case " << i << ", bound " << bound;
      // More freedom may cost a case a little: workers fall into step, and meet at the cards.
      EXPECT_GE(rate, before * 0.93) << "case " << i << ", bound " << bound;
      gain[bound] += std::log(rate / before);
      EXPECT_LE(rate, async * 1.03) << "case " << i << ", bound " << bound;
      before = rate;
    }
  }
  double all = 0;
  for (const auto& [bound, sum] : gain) {
    EXPECT_GE(sum, -0.005 * kFewer) << "bound " << bound;  // on average, but for noise
    all += sum;
  }
  EXPECT_GT(all, 0);
}

// What workers get ahead by until the bound holds them up is no rate that lasts.
TEST(StaleRate, IsThatOfTheSlowestInTheLongRun) {
  std::mt19937_64 random(7);
  for (int i = 0; i < kCases; ++i) {
    Training training = MakeTraining({.workers = Draw(random, 2, 8), .servers = 4},
                                     RandomLayers(random, Draw(random, 1, 6)), Bytes(1'000'000));
    const double slow = 1.2 + 0.1 * Draw(random, 0, 8);
    training.disturbances.slow = {{.rank = 0, .factor = slow}};
    training.policy.sync = Sync::kStale;
    training.policy.bound = Draw(random, 1, 3);
    training.steps = 25;
    const Outcome outcome = Played(training);
    const double most = training.workers / (slow * ComputeSeconds(training));
    EXPECT_LE(outcome.rate(), most * 1.02) << "case " << i;
    // It is measured for as many steps as without a bound.
    int64_t measured = 0;
    for (const WorkerFigures& worker : outcome.workers) measured += worker.steps;
    EXPECT_GE(measured, int64_t{training.workers} * training.steps) << "case " << i;
    EXPECT_LE(measured, int64_t{training.workers} * 45) << "case " << i;
  }
}

// With W = S on the hosts of the workers each card carries (W - 1)/W of the gradients as a
// worker's and as a server's: what a ring's all-reduce takes. With W servers by themselves it
// carries all once: up to twice as fast (Jiang et al., "A Unified Architecture for Accelerating
// Distributed DNN Training in Heterogeneous GPU/CPU Clusters", OSDI 2020, section 4).
TEST(Placement, AsManyServersAsWorkersMeetBytePSsOptimum) {
  std::mt19937_64 random(5);
  for (const int workers : {2, 3, 4, 8, 16}) {
    for (const bool colocated : {false, true}) {
      std::vector<Layer> layers(4);
      for (Layer& layer : layers) layer.bytes = Bytes(25'000'000);
      Training training = MakeTraining(
          {.workers = workers, .servers = workers, .colocated = colocated}, layers, Bytes(50'000));
      const double bytes = AllBytes(training) / 1e9;
      const double ring = 2 * bytes * (workers - 1) / workers;
      EXPECT_NEAR(StepOf(training) / (colocated ? ring : bytes), 1, 0.03)
          << workers << " workers, " << colocated;
    }
  }
}

TEST(Backup, ASlowWorkerIsNotWaitedFor) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 20; ++i) {
    const int workers = Draw(random, 3, 8), late = Draw(random, 1, 2);
    Training training = MakeTraining({.workers = workers,
                                      .servers = 2,
                                      .worker_card = 40'000'000'000,
                                      .server_card = 40'000'000'000},
                                     RandomLayers(random, 5), Bytes(1'000'000));
    training.steps = 20;
    training.policy.backup = 0;
    for (int w = 0; w < late; ++w) {
      training.disturbances.slow.push_back({.rank = w, .factor = 3});
    }
    const double waited = StepOf(training);
    training.policy.backup = late;
    const Outcome backed = Played(training);
    EXPECT_LT(1 / backed.workers.back().rate, 0.6 * waited) << "case " << i;
    EXPECT_NEAR(backed.dropped, backed.workers[0].rate * late / backed.rate(), 0.1);
    // What was not dropped are the gradients of the updates.
    EXPECT_NEAR(backed.update_rate * (workers - late) / (backed.rate() * (1 - backed.dropped)), 1,
                0.1);
    EXPECT_GT(backed.workers[0].skipped, 0);
    EXPECT_EQ(backed.workers.back().skipped, 0);
  }
}

// All are late now and then, and skip steps: updates are faster than any worker.
TEST(Backup, UpdatesAreThoseOfTheFastestOfEachStep) {
  Training training = MakeTraining({.workers = 8, .servers = 2, .server_card = 8'000'000'000},
                                   {{Milliseconds(5), Milliseconds(10), Bytes(1'000'000)}});
  training.policy.backup = 5;
  training.steps = 400;
  training.disturbances.rank = Spread{FindJitterDistribution("exponential"), 1.0};
  const Outcome outcome = Played(training);
  EXPECT_NEAR(outcome.update_rate * 3 / (outcome.rate() * (1 - outcome.dropped)), 1, 0.03);
  for (const WorkerFigures& worker : outcome.workers) {
    EXPECT_LT(worker.rate, 0.99 * outcome.update_rate);
  }
}

}  // namespace
}  // namespace formulas_test_cc
}  // namespace orrery::simulator::parameter_server
