#include "transforms/strategies/inter_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"

namespace orrery::transforms::strategies {
namespace inter_op_test_cc {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNever = std::numeric_limits<double>::infinity();

// All ways to cut the layers from `first` on, by recursion; the least T.
double Enumerate(const InterOpProblem& problem, int32_t first, int32_t devices, double sum,
                 double slowest, std::vector<int32_t>& allowed) {
  const auto at = [](int32_t i) { return static_cast<size_t>(i); };
  if (first == problem.layers) {
    if (devices != 0) return kNever;
    for (size_t i = 0; i < allowed.size(); ++i) {
      if (allowed[i] < static_cast<int32_t>(allowed.size() - 1 - i)) return kNever;
    }
    return sum + static_cast<double>(problem.microbatches - 1) * slowest;
  }
  double best = kNever;
  for (int32_t last = first; last < problem.layers; ++last) {
    for (size_t shape = 0; shape < problem.submesh_sizes.size(); ++shape) {
      const double cost = problem.stage_cost[at(first)][at(last)][shape];
      if (cost == kNever || problem.submesh_sizes[shape] > devices) continue;
      const auto begin = at(problem.devices - devices);
      if (!problem.fits.empty() && problem.fits[shape][begin] == 0) continue;
      allowed.push_back(problem.most_successors.empty()
                            ? problem.layers
                            : problem.most_successors[at(first)][at(last)][shape]);
      best = std::min(best, Enumerate(problem, last + 1, devices - problem.submesh_sizes[shape],
                                      sum + cost, std::max(slowest, cost), allowed));
      allowed.pop_back();
    }
  }
  return best;
}

InterOpProblem RandomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
  InterOpProblem problem{.layers = 1 + draw(6),
                         .devices = 1 << draw(4),
                         .microbatches = 1 + draw(20),
                         .submesh_sizes = {1, 2, 4},
                         .stage_cost = {},
                         .most_successors = {}};
  const bool limited = draw(2) == 1;
  for (int32_t first = 0; first < problem.layers; ++first) {
    auto& costs = problem.stage_cost.emplace_back();
    if (limited) problem.most_successors.emplace_back();
    for (int32_t last = 0; last < problem.layers; ++last) {
      auto& row = costs.emplace_back();
      if (limited) problem.most_successors.back().emplace_back();
      for (const int32_t size : problem.submesh_sizes) {
        const bool never = last < first || draw(6) == 0;
        row.push_back(never ? kNever : (1 + last - first) * (20 + draw(20)) / double(size));
        if (limited) problem.most_successors.back().back().push_back(draw(5) - 1);
      }
    }
  }
  if (draw(3) > 0) return problem;
  for (size_t shape = 0; shape < problem.submesh_sizes.size(); ++shape) {
    std::vector<char>& fits = problem.fits.emplace_back();
    for (int32_t d = 0; d < problem.devices; ++d) fits.push_back(draw(4) > 0 ? 1 : 0);
  }
  return problem;
}

TEST(PlanInterOp, IsTheGoldenProgram) {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/auto_parallel_alpa.json"));
  const json data = json::parse(file);
  int compared = 0;
  for (const json& golden : data["interop_instances"]) {
    InterOpProblem problem{.layers = golden["layers"],
                           .devices = golden["devices"],
                           .microbatches = golden["microbatches"],
                           .submesh_sizes = golden["submesh_sizes"],
                           .stage_cost = {},
                           .most_successors = {}};
    for (const json& rows : golden["stage_cost"]) {
      auto& first = problem.stage_cost.emplace_back();
      for (const json& costs : rows) {
        auto& last = first.emplace_back();
        for (const json& cost : costs) {
          last.push_back(cost.is_null() ? kNever : cost.get<double>());
        }
      }
    }
    const auto plan = PlanInterOp(problem).value();
    ASSERT_TRUE(plan.has_value());
    EXPECT_NEAR(plan->cost, golden["dp_cost"].get<double>(), 1e-9);
    std::vector<InterOpStage> stages;
    for (const json& stage : golden["stages"]) stages.push_back({stage[0], stage[1], stage[2]});
    EXPECT_EQ(plan->stages, stages);
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

TEST(PlanInterOp, IsEnumeration) {
  int32_t none = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const InterOpProblem problem = RandomProblem(seed);
    std::vector<int32_t> allowed;
    const double best = Enumerate(problem, 0, problem.devices, 0, 0, allowed);
    const auto plan = PlanInterOp(problem).value();
    ASSERT_EQ(plan.has_value(), best != kNever);
    none += plan.has_value() ? 0 : 1;
    if (!plan.has_value()) continue;
    EXPECT_NEAR(plan->cost, best, 1e-9);
    int32_t end = 0, devices = 0;
    for (const InterOpStage& stage : plan->stages) {
      EXPECT_EQ(stage.begin, end);
      end = stage.end;
      devices += problem.submesh_sizes[static_cast<size_t>(stage.submesh)];
    }
    EXPECT_EQ(end, problem.layers);
    EXPECT_EQ(devices, problem.devices);
  }
  EXPECT_GT(none, 0);
}

// Two equal layers on two devices: with one microbatch the stage that halves the time of both is
// best, with many the two stages side by side, because the larger mesh does not quite halve it.
TEST(PlanInterOp, CutsMoreWhereThereAreMoreMicrobatches) {
  InterOpProblem problem{.layers = 2,
                         .devices = 2,
                         .microbatches = 1,
                         .submesh_sizes = {1, 2},
                         .stage_cost = {{{10, 6}, {20, 12}}, {{kNever, kNever}, {10, 6}}},
                         .most_successors = {}};
  EXPECT_THAT(PlanInterOp(problem).value()->stages, ElementsAre(InterOpStage{0, 2, 1}));
  problem.microbatches = 16;
  EXPECT_THAT(PlanInterOp(problem).value()->stages,
              ElementsAre(InterOpStage{0, 1, 0}, InterOpStage{1, 2, 0}));
  EXPECT_EQ(PlanInterOp(problem).value()->cost, 170);
}

std::string ErrorOf(const InterOpProblem& problem) {
  return std::string(PlanInterOp(problem).status().message());
}

TEST(PlanInterOp, RejectsWhatDoesNotFitTogether) {
  const InterOpProblem good = RandomProblem(1);
  InterOpProblem bad = good;
  bad.devices = 0;
  EXPECT_THAT(ErrorOf(bad), HasSubstr("wanted at least 1 of each"));
  bad = good;
  bad.submesh_sizes[1] = 0;
  EXPECT_THAT(ErrorOf(bad), HasSubstr("got a submesh of 0 devices"));
  bad = good;
  bad.stage_cost.pop_back();
  EXPECT_THAT(ErrorOf(bad), HasSubstr("stage costs are not one for each"));
  bad = good;
  bad.stage_cost[0][0][0] = -1;
  EXPECT_THAT(ErrorOf(bad), HasSubstr("got a stage cost of -1"));
  bad = good;
  bad.devices = 2'000'000'000;
  bad.fits.clear();
  EXPECT_THAT(ErrorOf(bad), HasSubstr("more than fits memory"));
  bad = good;
  bad.fits.assign(bad.submesh_sizes.size() + 1, {});
  EXPECT_THAT(ErrorOf(bad), HasSubstr("where submeshes fit is not told of each"));
}

TEST(PlanInterOp, SaysWordByWordWhatIsWrong) {
  InterOpProblem good{.layers = 1,
                      .devices = 1,
                      .microbatches = 1,
                      .submesh_sizes = {1},
                      .stage_cost = {{{3}}},
                      .most_successors = {}};
  EXPECT_EQ(PlanInterOp(good).value()->cost, 3);
  InterOpProblem bad = good;
  bad.layers = 0;
  EXPECT_EQ(ErrorOf(bad),
            "stages: got 0 layers, 1 devices, 1 microbatches, wanted at least 1 of each");
  bad = good;
  bad.microbatches = -2;
  EXPECT_EQ(ErrorOf(bad),
            "stages: got 1 layers, 1 devices, -2 microbatches, wanted at least 1 of each");
  bad = good;
  bad.stage_cost = {{{3, 4}}};
  EXPECT_EQ(ErrorOf(bad),
            "stages: the stage costs are not one for each first layer, last layer and submesh");
  bad.stage_cost = {{{3}, {4}}};
  EXPECT_THAT(ErrorOf(bad), HasSubstr("the stage costs are not one for each"));
  bad = good;
  bad.most_successors = {{{}}};
  EXPECT_EQ(ErrorOf(bad),
            "stages: the successors are not one for each first layer, last layer and submesh");
  bad = good;
  bad.stage_cost[0][0][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ErrorOf(bad), "stages: got a stage cost of nan, wanted at least 0");
  bad = good;
  bad.devices = 2'000'000'000;
  EXPECT_EQ(ErrorOf(bad),
            "stages: got 1 layers on 2000000000 devices, which is more than fits memory; group "
            "layers or devices");
}

// Three devices and stages of two: nothing uses them all. With the one of three it does.
TEST(PlanInterOp, IsNothingWhereNoStagesUseAllDevices) {
  InterOpProblem problem{.layers = 2,
                         .devices = 3,
                         .microbatches = 4,
                         .submesh_sizes = {2},
                         .stage_cost = {{{1}, {2}}, {{kNever}, {1}}},
                         .most_successors = {}};
  EXPECT_FALSE(PlanInterOp(problem).value().has_value());
  problem.submesh_sizes = {3};
  EXPECT_THAT(PlanInterOp(problem).value()->stages, ElementsAre(InterOpStage{0, 2, 0}));
  EXPECT_EQ(PlanInterOp(problem).value()->cost, 2 + 3 * 2);
  // More stages than layers cannot be.
  problem.devices = 9;
  EXPECT_FALSE(PlanInterOp(problem).value().has_value());
  problem.submesh_sizes = {};
  problem.stage_cost = {{{}, {}}, {{}, {}}};
  EXPECT_FALSE(PlanInterOp(problem).value().has_value());
}

// Layers of 1 each on single devices, one device a layer: every cut but the finest leaves devices
// over, and T = layers + (B-1).
InterOpProblem Equal(int32_t layers, int64_t microbatches) {
  InterOpProblem problem{.layers = layers,
                         .devices = layers,
                         .microbatches = microbatches,
                         .submesh_sizes = {1},
                         .stage_cost = {},
                         .most_successors = {}};
  for (int32_t first = 0; first < layers; ++first) {
    auto& rows = problem.stage_cost.emplace_back();
    for (int32_t last = 0; last < layers; ++last) {
      rows.push_back({last < first ? kNever : double(1 + last - first)});
    }
  }
  return problem;
}

TEST(PlanInterOp, OfEqualLayersFillsThePipeline) {
  for (const int32_t layers : {1, 2, 5, 12}) {
    for (const int64_t microbatches : {1, 2, 64}) {
      const InterOpPlan plan = *PlanInterOp(Equal(layers, microbatches)).value();
      EXPECT_EQ(plan.stages.size(), static_cast<size_t>(layers));
      EXPECT_EQ(plan.cost, static_cast<double>(layers + microbatches - 1));
    }
  }
}

// A stage with memory for k microbatches beyond its own bears k stages after it: with one too few
// on the first layer there is no plan of all stages.
TEST(PlanInterOp, CountsTheStagesThatFollow) {
  InterOpProblem problem = Equal(4, 8);
  problem.most_successors.assign(4, std::vector<std::vector<int32_t>>(4, {3}));
  problem.most_successors[1][1] = {2};
  problem.most_successors[2][2] = {1};
  problem.most_successors[3][3] = {0};
  EXPECT_EQ(PlanInterOp(problem).value()->cost, 4 + 7);
  for (size_t layer = 0; layer < 4; ++layer) {
    InterOpProblem tight = problem;
    --tight.most_successors[layer][layer][0];
    EXPECT_FALSE(PlanInterOp(tight).value().has_value()) << layer;
  }
  // Two layers in the first stage, on two devices, where the second layer bears no stage but one.
  problem.submesh_sizes = {1, 2};
  for (size_t first = 0; first < 4; ++first) {
    for (size_t last = 0; last < 4; ++last) {
      problem.stage_cost[first][last].push_back(problem.stage_cost[first][last][0]);
      problem.most_successors[first][last].push_back(3);
    }
  }
  problem.most_successors[1][1][0] = 1;
  problem.stage_cost[0][1][1] = 1.5;
  EXPECT_THAT(PlanInterOp(problem).value()->stages,
              ElementsAre(InterOpStage{0, 2, 1}, InterOpStage{2, 3, 0}, InterOpStage{3, 4, 0}));
}

// 1 and 9 sum to less than 6 and 6, but the slowest stage counts B times.
TEST(PlanInterOp, WeighsTheSlowestStageByTheMicrobatches) {
  InterOpProblem problem{
      .layers = 3,
      .devices = 2,
      .microbatches = 1,
      .submesh_sizes = {1},
      .stage_cost = {{{1}, {6}, {kNever}}, {{kNever}, {5}, {9}}, {{kNever}, {kNever}, {6}}},
      .most_successors = {}};
  const auto first_end = [&](int64_t microbatches) {
    problem.microbatches = microbatches;
    return PlanInterOp(problem).value()->stages[0].end;
  };
  EXPECT_EQ(first_end(1), 1);  // 10 against 12
  EXPECT_EQ(first_end(2), 2);  // 19 against 18
  EXPECT_EQ(PlanInterOp(problem).value()->cost, 18);
  EXPECT_EQ(first_end(int64_t{1} << 40), 2);
}

TEST(PlanInterOp, ScalesWithTheCosts) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    InterOpProblem problem = RandomProblem(seed);
    const auto plan = PlanInterOp(problem).value();
    for (auto& rows : problem.stage_cost) {
      for (auto& costs : rows) {
        for (double& cost : costs) cost *= 4;
      }
    }
    const auto scaled = PlanInterOp(problem).value();
    ASSERT_EQ(scaled.has_value(), plan.has_value());
    if (!plan.has_value()) continue;
    EXPECT_EQ(scaled->stages, plan->stages);
    EXPECT_EQ(scaled->cost, 4 * plan->cost);
  }
}

}  // namespace
}  // namespace inter_op_test_cc
}  // namespace orrery::transforms::strategies
