#include "transforms/strategies/pipedream_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace orrery::transforms::strategies {
namespace pipedream_plan_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// The slowest stage of layers first..last on all members of the lowest `levels`, by trying all.
class Enumeration {
 public:
  explicit Enumeration(const PipeDreamProblem& problem) : problem_(problem) {}

  double Best(size_t levels, int32_t first, int32_t last) {
    if (levels == 0) {
      return std::accumulate(problem_.seconds.begin() + first, problem_.seconds.begin() + last + 1,
                             0.0);
    }
    return Rest(levels, first, last, problem_.levels[levels - 1].members);
  }

 private:
  // Of the first stage each number of layers and members, then the rest.
  double Rest(size_t levels, int32_t first, int32_t last, int32_t members) {
    const PipeDreamLevel& level = problem_.levels[levels - 1];
    double best = std::numeric_limits<double>::infinity();
    for (int32_t end = first; end <= last; ++end) {
      const double inner = Best(levels - 1, first, end);
      double weights = 0;
      for (int32_t layer = first; layer <= end; ++layer)
        weights += problem_.weight_bytes[At(layer)];
      for (int32_t replicas = 1; replicas <= members; ++replicas) {
        if ((end == last) != (replicas == members)) continue;
        const double sync = 2 * (replicas - 1) * weights / level.bytes_per_second;
        double seconds = std::max(inner, sync) / replicas;
        if (end < last) {
          seconds = std::max({seconds, 2 * problem_.output_bytes[At(end)] / level.bytes_per_second,
                              Rest(levels, end + 1, last, members - replicas)});
        }
        best = std::min(best, seconds);
      }
    }
    return best;
  }

  const PipeDreamProblem& problem_;
};

PipeDreamProblem RandomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  const auto draw = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
  PipeDreamProblem problem;
  const int32_t layers = 1 + draw(5);
  for (int32_t layer = 0; layer < layers; ++layer) {
    problem.seconds.push_back(1 + draw(20));
    problem.weight_bytes.push_back(draw(10));
    problem.output_bytes.push_back(draw(10));
  }
  const int32_t levels = 1 + draw(2);
  for (int32_t level = 0; level < levels; ++level) {
    problem.levels.push_back({.members = 1 + draw(4), .bytes_per_second = 1.0 + draw(4)});
  }
  return problem;
}

TEST(PlanPipeDream, IsEnumeration) {
  int several = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const PipeDreamProblem problem = RandomProblem(seed);
    const auto layers = static_cast<int32_t>(problem.seconds.size());
    const PipeDreamPlan plan = PlanPipeDream(problem).value();
    EXPECT_DOUBLE_EQ(plan.seconds, Enumeration(problem).Best(problem.levels.size(), 0, layers - 1));
    several += plan.stages.size() > 1 ? 1 : 0;
    int32_t end = 0, workers = 0, wanted = 1;
    for (const PipeDreamLevel& level : problem.levels) wanted *= level.members;
    for (const PipeDreamStage& stage : plan.stages) {
      EXPECT_EQ(stage.begin, end);
      end = stage.end;
      workers += stage.replicas;
    }
    EXPECT_EQ(end, layers);
    EXPECT_EQ(workers, wanted);
  }
  EXPECT_GT(several, 100);
}

// Convolutions have few weights and long times, fully connected layers many weights: those are one
// stage, as in the paper's VGG-16 on 15-1.
TEST(PlanPipeDream, ReplicatesWhatHasFewWeights) {
  const PipeDreamPlan plan = PlanPipeDream({.seconds = {5, 5, 4, 1},
                                            .weight_bytes = {1, 1, 1, 100},
                                            .output_bytes = {8, 4, 1, 1},
                                            .levels = {{.members = 8, .bytes_per_second = 10}}})
                                 .value();
  EXPECT_THAT(plan.stages, ElementsAre(PipeDreamStage{0, 3, 7}, PipeDreamStage{3, 4, 1}));
  EXPECT_DOUBLE_EQ(plan.seconds, 2);
}

// With a network that is fast enough all workers are replicas of one stage: nothing is idle.
TEST(PlanPipeDream, IsDataParallelWhereWeightsTravelFast) {
  const PipeDreamPlan plan = PlanPipeDream({.seconds = {3, 1, 2},
                                            .weight_bytes = {1, 1, 1},
                                            .output_bytes = {1, 1, 1},
                                            .levels = {{.members = 4, .bytes_per_second = 1e6},
                                                       {.members = 2, .bytes_per_second = 1e5}}})
                                 .value();
  EXPECT_THAT(plan.stages, ElementsAre(PipeDreamStage{0, 3, 8}));
  EXPECT_DOUBLE_EQ(plan.seconds, 6.0 / 8);
}

// Between nodes a pipeline, within them replicas: weights travel only where that is fast.
TEST(PlanPipeDream, PlansLevelByLevel) {
  const PipeDreamPlan plan = PlanPipeDream({.seconds = {4, 4, 4, 4},
                                            .weight_bytes = {10, 10, 10, 10},
                                            .output_bytes = {1, 1, 1, 1},
                                            .levels = {{.members = 2, .bytes_per_second = 100},
                                                       {.members = 2, .bytes_per_second = 2}}})
                                 .value();
  EXPECT_THAT(plan.stages, ElementsAre(PipeDreamStage{0, 2, 2}, PipeDreamStage{2, 4, 2}));
  EXPECT_DOUBLE_EQ(plan.seconds, 4);
}

TEST(PlanPipeDream, SaysWhatIsWrong) {
  const auto message = [](const PipeDreamProblem& problem) {
    return std::string(PlanPipeDream(problem).status().message());
  };
  const std::vector<PipeDreamLevel> levels = {{.members = 2, .bytes_per_second = 1}};
  EXPECT_THAT(message({.seconds = {}, .weight_bytes = {}, .output_bytes = {}, .levels = levels}),
              HasSubstr("wanted at least 1 layer"));
  EXPECT_THAT(message({.seconds = {1}, .weight_bytes = {}, .output_bytes = {1}, .levels = levels}),
              HasSubstr("got 0 figures for 1 layers"));
  EXPECT_THAT(
      message({.seconds = {-1}, .weight_bytes = {1}, .output_bytes = {1}, .levels = levels}),
      HasSubstr("a layer of -1, wanted at least 0"));
  EXPECT_THAT(message({.seconds = {1},
                       .weight_bytes = {1},
                       .output_bytes = {1},
                       .levels = {{.members = 0, .bytes_per_second = 1}}}),
              HasSubstr("a level of 0 members"));
}

}  // namespace
}  // namespace pipedream_plan_test_cc
}  // namespace orrery::transforms::strategies
