#include "tools/validation/robust_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace orrery::tools {
namespace robust_fit_test_cc {
namespace {

using Vector = std::vector<double>;

// Twelve rows, errors 0.2 * (move 0 - 0.5) + slope * (move 1 + 0.3), of one group.
FitRows Rows() {
  FitRows rows;
  for (int i = 0; i < 12; ++i) {
    const double slope = 0.1 * (i % 4) - 0.1;
    rows.errors.push_back(0.2 * -0.5 + slope * 0.3);
    rows.slopes.push_back({0.2, slope});
    rows.groups.push_back(0);
  }
  return rows;
}

const std::vector<UnknownRange> kWide = {{-4, 4}, {-4, 4}};

TEST(SolveRobustly, FindsWhatMadeTheErrors) {
  const RobustFit fit = SolveRobustly(Rows(), {0, 0}, kWide, 0.001);
  EXPECT_NEAR(fit.moves[0], 0.5, 0.001);
  EXPECT_NEAR(fit.moves[1], -0.3, 0.001);
  EXPECT_TRUE(fit.determined[0] && fit.determined[1]);
  EXPECT_LT(fit.deviations[0], 0.01);
  EXPECT_EQ(fit.spreads, Vector{0.001});
}

// From elsewhere the same, where errors are of that place.
TEST(SolveRobustly, StartsAnywhere) {
  FitRows rows = Rows();
  for (size_t i = 0; i < rows.errors.size(); ++i) {
    rows.errors[i] += rows.slopes[i][0] * 1 + rows.slopes[i][1] * -1;
  }
  const RobustFit fit = SolveRobustly(rows, {1, -1}, kWide, 0.001);
  EXPECT_NEAR(fit.moves[0], 0.5, 0.001);
  EXPECT_NEAR(fit.moves[1], -0.3, 0.001);
}

TEST(SolveRobustly, TakesNoNoticeOfARowThatIsFarOff) {
  FitRows rows = Rows();
  rows.errors[3] += 2;
  const RobustFit fit = SolveRobustly(rows, {0, 0}, kWide, 0.001);
  EXPECT_NEAR(fit.moves[0], 0.5, 0.02);
  EXPECT_NEAR(fit.moves[1], -0.3, 0.02);
}

// Of what no row depends on, and of what moves with another, nothing is known.
TEST(SolveRobustly, LeavesWhatIsNotDetermined) {
  FitRows rows = Rows();
  for (Vector& slopes : rows.slopes) slopes = {slopes[0], 0};
  RobustFit fit = SolveRobustly(rows, {0, 0}, kWide, 0.001);
  EXPECT_EQ(fit.moves[1], 0);
  EXPECT_FALSE(fit.determined[1]);
  EXPECT_TRUE(fit.determined[0]);
  for (Vector& slopes : rows.slopes) slopes = {0.2, 0.2};
  fit = SolveRobustly(rows, {0, 0}, kWide, 0.001);
  EXPECT_EQ(fit.determined[0] + fit.determined[1], 1);
  // Or next to nothing, beside the errors of the rows.
  rows = Rows();
  for (Vector& slopes : rows.slopes) slopes[1] *= 0.01;
  EXPECT_FALSE(SolveRobustly(rows, {0, 0}, kWide, 0.05).determined[1]);
}

TEST(SolveRobustly, SaysWhichAreHardToTellApart) {
  FitRows rows = Rows();
  for (size_t i = 0; i < rows.slopes.size(); ++i) {
    rows.slopes[i] = {0.2, i % 2 == 0 ? 0.2 : 0.21};
    rows.errors[i] = -0.5 * rows.slopes[i][0] + 0.3 * rows.slopes[i][1];
  }
  const RobustFit fit = SolveRobustly(rows, {0, 0}, kWide, 0.001);
  ASSERT_TRUE(fit.determined[0] && fit.determined[1]);
  EXPECT_LT(fit.correlations[0][1], -0.9);
  EXPECT_EQ(fit.correlations[0][1], fit.correlations[1][0]);
}

TEST(SolveRobustly, StaysInItsRange) {
  const RobustFit fit = SolveRobustly(Rows(), {0, 0}, {{-4, 0.25}, {-4, 4}}, 0.001);
  EXPECT_EQ(fit.moves[0], 0.25);
  EXPECT_TRUE(fit.determined[0]);
  EXPECT_EQ(fit.deviations[0], 0) << "at its limit";
}

// A group of rows that nothing explains does not pull those that agree.
TEST(SolveRobustly, GivesEachGroupItsOwnSpread) {
  FitRows rows = Rows();
  for (int i = 0; i < 12; ++i) {
    rows.errors.push_back(i % 3 == 0 ? -0.4 : 0.5);
    rows.slopes.push_back({0.2, 0});
    rows.groups.push_back(1);
  }
  const RobustFit fit = SolveRobustly(rows, {0, 0}, kWide, 0.001);
  EXPECT_NEAR(fit.moves[0], 0.5, 0.01);
  EXPECT_LT(fit.spreads[0], 0.01);
  EXPECT_GT(fit.spreads[1], 0.3);
}

// Errors that bend: e^move in place of a line.
TEST(FitRobustly, FollowsACurve) {
  int32_t asked = 0;
  FitProblem problem;
  problem.ranges = {{-4, 4}};
  problem.groups = {0, 0, 0, 0, 0, 0};
  const auto errors_at = [](const Vector& moves) {
    Vector errors;
    for (int i = 1; i <= 6; ++i) errors.push_back(0.05 * i * (std::exp(moves[0]) - 2));
    return errors;
  };
  problem.errors = [&](const Vector& moves) {
    ++asked;
    return errors_at(moves);
  };
  problem.slopes = [&](const Vector& moves, const Vector& errors) {
    EXPECT_EQ(errors, errors_at(moves));
    std::vector<Vector> slopes;
    for (int i = 1; i <= 6; ++i) slopes.push_back({0.05 * i * std::exp(moves[0])});
    return slopes;
  };
  const RobustFit fit = FitRobustly(problem);
  EXPECT_NEAR(fit.moves[0], std::numbers::ln2, 0.005);
  EXPECT_LE(asked, problem.rounds + 9);
  EXPECT_LT(
      LossOf(errors_at(fit.moves), {.errors = {}, .slopes = {}, .groups = problem.groups}, {0.01},
             fit.moves),
      LossOf(errors_at({0}), {.errors = {}, .slopes = {}, .groups = problem.groups}, {0.01}, {0}));
}

}  // namespace
}  // namespace robust_fit_test_cc
}  // namespace orrery::tools
