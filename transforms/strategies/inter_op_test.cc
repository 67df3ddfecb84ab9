#include "transforms/strategies/inter_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"

namespace orrery::transforms {
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
  return problem;
}

TEST(PlanStages, IsTheGoldenProgram) {
  std::ifstream file(absl::StrCat(ORRERY_SOURCE_DIR, "/tests/data/auto_parallel_alpa.json"));
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
    const auto plan = PlanStages(problem).value();
    ASSERT_TRUE(plan.has_value());
    EXPECT_NEAR(plan->cost, golden["dp_cost"].get<double>(), 1e-9);
    std::vector<PipelineStage> stages;
    for (const json& stage : golden["stages"]) stages.push_back({stage[0], stage[1], stage[2]});
    EXPECT_EQ(plan->stages, stages);
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

TEST(PlanStages, IsEnumeration) {
  int32_t none = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    const InterOpProblem problem = RandomProblem(seed);
    std::vector<int32_t> allowed;
    const double best = Enumerate(problem, 0, problem.devices, 0, 0, allowed);
    const auto plan = PlanStages(problem).value();
    ASSERT_EQ(plan.has_value(), best != kNever);
    none += plan.has_value() ? 0 : 1;
    if (!plan.has_value()) continue;
    EXPECT_NEAR(plan->cost, best, 1e-9);
    int32_t end = 0, devices = 0;
    for (const PipelineStage& stage : plan->stages) {
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
TEST(PlanStages, CutsMoreWhereThereAreMoreMicrobatches) {
  InterOpProblem problem{.layers = 2,
                         .devices = 2,
                         .microbatches = 1,
                         .submesh_sizes = {1, 2},
                         .stage_cost = {{{10, 6}, {20, 12}}, {{kNever, kNever}, {10, 6}}},
                         .most_successors = {}};
  EXPECT_THAT(PlanStages(problem).value()->stages, ElementsAre(PipelineStage{0, 2, 1}));
  problem.microbatches = 16;
  EXPECT_THAT(PlanStages(problem).value()->stages,
              ElementsAre(PipelineStage{0, 1, 0}, PipelineStage{1, 2, 0}));
  EXPECT_EQ(PlanStages(problem).value()->cost, 170);
}

std::string ErrorOf(const InterOpProblem& problem) {
  return std::string(PlanStages(problem).status().message());
}

TEST(PlanStages, RejectsWhatDoesNotFitTogether) {
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
  EXPECT_THAT(ErrorOf(bad), HasSubstr("more than fits memory"));
}

}  // namespace
}  // namespace orrery::transforms
