#include "transforms/strategies/stage_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <tuple>

#include "support/sanitized_test_util.h"

namespace orrery::transforms::strategies {
namespace stage_program_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

size_t At(int32_t number) { return static_cast<size_t>(number); }

StageProblem Uniform(int32_t units, int32_t stages) {
  const std::vector<double> ones(At(units), 1), none(At(units), 0);
  return {.seconds = ones,
          .boundary_seconds = none,
          .boundary_bytes = ones,
          .state_bytes = ones,
          .kept_bytes = ones,
          .stages = stages};
}

StageProblem RandomProblem(uint32_t seed, int32_t chunks) {
  std::mt19937 random(seed);
  const auto draw = [&](uint32_t n) { return static_cast<double>(random() % n); };
  const int32_t ranks = 1 + static_cast<int32_t>(draw(3));
  StageProblem problem;
  problem.stages = ranks * chunks;
  const int32_t units = problem.stages + static_cast<int32_t>(draw(6));
  for (int32_t unit = 0; unit < units; ++unit) {
    problem.seconds.push_back(1 + draw(8));
    problem.boundary_seconds.push_back(draw(3));
    problem.boundary_bytes.push_back(1 + draw(5));
    problem.state_bytes.push_back(draw(9));
    problem.kept_bytes.push_back(draw(4));
    problem.weight_bytes.push_back(draw(3));
  }
  for (int32_t stage = 0; stage < problem.stages; ++stage) {
    if (chunks > 1) problem.ranks.push_back(stage % ranks);
    problem.in_flight.push_back(1 + draw(4));
    problem.more_versions.push_back(draw(3));
  }
  if (draw(2) == 1) problem.memory_limit = 15 + draw(40);
  return problem;
}

// Calls `visit` with all ways to begin the stages.
void ForAll(int32_t units, int32_t stages, std::vector<int32_t> begins,
            const std::function<void(const std::vector<int32_t>&)>& visit) {
  if (static_cast<int32_t>(begins.size()) == stages) return visit(begins);
  const int32_t first = begins.empty() ? 0 : begins.back() + 1;
  const int32_t last = begins.empty() ? 0 : units - 1;
  for (int32_t begin = first; begin <= last; ++begin) {
    begins.push_back(begin);
    ForAll(units, stages, begins, visit);
    begins.pop_back();
  }
}

// The figures of a division, from their definition.
StageDivision WeighPlainly(const StageProblem& problem, const std::vector<int32_t>& begins) {
  std::vector<double> seconds(begins.size()), memory(begins.size());
  StageDivision division;
  division.begins = begins;
  const auto units = static_cast<int32_t>(problem.seconds.size());
  for (size_t stage = 0; stage < begins.size(); ++stage) {
    const int32_t end = stage + 1 < begins.size() ? begins[stage + 1] : units;
    const size_t rank = problem.ranks.empty() ? stage : At(problem.ranks[stage]);
    double lasts = 0;
    for (int32_t unit = begins[stage]; unit < end; ++unit) {
      lasts += problem.seconds[At(unit)];
      memory[rank] += problem.state_bytes[At(unit)] +
                      problem.more_versions[stage] * problem.weight_bytes[At(unit)] +
                      problem.in_flight[stage] * problem.kept_bytes[At(unit)];
    }
    if (stage > 0) {
      lasts += problem.boundary_seconds[At(begins[stage])];
      memory[rank] += problem.in_flight[stage] * problem.boundary_bytes[At(begins[stage])];
      division.boundary_bytes += problem.boundary_bytes[At(begins[stage])];
    }
    if (end < units) lasts += problem.boundary_seconds[At(end)];
    division.slowest_stage = std::max(division.slowest_stage, lasts);
    seconds[rank] += lasts;
  }
  for (const double lasts : seconds) division.squares += lasts * lasts;
  division.slowest_rank = *std::ranges::max_element(seconds);
  division.most_memory = *std::ranges::max_element(memory);
  return division;
}

void ExpectAlike(const StageDivision& a, const StageDivision& b) {
  EXPECT_DOUBLE_EQ(a.slowest_rank, b.slowest_rank);
  EXPECT_DOUBLE_EQ(a.slowest_stage, b.slowest_stage);
  EXPECT_DOUBLE_EQ(a.boundary_bytes, b.boundary_bytes);
  EXPECT_DOUBLE_EQ(a.squares, b.squares);
}

TEST(DivideByCost, IsExhaustiveSearchWithOneStageARank) {
  int limited = 0, too_large = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    const StageProblem problem = RandomProblem(seed, 1);
    std::optional<StageDivision> fastest, smallest, any;
    const auto key = [](const StageDivision& d) {
      return std::tuple(d.slowest_stage, d.boundary_bytes, d.squares);
    };
    ForAll(static_cast<int32_t>(problem.seconds.size()), problem.stages, {},
           [&](const std::vector<int32_t>& begins) {
             const StageDivision way = WeighPlainly(problem, begins);
             if (!any.has_value() || key(way) < key(*any)) any = way;
             if (!smallest.has_value() || way.most_memory < smallest->most_memory) smallest = way;
             if (problem.memory_limit > 0 && way.most_memory > problem.memory_limit) return;
             if (!fastest.has_value() || key(way) < key(*fastest)) fastest = way;
           });
    const StageDivision found = DivideByCost(problem).value();
    ExpectAlike(found, WeighPlainly(problem, found.begins));
    EXPECT_DOUBLE_EQ(found.most_memory, WeighPlainly(problem, found.begins).most_memory);
    if (fastest.has_value()) {
      ExpectAlike(found, *fastest);
      limited += any->slowest_stage < fastest->slowest_stage ? 1 : 0;
    } else {
      EXPECT_DOUBLE_EQ(found.most_memory, smallest->most_memory);
      ++too_large;
    }
  }
  EXPECT_GT(limited, 10);
  EXPECT_GT(too_large, 10);
}

