#include "transforms/slices/slice_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace orrery::transforms {
namespace slice_plan_test_cc {
namespace {

// The time of the formula, in seconds.
double SecondsOfSlices(const SlicePlanProblem& problem, const std::vector<int64_t>& lengths) {
  double sum = 0, longest = 0;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const double seconds = problem.seconds(begin, length);
    sum += seconds;
    longest = std::max(longest, seconds);
    begin += length;
  }
  return sum + problem.fill * longest;
}

// All ways to cut `units` into `slices`.
double BruteForce(const SlicePlanProblem& problem, std::vector<int64_t>& lengths, int64_t left) {
  const auto missing = problem.slices - std::ssize(lengths);
  if (missing == 0) {
    return left == 0 ? SecondsOfSlices(problem, lengths) : std::numeric_limits<double>::infinity();
  }
  double best = std::numeric_limits<double>::infinity();
  for (int64_t length = 1; length <= left - missing + 1; ++length) {
    lengths.push_back(length);
    best = std::min(best, BruteForce(problem, lengths, left - length));
    lengths.pop_back();
  }
  return best;
}

TEST(PlanSlices, IsTheBestOfAll) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    SlicePlanProblem problem;
    problem.units = 1 + static_cast<int64_t>(random() % 9);
    problem.slices = 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(problem.units));
    problem.fill = static_cast<double>(random() % 6);
    std::vector<double> seconds(100);
    for (double& each : seconds) each = 1 + static_cast<double>(random() % 50);
    problem.seconds = [&](int64_t begin, int64_t units) {
      return seconds[static_cast<size_t>(begin * 10 + units)];
    };
    const std::vector<int64_t> lengths = PlanSlices(problem);
    ASSERT_EQ(std::ssize(lengths), problem.slices);
    std::vector<int64_t> none;
    const double best = BruteForce(problem, none, problem.units);
    EXPECT_DOUBLE_EQ(SecondsOfSlices(problem, lengths), best);
    problem.tolerance = 0.1;
    const std::vector<int64_t> near = PlanSlices(problem);
    ASSERT_EQ(std::ssize(near), problem.slices);
    EXPECT_LE(SecondsOfSlices(problem, near), 1.1 * best);
  }
}

// A slice takes as long as it has positions and keys: with many stages all take equally long.
TEST(PlanSlices, AreShorterTowardsTheEnd) {
  const SlicePlanProblem problem = {
      .units = 64, .slices = 4, .fill = 999, .seconds = [](int64_t begin, int64_t units) {
        return static_cast<double>(units * (begin + units));
      }};
  const std::vector<int64_t> lengths = PlanSlices(problem);
  EXPECT_THAT(lengths, testing::ElementsAre(26, 16, 12, 10));
}

// Of what the formula finds nearly alike, the pipeline itself tells.
TEST(PlanSlices, TakesTheBestInFact) {
  SlicePlanProblem problem = {
      .units = 64, .slices = 4, .fill = 3, .seconds = [](int64_t begin, int64_t units) {
        return static_cast<double>(units * (begin + units));
      }};
  const std::vector<int64_t> lengths = PlanSlices(problem);
  int asked = 0;
  problem.exact = [&](const std::vector<int64_t>& slices) {
    ++asked;
    return slices == lengths ? 2.0 : 1.0;
  };
  EXPECT_NE(PlanSlices(problem), lengths);
  EXPECT_GT(asked, 1);
  problem.exact = [](const std::vector<int64_t>& slices) {
    return static_cast<double>(slices.front());
  };
  EXPECT_LE(PlanSlices(problem).front(), lengths.front());
}

// Where positions are all that counts, slices are equal.
TEST(PlanSlices, AreEqualWithoutAttention) {
  const SlicePlanProblem problem = {
      .units = 64, .slices = 8, .fill = 3, .seconds = [](int64_t, int64_t units) {
        return 3 + static_cast<double>(units);
      }};
  EXPECT_EQ(PlanSlices(problem), std::vector<int64_t>(8, 8));
}

}  // namespace
}  // namespace slice_plan_test_cc
}  // namespace orrery::transforms
