#include "simulator/parameter_server/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/parameter_server/arithmetic.h"
#include "simulator/parameter_server/play_training.h"
#include "simulator/parameter_server/star_test_util.h"

namespace orrery::simulator::parameter_server {
namespace balance_test_cc {
namespace {

// Seconds from one step of a worker to its next.
double StepOf(const Training& training) {
  const absl::StatusOr<Outcome> outcome = Play(training);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return training.workers / outcome->rate();
}

// n workers with a server each, and k servers by themselves; or one kind alone.
struct Counts {
  int n = 2;
  int k = 1;

  // BytePS's: n² + kn - 2k.
  double divisor() const { return n * n + k * n - 2 * k; }
  std::string text() const { return absl::StrCat(n, " workers, ", k, " hosts"); }
};

Training Mixed(Star star, const Counts& counts, const std::vector<Layer>& layers, Bytes most) {
  star.workers = counts.n;
  star.servers = counts.n + counts.k;
  star.colocated = true;
  Training training = MakeTraining(star, layers, most);
  BalanceShares(counts.n, training);
  training.parts = SpreadKeys(training.keys, training.shares, most);
  training.steps = 4;
  return training;
}

std::vector<Layer> AllBytesAndNoKernels(std::mt19937_64& random) {
  std::vector<Layer> layers(static_cast<size_t>(Draw(random, 1, 5)));
  for (Layer& layer : layers) layer.bytes = Bytes(Draw(random, 5'000'000, 60'000'000));
  return layers;
}

TEST(BalanceShares, AreBytePSs) {
  for (int n = 2; n <= 12; ++n) {
    for (int k = 1; k <= 16; ++k) {
      const Counts counts = {.n = n, .k = k};
      const Training training = Mixed({}, counts, {{.bytes = Bytes(123'456'789)}}, Bytes(10'000));
      const double beside = k >= n ? 0 : (n - k) / counts.divisor();
      EXPECT_NEAR(training.shares.front(), beside, 1e-9) << counts.text();
      EXPECT_NEAR(training.shares.back(), (1 - n * beside) / k, 1e-9) << counts.text();
      if (k < n) {
        EXPECT_NEAR(training.shares.back(), 2 * (n - 1) / counts.divisor(), 1e-9);
      }
    }
  }
}

// All that the servers beside workers do not carry for the only worker would be sent for nothing.
TEST(BalanceShares, OneWorkerKeepsAllBesideIt) {
  const Training training = Mixed({}, {.n = 1, .k = 3}, {{.bytes = Bytes(1'000'000)}}, Bytes(1000));
  EXPECT_DOUBLE_EQ(training.shares.front(), 1);
  for (const Part& part : training.parts) EXPECT_EQ(part.server, 0);
}

// Whatever cards and memories there are: no other share makes the fullest less full.
TEST(BalanceShares, NoOtherShareIsBetter) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const Counts counts = {.n = Draw(random, 1, 9), .k = Draw(random, 1, 9)};
    const Star star = {.worker_card = int64_t{100'000'000} * Draw(random, 1, 20),
                       .server_card = int64_t{100'000'000} * Draw(random, 1, 20),
                       .server_memory = int64_t{1'000'000'000} * Draw(random, 0, 20)};
    Training training = Mixed(star, counts, {{.bytes = Bytes(50'000'000)}}, Bytes(20'000));
    const auto fullest = [&](double beside) {
      std::fill(training.shares.begin(), training.shares.begin() + counts.n, beside / counts.n);
      std::fill(training.shares.begin() + counts.n, training.shares.end(), (1 - beside) / counts.k);
      training.parts = SpreadKeys(training.keys, training.shares, Bytes(20'000));
      return std::ranges::max(BusySeconds(training, training.parts));
    };
    const double chosen = training.shares.front() * counts.n, least = fullest(chosen);
    for (int step = 0; step <= 20; ++step) {
      EXPECT_GE(fullest(step / 20.0), least * 0.99) << "case " << i << ", " << step / 20.0;
    }
  }
}

// A step in which nothing is computed is that of the paper: 2n(n - 1)/(n² + kn - 2k) · M/B, but for
// parts; so it is by arithmetic, and neither servers on hosts nor with workers alone are faster.
TEST(MixedServers, MeetBytePSsOptimum) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 30; ++i) {
    Counts counts = {.n = Draw(random, 2, 12)};
    counts.k = Draw(random, 1, counts.n);
    const std::vector<Layer> layers = AllBytesAndNoKernels(random);
    const int64_t card = int64_t{100'000'000} * Draw(random, 2, 30);
    const Star star = {.worker_card = card, .server_card = card};
    double bytes = 0;
    for (const Layer& layer : layers) bytes += static_cast<double>(layer.bytes.count());
    const Bytes most(static_cast<int64_t>(bytes / 2000));
    const Training training = Mixed(star, counts, layers, most);
    const double paper =
        2 * counts.n * (counts.n - 1) / counts.divisor() * bytes / static_cast<double>(card);
    EXPECT_NEAR(ArithmeticOf(training).least_s() / paper, 1, 0.02) << i << ": " << counts.text();
    const double step = StepOf(training);
    EXPECT_GE(step, paper * (1 - 1e-9)) << i << ": " << counts.text();
    EXPECT_LE(step, paper * 1.02) << i << ": " << counts.text();
    for (const bool colocated : {false, true}) {
      Star pure = star;
      pure.workers = counts.n;
      pure.servers = colocated ? counts.n : counts.k;
      pure.colocated = colocated;
      Training other = MakeTraining(pure, layers, most);
      other.steps = 4;
      EXPECT_LE(step, StepOf(other) * 1.04) << i << ": " << counts.text() << ", " << colocated;
    }
  }
}

// Nobody waits for others: what servers' cards carry is the limit, and is reached.
TEST(MixedServers, AsyncOnesAreAsFastAsTheirCards) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20; ++i) {
    Counts counts = {.n = Draw(random, 2, 8)};
    counts.k = Draw(random, 1, counts.n);
    std::vector<Layer> layers = AllBytesAndNoKernels(random);
    for (Layer& layer : layers) layer.forward = Milliseconds(1e-3);
    Training training = Mixed({}, counts, layers, Bytes(100'000));
    training.policy.sync = Sync::kAsync;
    training.steps = 12;
    const absl::StatusOr<Outcome> outcome = Play(training);
    ASSERT_TRUE(outcome.ok());
    const double most = ArithmeticOf(training).most_rate;
    EXPECT_LE(outcome->rate(), most * 1.02) << i << ": " << counts.text();
    EXPECT_GE(outcome->rate(), most * 0.9) << i << ": " << counts.text();
  }
}

}  // namespace
}  // namespace balance_test_cc
}  // namespace orrery::simulator::parameter_server