// Not always the best, but never behind equally many units, and mostly the best.
TEST(DivideByCost, IsNearExhaustiveSearchWithSeveralStagesARank) {
  int best = 0, all = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    StageProblem problem = RandomProblem(seed, 2);
    problem.memory_limit = 0;
    const auto units = static_cast<int32_t>(problem.seconds.size());
    double least = 1e9;
    ForAll(units, problem.stages, {}, [&](const std::vector<int32_t>& begins) {
      least = std::min(least, WeighPlainly(problem, begins).slowest_rank);
    });
    const StageDivision found = DivideByCost(problem).value();
    EXPECT_LE(found.slowest_rank,
              WeighPlainly(problem, EqualBegins(units, problem.stages)).slowest_rank);
    EXPECT_LE(found.slowest_rank, 1.25 * least);
    best += found.slowest_rank <= least ? 1 : 0;
    ++all;
  }
  EXPECT_GT(best, all * 8 / 10);
}

// Llama 3 405B: an embedding and a classifier cost about a layer each, so that the first and the
// last of the stages have one layer less.
TEST(DivideByCost, GivesEndsFewerLayers) {
  StageProblem problem = Uniform(14, 4);
  problem.seconds.front() = problem.seconds.back() = 2;
  EXPECT_THAT(DivideByCost(problem)->begins, ElementsAre(0, 3, 7, 11));
}

TEST(DivideByCost, KeepsToMemory) {
  StageProblem problem = Uniform(8, 4);
  problem.in_flight = {4, 3, 2, 1};
  EXPECT_THAT(DivideByCost(problem)->begins, ElementsAre(0, 2, 4, 6));
  // Two units on the first stage need 2 + 4·2.
  problem.memory_limit = 9;
  const StageDivision less = DivideByCost(problem).value();
  EXPECT_LE(less.most_memory, 12);
  EXPECT_EQ(less.begins[1], 1);
}

