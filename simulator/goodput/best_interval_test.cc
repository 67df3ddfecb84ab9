#include "simulator/goodput/best_interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "simulator/goodput/draws.h"
#include "support/sanitized_test_util.h"

namespace orrery::simulator::goodput {
namespace best_interval_test_cc {
namespace {

// The maximum of DalyEfficiency, by looking everywhere.
double BestOfDaly(double cost_s, double restart_s, double mtbf_s) {
  double best_s = 1, best = 0;
  for (double interval_s = 1; interval_s < 3 * mtbf_s; interval_s *= 1.001) {
    const double share = DalyEfficiency(interval_s, cost_s, restart_s, mtbf_s);
    if (share > best) {
      best = share;
      best_s = interval_s;
    }
  }
  return best_s;
}

TEST(BestInterval, FormulasAreThoseOfYoungAndDaly) {
  // Daly 2006, figures 3 to 5: 5 minutes a checkpoint; 117, 57 and 9.1 minutes between them.
  EXPECT_NEAR(DalyInterval(300, 24 * 3600) / 60, 117, 0.5);
  EXPECT_NEAR(DalyInterval(300, 6 * 3600) / 60, 57, 0.5);
  EXPECT_NEAR(DalyInterval(300, 900) / 60, 9.1, 0.1);
  EXPECT_EQ(DalyInterval(2000, 900), 900);
  EXPECT_DOUBLE_EQ(YoungInterval(50, 10'000), 1000);
}

// Where failures are Poisson's and checkpoints are waited for, what is found is what they say.
TEST(BestInterval, AgreesWithDalyWhereItsAssumptionsHold) {
  for (uint64_t seed = 0; seed < CasesToWalk(8u); ++seed) {
    Draws draws(seed, 0, 9);
    const double mtbf_s = 3600 * (0.5 + 20 * draws.Uniform());
    const double cost_s = mtbf_s * std::pow(10, -1 - 2.5 * draws.Uniform());
    const double restart_s = 600 * draws.Uniform();
    const RunSpec spec{.job = {.hosts = 4},
                       .length_s = 1000 * mtbf_s,
                       .step_s = cost_s / 20,
                       .failures = {{&AllComponents()[0], 32 * mtbf_s}},
                       .tiers = {{.name = "pfs", .every_steps = 1, .stall_s = cost_s}},
                       .recovery = {.restart = {restart_s, restart_s}}};
    const BestInterval best = FindBestInterval(spec, 0, {.seed = seed, .threads = 2});
    const double wanted_s = BestOfDaly(cost_s, restart_s, mtbf_s);
    EXPECT_NEAR(best.seconds / wanted_s, 1, 0.1) << seed;
    EXPECT_NEAR(DalyInterval(cost_s, mtbf_s) / wanted_s, 1, 0.1) << seed;
    // What it costs not to have hit it is nothing.
    EXPECT_GT(DalyEfficiency(best.seconds, cost_s, restart_s, mtbf_s),
              DalyEfficiency(wanted_s, cost_s, restart_s, mtbf_s) - 5e-4);
  }
}

TEST(BestInterval, KeepsToWhatCanBeWritten) {
  const RunSpec spec{.job = {.hosts = 4},
                     .length_s = 1e6,
                     .step_s = 10,
                     .failures = {{&AllComponents()[0], 32 * 3600}},
                     .tiers = {{.name = "pfs", .every_steps = 1, .write_s = 605}}};
  const BestInterval best = FindBestInterval(spec, 0, {.threads = 2});
  EXPECT_EQ(best.steps, 61);
}

TEST(BestInterval, IsTheWholeRunWhereNothingFails) {
  const RunSpec spec{.job = {.hosts = 4},
                     .length_s = 1e6,
                     .step_s = 10,
                     .tiers = {{.name = "pfs", .every_steps = 1, .stall_s = 5}}};
  EXPECT_EQ(FindBestInterval(spec, 0, {.threads = 2}).steps, 100'000);
}

}  // namespace
}  // namespace best_interval_test_cc
}  // namespace orrery::simulator::goodput
