#include "transforms/stages/cost_division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "transforms/stages/stage_timing.h"

namespace orrery::transforms {
namespace cost_division_test_cc {
namespace {

struct Units {
  std::vector<StageUnit> units;
  UnitCosts costs;

  void Add(double seconds, double state, double kept) {
    units.push_back({.begin = units.size()});
    costs.forward.push_back(seconds);
    costs.input_gradient.push_back(2 * seconds);
    costs.weight_gradient.push_back(0);
    costs.update.push_back(0.1 * state);
    costs.state_bytes.push_back(state);
    costs.weight_bytes.push_back(state / 4);
    costs.kept_bytes.push_back(kept);
    costs.boundary_bytes.push_back(units.size() == 1 ? 0 : 1);
  }
};

ScheduledRanks Scheduled(const char* name, int32_t ranks, int32_t microbatches) {
  const PipelineSchedule& schedule = *FindSchedule(name).value();
  ScheduledRanks scheduled;
  scheduled.placement = schedule.placement;
  scheduled.shape = schedule.ShapeOf(ranks, microbatches);
  scheduled.orders = schedule.OrdersOf(scheduled.shape);
  return scheduled;
}

double TimeOf(const Units& units, const std::vector<int32_t>& begins, const ScheduledRanks& ranks) {
  std::vector<StageSeconds> stages(begins.size());
  for (size_t unit = 0; unit < units.units.size(); ++unit) {
    const auto stage = static_cast<size_t>(
        std::ranges::upper_bound(begins, static_cast<int32_t>(unit)) - begins.begin() - 1);
    stages[stage].forward += units.costs.forward[unit];
    stages[stage].input_gradient += units.costs.input_gradient[unit];
    stages[stage].update += units.costs.update[unit];
  }
  return StepTimer(ranks, static_cast<int32_t>(begins.size())).Seconds(stages);
}

double MostMemory(const Units& units, const std::vector<int32_t>& begins,
                  const std::vector<double>& in_flight) {
  std::vector<double> bytes(begins.size());
  for (size_t stage = 1; stage < begins.size(); ++stage) bytes[stage] = in_flight[stage];
  for (size_t unit = 0; unit < units.units.size(); ++unit) {
    const auto stage = static_cast<size_t>(
        std::ranges::upper_bound(begins, static_cast<int32_t>(unit)) - begins.begin() - 1);
    bytes[stage] += units.costs.state_bytes[unit] + in_flight[stage] * units.costs.kept_bytes[unit];
  }
  return std::ranges::max(bytes);
}

void ForAll(int32_t units, size_t stages, std::vector<int32_t> begins,
            const std::function<void(const std::vector<int32_t>&)>& visit) {
  if (begins.size() == stages) return visit(begins);
  for (int32_t begin = begins.back() + 1; begin < units; ++begin) {
    begins.push_back(begin);
    ForAll(units, stages, begins, visit);
    begins.pop_back();
  }
}

// The fastest is near the fastest of all; the leanest is about as fast as it, needs no more memory,
// and no unit can be moved so that it needs less and is still about as fast.
TEST(DivideUnits, FindsWhatIsFastAndWhatIsLeanOfThat) {
  int leaner = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](uint32_t n) { return static_cast<double>(1 + random() % n); };
    Units units;
    const int32_t count = 5 + static_cast<int32_t>(random() % 5);
    for (int32_t i = 0; i < count; ++i) units.Add(10 + 0.1 * draw(5), draw(40), draw(4));
    const auto ranks = static_cast<int32_t>(2 + random() % 3);
    const ScheduledRanks scheduled =
        Scheduled(random() % 2 == 0 ? "1f1b" : "gpipe", ranks, static_cast<int32_t>(draw(6)));
    StageOptions options{.stages = ranks};
    options.choice.schedule = &scheduled;
    for (int32_t r = 0; r < ranks; ++r) options.choice.in_flight.push_back(draw(4));
    const std::vector<double>& in_flight = options.choice.in_flight;
    const UnitDivisions found = DivideUnits(units.units, units.costs, options);
    const double fastest = TimeOf(units, found.fastest, scheduled);
    const double most = MostMemory(units, found.leanest, in_flight);
    EXPECT_LE(TimeOf(units, found.leanest, scheduled), kAboutAsFast * fastest * (1 + 1e-9));
    EXPECT_LE(most, MostMemory(units, found.fastest, in_flight));
    leaner += most < MostMemory(units, found.fastest, in_flight) ? 1 : 0;
    double best = std::numeric_limits<double>::infinity();
    ForAll(count, static_cast<size_t>(ranks), {0}, [&](const std::vector<int32_t>& begins) {
      const double lasts = TimeOf(units, begins, scheduled);
      best = std::min(best, lasts);
      int32_t moved = 0;
      for (size_t s = 0; s < begins.size(); ++s) moved += std::abs(begins[s] - found.leanest[s]);
      if (moved != 1 || lasts > kAboutAsFast * fastest * (1 - 1e-9)) return;
      EXPECT_GE(MostMemory(units, begins, in_flight), most * (1 - 1e-9));
    });
    EXPECT_LE(fastest, 1.1 * best);
  }
  EXPECT_GT(leaner, 10);
}

// Equally many layers are the answer where they are about as fast as any and as lean.
TEST(DivideUnits, KeepsLayersEqualWhereNothingIsLeaner) {
  Units units;
  for (int i = 0; i < 8; ++i) units.Add(1, 1, 1);
  const ScheduledRanks scheduled = Scheduled("gpipe", 4, 1);
  StageOptions options{.stages = 4};
  options.choice.schedule = &scheduled;
  const UnitDivisions found = DivideUnits(units.units, units.costs, options);
  EXPECT_THAT(found.leanest, testing::ElementsAre(0, 2, 4, 6));
}

// So many units are no more work than their number: with a figure for each pair of them, this would
// not come to an end.
TEST(DivideUnits, OfManyUnitsComesToAnEnd) {
  Units units;
  constexpr int32_t kUnits = 1'000'000;
  for (int i = 0; i < kUnits; ++i) units.Add(1, 1, 0);
  for (const char* name : {"1f1b", "zbv"}) {
    const ScheduledRanks scheduled = Scheduled(name, 8, 8);
    StageOptions options{.stages = scheduled.shape.stages()};
    for (int32_t s = 0; s < scheduled.shape.stages(); ++s) {
      options.ranks.push_back(RankOf(scheduled.placement, scheduled.shape, s));
    }
    options.choice.schedule = &scheduled;
    const std::vector<int32_t> begins = DivideUnits(units.units, units.costs, options).fastest;
    std::vector<int32_t> equal;
    for (int32_t s = 0; s < scheduled.shape.stages(); ++s) {
      equal.push_back(s * (kUnits / scheduled.shape.stages()));
    }
    EXPECT_LE(TimeOf(units, begins, scheduled), TimeOf(units, equal, scheduled) * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace cost_division_test_cc
}  // namespace orrery::transforms