TEST(EqualBegins, ArePlacesOfTheFloor) {
  EXPECT_THAT(EqualBegins(8, 4), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(EqualBegins(7, 3), ElementsAre(0, 3, 5));
  EXPECT_THAT(EqualBegins(3, 3), ElementsAre(0, 1, 2));
  for (int32_t units = 1; units < 30; ++units) {
    for (int32_t stages = 1; stages <= units; ++stages) {
      const std::vector<int32_t> begins = EqualBegins(units, stages);
      for (int32_t unit = 0; unit < units; ++unit) {
        const auto stage = std::ranges::upper_bound(begins, unit) - begins.begin() - 1;
        ASSERT_EQ(stage, unit * stages / units) << units << " " << stages << " " << unit;
      }
    }
  }
}

// The least slowest stage of units with no sends: by bisection, each stage taking what it can.
double LeastSlowest(const StageProblem& problem) {
  double low = 0, high = 0;
  for (const double seconds : problem.seconds) high += seconds;
  for (int i = 0; i < 100; ++i) {
    const double cap = (low + high) / 2;
    int32_t stages = 1;
    double lasts = 0;
    bool fits = true;
    for (const double seconds : problem.seconds) {
      fits = fits && seconds <= cap;
      if (lasts + seconds > cap) {
        ++stages;
        lasts = 0;
      }
      lasts += seconds;
    }
    (fits && stages <= problem.stages ? high : low) = cap;
  }
  return high;
}

// More units than are solved as a whole.
TEST(DivideByCost, OfManyUnitsFindsTheFastest) {
  for (uint32_t seed = 0; seed < CasesToWalk(30u); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto units = static_cast<int32_t>(2 * kMostExact + random() % 20'000);
    StageProblem problem = Uniform(units, static_cast<int32_t>(1 + random() % 12));
    for (double& seconds : problem.seconds) {
      seconds = 1 + static_cast<double>(random() % 8);
      if (random() % 1000 == 0) seconds *= 200;
    }
    EXPECT_NEAR(DivideByCost(problem)->slowest_stage / LeastSlowest(problem), 1, 2e-4);
    problem.memory_limit = 2.6 * units / problem.stages;
    const StageDivision lean = DivideByCost(problem).value();
    EXPECT_LE(lean.most_memory, problem.memory_limit);
  }
}

TEST(StageWeights, AreSumsOfUnits) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const StageProblem problem = RandomProblem(seed, 1);
    const StageWeights weights(problem);
    ASSERT_EQ(weights.units(), static_cast<int32_t>(problem.seconds.size()));
    const std::vector<int32_t> begins = EqualBegins(weights.units(), problem.stages);
    const StageDivision plain = WeighPlainly(problem, begins);
    ExpectAlike(weights.Weigh(begins), plain);
    ExpectAlike(Weigh(problem, begins), plain);
    double slowest = 0, fullest = 0, work = 0;
    for (int32_t s = 0; s < problem.stages; ++s) {
      const int32_t end = s + 1 < problem.stages ? begins[At(s + 1)] : weights.units();
      slowest = std::max(slowest, weights.Seconds(begins[At(s)], end));
      fullest = std::max(fullest, weights.Memory(s, begins[At(s)], end));
      work += weights.Work(begins[At(s)], end);
    }
    EXPECT_DOUBLE_EQ(slowest, plain.slowest_stage);
    EXPECT_DOUBLE_EQ(fullest, plain.most_memory);
    EXPECT_DOUBLE_EQ(work, weights.Work(0, weights.units()));
    EXPECT_DOUBLE_EQ(weights.Held(0, 0, 1), weights.Memory(0, 0, 1));
  }
}

TEST(FirstStride, IsASixteenthOfAStageOrLess) {
  EXPECT_EQ(FirstStride(96, 32), 1);
  EXPECT_EQ(FirstStride(31 * 8, 8), 1);
  EXPECT_EQ(FirstStride(32 * 8, 8), 2);
  EXPECT_EQ(FirstStride(100'000, 8), 512);
}

TEST(DivideByCost, SaysWhatIsWrong) {
  EXPECT_THAT(DivideByCost(Uniform(3, 4)).status().message(),
              HasSubstr("got 3 units for 4 stages"));
  StageProblem problem = Uniform(4, 2);
  problem.kept_bytes.pop_back();
  EXPECT_THAT(DivideByCost(problem).status().message(), HasSubstr("got 3 figures for 4 units"));
  problem = Uniform(4, 2);
  problem.in_flight = {1};
  EXPECT_THAT(DivideByCost(problem).status().message(), HasSubstr("of all stages, or none"));
}

}  // namespace
}  // namespace stage_program_test_cc
}  // namespace orrery::transforms::strategies
