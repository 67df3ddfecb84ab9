#include "search/bounds/time_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "search/settings/setting_test_util.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {
namespace time_bound_test_cc {
namespace {

TEST(LeastPipelineTime, IsThatOfTheBestCut) {
  EXPECT_DOUBLE_EQ(LeastPipelineTime(1, 5, {.all = 2}), 10);
  EXPECT_DOUBLE_EQ(LeastPipelineTime(4, 1, {.all = 2}), 2);          // stage by stage
  EXPECT_DOUBLE_EQ(LeastPipelineTime(2, 2, {.all = 3}), 4);          // 2 and 1
  EXPECT_DOUBLE_EQ(LeastPipelineTime(3, 2, {.all = 7}), 8);          // 4, 2 and 1
  EXPECT_NEAR(LeastPipelineTime(2, 1000, {.all = 2}), 1000.5, 0.1);  // nearly halves
  // What may go on beside it fills bubbles, but no more than these.
  EXPECT_DOUBLE_EQ(LeastPipelineTime(4, 1, {.all = 2, .beside = 0.5}), 1.5);
  EXPECT_DOUBLE_EQ(LeastPipelineTime(2, 2, {.all = 3, .beside = 2}), 3);
  EXPECT_DOUBLE_EQ(LeastPipelineTime(4, 1, {.all = 2, .gap = 0.1}), 1.7);
}

// Of the orders themselves, of as many ranks and microbatches as there are.
TEST(SplitsBackwards, IsSoForAnyNumberOfRanksAndMicrobatches) {
  int splits = 0, whole = 0;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    if (schedule->weighs_durations || schedule->asynchronous) continue;
    for (const int32_t ranks : {1, 2, 3, 4, 6, 8, 12, 16, 32}) {
      for (const int32_t microbatches : {ranks, 2 * ranks, 12 * ranks}) {
        const transforms::PipelineShape shape = schedule->ShapeOf(ranks, microbatches);
        if (!schedule->CheckShape(shape).ok()) continue;
        bool has_parts = false;
        for (const auto& order : schedule->OrdersOf(shape)) {
          has_parts = has_parts || std::ranges::any_of(order, [](const auto& step) {
                        return step.kind == transforms::StepKind::kInputGradient;
                      });
        }
        const bool told = SplitsBackwards(*schedule, shape);
        EXPECT_TRUE(told || !has_parts) << schedule->name << " " << ranks << " " << microbatches;
        splits += told && has_parts ? 1 : 0;
        whole += told ? 0 : 1;
      }
    }
  }
  EXPECT_GT(splits, 20);
  EXPECT_GT(whole, 20);
}

// So many fields: what stages take, and what is known of when they do.
struct Cut {
  std::vector<double> forward, backward;
  double all = 0;
};

// When all has run, in those orders, of stages that take so long.
double TimeOf(const transforms::RankOrders& orders, const Cut& cut) {
  const auto stages = static_cast<int32_t>(cut.forward.size());
  std::map<std::tuple<int32_t, int32_t, bool>, double> finish;  // stage, microbatch, backward
  std::vector<size_t> next(orders.size(), 0);
  std::vector<double> free(orders.size(), 0);
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t rank = 0; rank < orders.size(); ++rank) {
      if (next[rank] == orders[rank].size()) continue;
      const transforms::ScheduleStep& step = orders[rank][next[rank]];
      const bool backward = step.kind != transforms::StepKind::kForward;
      const bool first = step.stage == (backward ? stages - 1 : 0);
      const int32_t before = step.stage + (backward ? 1 : -1);
      const auto waits = finish.find({before, step.microbatch, backward});
      if (!first && waits == finish.end()) continue;
      const auto at = static_cast<size_t>(step.stage);
      const double start = std::max(free[rank], first ? 0 : waits->second);
      free[rank] = start + (backward ? cut.backward : cut.forward)[at];
      finish[{step.stage, step.microbatch, backward}] = free[rank];
      ++next[rank];
      moves = true;
    }
  }
  return *std::ranges::max_element(free);
}

// Whatever the cut, and however forward and backward are shared out.
TEST(LeastPipelineTime, IsNoMoreThanOrdersTake) {
  std::mt19937 random(20);
  const auto drawn = [&] { return std::pow(static_cast<double>(random() % 1000) / 1000, 3); };
  for (int i = 0; i < 300; ++i) {
    const char* const names[] = {"1f1b", "gpipe"};
    const transforms::PipelineSchedule& schedule =
        *transforms::FindSchedule(names[random() % 2]).value();
    const auto ranks = static_cast<int32_t>(1 + random() % 6);
    const auto microbatches = static_cast<int32_t>(1 + random() % 9);
    Cut cut;
    const double stays = 1 - 1.0 / microbatches;
    for (int32_t s = 0; s < ranks; ++s) {
      const double best = std::pow(stays, s);
      const double stage = i % 3 == 0 ? best : drawn();
      cut.forward.push_back(stage * (i % 2 == 0 ? 1.0 / 3 : drawn()));
      cut.backward.push_back(i % 3 == 0 ? stage - cut.forward.back() : drawn());
      cut.backward.back() = std::max(0.0, cut.backward.back());
      cut.all += cut.forward.back() + cut.backward.back();
    }
    const double takes = TimeOf(schedule.OrdersOf(schedule.ShapeOf(ranks, microbatches)), cut);
    EXPECT_LE(LeastPipelineTime(ranks, microbatches, {.all = cut.all}), takes * (1 + 1e-9))
        << schedule.name << " " << ranks << " " << microbatches;
  }
}

// Of products alone, or nearly so.
Setting LargeSetting() {
  Setting setting = MlpSetting("uniform:8@200Gbps,device=a100-80gb");
  setting.batch_size = 65536;
  setting.step = ir::Mlp({.layers = 4, .dim = 8192, .batch = setting.batch_size}).value();
  EXPECT_TRUE(transforms::AppendOptimizer(setting.step, "adam").ok());
  return setting;
}

// A bubble of fewer microbatches than stages costs what it does of any cut.
TEST(TimeBound, HasTheBubble) {
  const Setting setting = LargeSetting();
  TimeBound bound(setting);
  const auto of = [&](const ParallelPlan& plan) { return bound.Of(plan).seconds(); };
  EXPECT_NEAR(of({.pp = 4}), of({}), 0.05 * of({}));
  ParallelPlan interleaved = {.pp = 4, .microbatches = 4};
  const ParallelPlan plain = interleaved;
  interleaved.schedule = "interleaved";
  EXPECT_GT(of(plain), 1.2 * of(interleaved));  // of whose stages nothing is known
  ParallelPlan asynchronous = plain;
  asynchronous.schedule = "pipedream";
  EXPECT_EQ(bound.Of(asynchronous), Duration(0));
}

// What is made anew counts, and the update once a step.
TEST(TimeBound, HasRecomputationAndTheUpdate) {
  Setting setting = LargeSetting();
  TimeBound bound(setting);
  ParallelPlan again;
  again.recompute = transforms::ParseRecomputePolicy("match:.").value();
  EXPECT_GT(bound.Of(again).seconds(), 1.2 * bound.Of({}).seconds());
  ParallelPlan on_host;
  on_host.offload.optimizer = true;
  EXPECT_LT(bound.Of(on_host), bound.Of({}));
  EXPECT_LT(bound.Of({.dp = 4, .zero = 1}), bound.Of({.dp = 4}));
}

}  // namespace
}  // namespace time_bound_test_cc
}  // namespace orrery::search
