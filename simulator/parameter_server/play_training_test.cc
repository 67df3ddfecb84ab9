#include "simulator/parameter_server/play_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "simulator/jitter/distribution.h"
#include "simulator/parameter_server/arithmetic.h"
#include "simulator/parameter_server/star_test_util.h"

namespace orrery::simulator::parameter_server {
namespace play_training_test_cc {
namespace {

// A line a span, "w0 F1 3-5", in milliseconds.
std::string SpansText(const Training& training, const Outcome& outcome) {
  std::string text;
  const auto at = [](Time time) { return absl::StrCat(time.seconds() * 1e3); };
  for (const Span& span : outcome.spans) {
    const bool computes = span.kind == Span::Kind::kCompute;
    const auto what = static_cast<size_t>(span.what);
    absl::StrAppend(
        &text, "w", span.worker, " step ", span.step, " ",
        computes ? training.segments[what].name
                 : absl::StrCat(span.kind == Span::Kind::kPush   ? "push "
                                : span.kind == Span::Kind::kPull ? "pull "
                                : span.kind == Span::Kind::kSum  ? "sum "
                                                                 : "update ",
                                training.keys[static_cast<size_t>(training.parts[what].key)].name),
        " ", at(span.start), "-", at(span.end), "\n");
  }
  return text;
}

// One worker, one server: layers of 1 ms forward and 2 ms backward, keys that take 3 ms on the
// card. The first layer's parameter comes while the last one's is still under way.
TEST(Play, PushesRunBesideBackwardAndPullsBesideForward) {
  Training training = MakeTraining({.workers = 1, .servers = 1},
                                   {{Milliseconds(1), Milliseconds(2), Bytes(3'000'000)},
                                    {Milliseconds(1), Milliseconds(2), Bytes(3'000'000)}});
  training.steps = 2;
  const absl::StatusOr<Outcome> outcome = Play(training, 2);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(SpansText(training, *outcome),
            "w0 step 0 F0 0-1\n"
            "w0 step 0 F1 1-2\n"
            "w0 step 0 B1 2-4\n"
            "w0 step 0 B0 4-6\n"
            "w0 step 0 push k1 4-7\n"
            "w0 step 0 update k1 7-7\n"
            "w0 step 0 push k0 7-10\n"
            "w0 step 1 pull k1 7-10\n"
            "w0 step 0 update k0 10-10\n"
            "w0 step 1 pull k0 10-13\n"
            "w0 step 1 F0 13-14\n"
            "w0 step 1 F1 14-15\n"
            "w0 step 1 B1 15-17\n"
            "w0 step 1 B0 17-19\n");
}

// The server is slow, and takes 1 ms a sum (3 bytes of 1 MB) and 1 ms an update.
TEST(Play, AServerSumsAndUpdates) {
  Training training = MakeTraining({.workers = 3, .servers = 1, .server_memory = 3'000'000'000},
                                   {{Milliseconds(1), Milliseconds(2), Bytes(1'000'000)}});
  training.steps = 2;
  const absl::StatusOr<Outcome> outcome = Play(training, 1);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(SpansText(training, *outcome),
            "w0 step 0 F0 0-1\n"
            "w1 step 0 F0 0-1\n"
            "w2 step 0 F0 0-1\n"
            "w0 step 0 B0 1-3\n"
            "w1 step 0 B0 1-3\n"
            "w2 step 0 B0 1-3\n"
            "w0 step 0 push k0 3-6\n"
            "w1 step 0 push k0 3-6\n"
            "w2 step 0 push k0 3-6\n"
            "w1 step 0 sum k0 6-7\n"
            "w2 step 0 update k0 7-9\n");
}

// What a worker does not compute it waits, and for one cause or another.
TEST(Play, ComputingAndWaitingAreAllOfTheTime) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 40; ++i) {
    Training training = MakeTraining({.workers = Draw(random, 1, 6),
                                      .servers = Draw(random, 1, 3),
                                      .latency = Duration(1'000'000 * Draw(random, 0, 500)),
                                      .server_memory = 1'000'000'000 * int64_t{Draw(random, 1, 9)}},
                                     RandomLayers(random, 4), Bytes(1'000'000));
    training.policy.sync = static_cast<Sync>(i % 3);
    training.policy.overlap = i % 4 != 0;
    training.policy.backup = i % 3 == 0 ? Draw(random, 0, training.workers - 1) : 0;
    training.disturbances.rank = Spread{FindJitterDistribution("lognormal"), 0.5};
    training.disturbances.seed = random();
    const absl::StatusOr<Outcome> outcome = Play(training);
    ASSERT_TRUE(outcome.ok());
    const auto told = [](const WorkerFigures& worker) {
      return (worker.computing + worker.waiting()).picoseconds();
    };
    const WorkerFigures& last = *std::ranges::max_element(outcome->workers, {}, told);
    EXPECT_EQ(last.computing + last.waiting(), outcome->end - outcome->warm) << "case " << i;
    int64_t steps = 0, lags = 0;
    for (const WorkerFigures& worker : outcome->workers) steps += worker.steps;
    for (const int64_t count : outcome->lags) lags += count;
    EXPECT_EQ(steps, int64_t{training.workers} * training.steps);
    EXPECT_EQ(lags, steps);
  }
}

// A server that holds all up is what workers wait for, and so is a slow worker.
TEST(Play, WaitingIsPutDownToItsCause) {
  const std::vector<Layer> layers = {{Milliseconds(1), Milliseconds(2), Bytes(1'000'000)}};
  const auto share = [](const Training& training, int32_t worker, Cause cause) {
    const absl::StatusOr<Outcome> outcome = Play(training);
    const WorkerFigures& of = outcome->workers[static_cast<size_t>(worker)];
    return of.waits[static_cast<size_t>(cause)].seconds() / of.waiting().seconds();
  };
  const Training slow_server =
      MakeTraining({.workers = 2, .servers = 1, .server_memory = 100'000'000}, layers);
  EXPECT_GT(share(slow_server, 0, Cause::kServer), 0.8);
  Training slow_worker = MakeTraining({.workers = 2, .servers = 1}, layers);
  slow_worker.disturbances.slow = {{.rank = 1, .factor = 10}};
  EXPECT_GT(share(slow_worker, 0, Cause::kOthers), 0.8);
  EXPECT_EQ(share(slow_worker, 1, Cause::kOthers), 0);
  const Training slow_cards =
      MakeTraining({.workers = 2, .servers = 1, .server_card = 10'000'000}, layers);
  EXPECT_NEAR(share(slow_cards, 0, Cause::kPull), 0.5, 0.05);
  EXPECT_NEAR(share(slow_cards, 0, Cause::kPush), 0.5, 0.05);
}

// What forward needs first goes first: with fifo it comes last.
TEST(Play, OrderByNeedIsNoSlowerOnAnIdlePath) {
  std::vector<Layer> layers(8, {Milliseconds(1), Milliseconds(2), Bytes(4'000'000)});
  Training training = MakeTraining({.workers = 4, .servers = 4}, layers, Bytes(500'000));
  const auto rate = [&](Order order) {
    training.policy.order = order;
    return Play(training)->rate();
  };
  EXPECT_GT(rate(Order::kNeed), 1.03 * rate(Order::kFifo));
}

// Ho et al. 2013: a worker's parameters lack at most `bound` steps of any other.
TEST(Play, NoBoundIsExceededInTenThousandRandomRuns) {
  std::mt19937_64 random(7);
  int64_t at_bound = 0;
  for (int i = 0; i < 10'000; ++i) {
    Training training = MakeTraining({.workers = Draw(random, 2, 5),
                                      .servers = Draw(random, 1, 2),
                                      .latency = Duration(1'000'000 * Draw(random, 0, 99))},
                                     RandomLayers(random, Draw(random, 1, 3)));
    training.policy = {.sync = Sync::kStale,
                       .bound = Draw(random, 0, 4),
                       .order = static_cast<Order>(Draw(random, 0, 1)),
                       .overlap = Draw(random, 0, 3) > 0};
    training.disturbances.seed = random();
    training.disturbances.rank = Spread{FindJitterDistribution("exponential"), 1.0};
    training.disturbances.slow = {{.rank = 0, .factor = 1.0 + 0.5 * Draw(random, 0, 8)}};
    training.steps = 8;
    const absl::StatusOr<Outcome> outcome = Play(training);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    ASSERT_LE(outcome->lags.size(), static_cast<size_t>(training.policy.bound) + 1) << "run " << i;
    at_bound += outcome->lags.size() == static_cast<size_t>(training.policy.bound) + 1 ? 1 : 0;
  }
  EXPECT_GT(at_bound, 5'000);  // else nothing was held to it
}

TEST(Play, OfNoBoundWorkersRunAway) {
  Training training = MakeTraining({.workers = 2, .servers = 1},
                                   {{Milliseconds(1), Milliseconds(2), Bytes(1'000)}});
  training.policy.sync = Sync::kAsync;
  training.disturbances.slow = {{.rank = 1, .factor = 4}};
  training.steps = 50;
  const absl::StatusOr<Outcome> outcome = Play(training);
  ASSERT_TRUE(outcome.ok());
  EXPECT_GT(outcome->lags.size(), 40u);
  EXPECT_NEAR(static_cast<double>(outcome->workers[0].steps) /
                  static_cast<double>(outcome->workers[1].steps),
              4, 0.2);
}

// Of W workers that are alike a gradient is W - 1 updates late (Mitliagkas et al. 2016).
TEST(Play, AGradientIsLateByTheUpdatesOfAllOthers) {
  for (const int workers : {1, 2, 5, 9}) {
    Training training = MakeTraining({.workers = workers, .servers = 2},
                                     {{Milliseconds(1), Milliseconds(2), Bytes(1'000)}});
    training.policy.sync = Sync::kAsync;
    training.disturbances.rank = Spread{FindJitterDistribution("lognormal"), 0.1};
    training.steps = 200;
    const absl::StatusOr<Outcome> outcome = Play(training);
    ASSERT_TRUE(outcome.ok());
    EXPECT_NEAR(outcome->mean_delay, workers - 1, 0.03 * workers);
  }
}

TEST(Play, TheSameSeedIsTheSameRunToTheBit) {
  std::mt19937_64 random(8);
  Training training = MakeTraining({.workers = 5, .servers = 3}, RandomLayers(random, 5));
  training.policy.sync = Sync::kAsync;
  training.disturbances.kernel = Spread{FindJitterDistribution("normal"), 0.1};
  training.disturbances.device = Spread{FindJitterDistribution("normal"), 0.1};
  const auto text = [&] {
    const absl::StatusOr<Outcome> outcome = Play(training, 100);
    return SpansText(training, *outcome);
  };
  const std::string once = text();
  EXPECT_EQ(text(), once);
  training.disturbances.seed = 2;
  EXPECT_NE(text(), once);
}

TEST(Play, APauseStopsAWorkerOnce) {
  Training training =
      MakeTraining({.workers = 1, .servers = 1}, {{Milliseconds(1), Milliseconds(1), Bytes(1)}});
  training.disturbances.pauses = Pauses{.length = Milliseconds(5), .every = Milliseconds(100)};
  training.steps = 2000;
  const absl::StatusOr<Outcome> outcome = Play(training);
  ASSERT_TRUE(outcome.ok());
  EXPECT_NEAR(2 * outcome->rate() / 1000, 0.95, 0.002);
}

// What links carry and servers work is what arithmetic says, over the time that it takes.
TEST(Play, UseOfLinksAndServersIsByArithmetic) {
  Training training =
      MakeTraining({.workers = 4, .servers = 2, .server_memory = 2'000'000'000},
                   {{Milliseconds(20), Milliseconds(30), Bytes(8'000'000)}}, Bytes(100'000));
  const absl::StatusOr<Outcome> outcome = Play(training);
  ASSERT_TRUE(outcome.ok());
  const Arithmetic of = ArithmeticOf(training);
  const double step = 4 / outcome->rate();
  EXPECT_NEAR(*std::ranges::max_element(outcome->link_use), of.link_s / step, 0.02);
  EXPECT_NEAR(outcome->server_use[0], of.server_s / step, 0.02);
  EXPECT_NEAR(outcome->server_use[1], outcome->server_use[0], 0.02);
}

// Push and pull pay it once each.
TEST(Play, LatencyIsOfEachMessage) {
  Training training = MakeTraining({.workers = 2, .servers = 1, .latency = Duration(5'000'000'000)},
                                   {{Milliseconds(1), Milliseconds(2), Bytes(1'000'000)}});
  const absl::StatusOr<Outcome> outcome = Play(training);
  ASSERT_TRUE(outcome.ok());
  EXPECT_NEAR(2 / outcome->rate(), 0.001 + 0.002 + 2 * (0.002 + 0.005), 1e-9);
}

// The factors of docs/stragglers.md: of a run of kernels as much of the spread as is left.
TEST(Play, KernelsVaryAsTheyAreTold) {
  const auto deviation = [](double spread_left) {
    Training training =
        MakeTraining({.workers = 1, .servers = 1}, {{Milliseconds(10), Duration(0), Bytes(1)}});
    training.segments[0].spread_left = spread_left;
    training.disturbances.kernel = Spread{FindJitterDistribution("normal"), 0.1};
    training.steps = 4'000;
    const absl::StatusOr<Outcome> outcome = Play(training);
    double mean = 0, squares = 0;
    const auto count = static_cast<double>(outcome->step_times.size());
    for (const Duration time : outcome->step_times) mean += time.seconds() / count;
    for (const Duration time : outcome->step_times) {
      squares += (time.seconds() - mean) * (time.seconds() - mean) / count;
    }
    EXPECT_NEAR(mean, 0.010, 0.0001);
    return std::sqrt(squares) / mean;
  };
  EXPECT_NEAR(deviation(1), 0.1, 0.005);
  EXPECT_NEAR(deviation(0.5), 0.05, 0.003);
}

TEST(Play, BadTrainingsAreErrors) {
  const auto error = [](void (*spoil)(Training&)) {
    Training training = MakeTraining({.workers = 3, .servers = 2},
                                     {{Milliseconds(1), Milliseconds(2), Bytes(1'000)}});
    spoil(training);
    return std::string(Play(training).status().message());
  };
  EXPECT_EQ(error([](Training&) {}), "");
  EXPECT_EQ(error([](Training& t) { t.policy.bound = -1; }), "a bound of -1; wanted 0 or more");
  EXPECT_EQ(error([](Training& t) { t.policy.backup = 3; }),
            "3 backup workers of 3; wanted fewer than there are workers, and not below zero");
  EXPECT_EQ(error([](Training& t) {
              t.policy.sync = Sync::kAsync;
              t.policy.backup = 1;
            }),
            "backup workers without bulk synchronization; wanted it, as nobody else waits");
  EXPECT_EQ(error([](Training& t) { t.segments[0].needs = t.segments[1].needs = {}; }),
            "nobody needs key 0");
  EXPECT_EQ(error([](Training& t) { t.segments[0].completes = {0}; }),
            "key 0 is completed 2 times; wanted 1");
  EXPECT_EQ(error([](Training& t) { t.segments[0].needs = {1}; }), "no key 1 of 1");
  EXPECT_EQ(error([](Training& t) { t.parts[0].server = 2; }), "no server 2 of 2");
  EXPECT_EQ(error([](Training& t) { t.disturbances.slow = {{.rank = 3}}; }), "no worker 3 of 3");
  EXPECT_EQ(error([](Training& t) { t.steps = 0; }), "0 steps; wanted some");
}

}  // namespace
}  // namespace play_training_test_cc
}  // namespace orrery::simulator::parameter_server
