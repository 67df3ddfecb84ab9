#include "simulator/goodput/checkpoint_cycle.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "simulator/goodput/draws.h"
#include "support/sanitized_test_util.h"

namespace orrery::simulator::goodput {
namespace checkpoint_cycle_test_cc {
namespace {

// The same by walking from step to step.
struct Walk {
  CheckpointCycle::Position position = {};
  std::vector<std::optional<double>> saves;
  std::vector<int64_t> begun;
};

Walk WalkTo(const std::vector<CheckpointTier>& tiers, double step_s, double elapsed_s) {
  Walk walk{.saves = std::vector<std::optional<double>>(tiers.size()),
            .begun = std::vector<int64_t>(tiers.size())};
  double time_s = 0;
  const auto spend = [&](double seconds, double& on) {
    const double spent = std::min(seconds, elapsed_s - time_s);
    on += spent;
    time_s += spent;
  };
  for (int64_t steps = 1;; ++steps) {
    if (time_s >= elapsed_s) break;
    spend(step_s, walk.position.trained_s);
    const double trained_s = walk.position.trained_s;
    for (const CheckpointTier& tier : tiers) {
      if (steps % tier.every_steps == 0) spend(tier.stall_s, walk.position.stalled_s);
    }
    for (const CheckpointTier& tier : tiers) {
      if (steps % tier.every_steps == 0) spend(tier.drag_s, walk.position.dragged_s);
    }
    for (size_t i = 0; i < tiers.size() && time_s < elapsed_s; ++i) {
      if (steps % tiers[i].every_steps != 0) continue;
      ++walk.begun[i];
      if (time_s + std::max(tiers[i].write_s - tiers[i].drag_s, 0.0) < elapsed_s)
        walk.saves[i] = trained_s;
    }
  }
  return walk;
}

TEST(CheckpointCycle, IsWhereWalkingFromStepToStepIs) {
  for (uint64_t seed = 0; seed < CasesToWalk(3000u); ++seed) {
    Draws draws(seed, 0, 0);
    std::vector<CheckpointTier> tiers;
    for (int i = 0; i < static_cast<int>(draws.Uniform() * 4); ++i) {
      tiers.push_back({.name = "t",
                       .every_steps = 1 + static_cast<int64_t>(draws.Uniform() * 9),
                       .stall_s = draws.Uniform() < 0.3 ? 0 : draws.Uniform() * 3,
                       .write_s = draws.Uniform() < 0.3 ? 0 : draws.Uniform(),
                       .drag_s = draws.Uniform() < 0.5 ? 0 : draws.Uniform()});
    }
    const double step_s = 1 + draws.Uniform();
    OrderTiers(tiers, step_s);
    const double elapsed_s = draws.Uniform() * 300;
    const CheckpointCycle cycle(tiers, step_s);
    const CheckpointCycle::Position position = cycle.At(elapsed_s);
    const Walk walk = WalkTo(tiers, step_s, elapsed_s);
    constexpr double kRounding = 1e-9;
    EXPECT_NEAR(position.trained_s, walk.position.trained_s, kRounding) << seed;
    EXPECT_NEAR(position.stalled_s, walk.position.stalled_s, kRounding) << seed;
    EXPECT_NEAR(position.dragged_s, walk.position.dragged_s, kRounding) << seed;
    for (size_t i = 0; i < tiers.size(); ++i) {
      EXPECT_EQ(cycle.SavesOf(i, elapsed_s), walk.begun[i]) << seed;
      const std::optional<double> saved = cycle.LastSave(i, elapsed_s);
      ASSERT_EQ(saved.has_value(), walk.saves[i].has_value()) << seed << " " << i;
      if (!saved.has_value()) continue;
      EXPECT_NEAR(*saved, *walk.saves[i], kRounding) << seed;
    }
  }
}

TEST(CheckpointCycle, TakesNoLongerForManySteps) {
  const std::vector<CheckpointTier> tiers = {{.name = "pfs", .every_steps = 10, .stall_s = 1}};
  const CheckpointCycle cycle(tiers, 1.0);
  // Of a million years; walking would take hours.
  EXPECT_NEAR(cycle.At(3.2e13).trained_s, 3.2e13 * 10 / 11, 10.0);
}

}  // namespace
}  // namespace checkpoint_cycle_test_cc
}  // namespace orrery::simulator::goodput
