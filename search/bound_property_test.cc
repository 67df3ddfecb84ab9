#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "search/bounds/bounds.h"
#include "search/evaluate.h"
#include "search/random_question_test_util.h"
#include "support/sanitized_test_util.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace bound_property_test_cc {
namespace {

// What a run needs and takes is never less than the bounds say: on devices that are alike or not,
// by either cost model, of stacks that fuse and plans of all sorts.
TEST(BoundProperty, NoRunBeatsItsBounds) {
  int played = 0, told = 0, near = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(30u); ++seed) {
    Drawing draw(seed);
    const Setting setting = DrawQuestion(draw);
    Bounds bounds(setting);
    for (int i = 0; i < 10; ++i) {
      const ParallelPlan plan = DrawPlanFor16(draw, setting);
      const auto run = Play(setting, plan);
      if (!run.ok()) continue;
      ++played;
      const PlanBound bound = bounds.Of(plan);
      const std::string text = absl::StrCat("seed ", seed, ": ", setting.model_name, " on ",
                                            setting.cluster.name, ": ", ToString(plan));
      EXPECT_LE(bound.memory, run->report.peak_memory) << text;
      EXPECT_LE(bound.time, run->report.step_time) << text;
      if (bound.time > Duration(0)) ++told;
      if (bound.time * 2 > run->report.step_time) ++near;
    }
  }
  EXPECT_GT(played, CasesToWalk(100));
  EXPECT_GT(told, played / 2);  // or it says little
  EXPECT_GT(near, played / 5);
}

// No bound reads an axis that says so: of plans that are not listed it is known by others.
TEST(BoundProperty, ReadsNoDetails) {
  int changed = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(30u); ++seed) {
    Drawing draw(seed);
    const Setting setting = DrawQuestion(draw);
    Bounds bounds(setting);
    const ParallelPlan plan = transforms::Settled(DrawPlanFor16(draw, setting), setting.base);
    const PlanBound bound = bounds.Of(plan);
    for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
      if (!axis->detail) continue;
      for (const absl::string_view text : axis->examples) {
        ParallelPlan other = plan;
        ASSERT_TRUE(axis->parse(text, other).ok()) << axis->flag << " " << text;
        changed += other == plan ? 0 : 1;
        const PlanBound of_other = bounds.Of(other);
        EXPECT_EQ(of_other.memory, bound.memory) << axis->flag << " " << text;
        EXPECT_EQ(of_other.time, bound.time) << axis->flag << " " << text;
      }
    }
  }
  EXPECT_GT(changed, CasesToWalk(200));
}

// Where nothing but products takes long, and nothing is cut, there is little between both.
TEST(BoundProperty, BoundsAreNearWhereProductsAreAll) {
  for (const char* model : {"kernels", "roofline"}) {
    Setting setting;
    setting.batch_size = 65536;
    setting.step = StepInType("mlp", "layers=4,dim=8192", setting.batch_size, ir::DType::kBF16);
    setting.cluster = cluster::ParseCluster("dgx-h100:1").value();
    setting.cost_model = cost_models::MakeCostModel(model).value();
    Bounds bounds(setting);
    const auto ratio = [&](const ParallelPlan& plan) {
      return bounds.Of(plan).time.seconds() / Play(setting, plan)->report.step_time.seconds();
    };
    EXPECT_GT(ratio({}), 0.96) << model;
    EXPECT_GT(ratio({.microbatches = 4}), 0.96) << model;
    // One microbatch goes through one stage after another, with sends between them.
    EXPECT_GT(ratio({.pp = 4}), 0.85) << model;
    ParallelPlan again = {.microbatches = 2};
    again.recompute = transforms::ParseRecomputePolicy("full").value();
    EXPECT_GT(ratio(again), 0.96) << model;
    for (const ParallelPlan& plan : {ParallelPlan(), ParallelPlan{.pp = 4}, again}) {
      EXPECT_LE(ratio(plan), 1) << model;
    }
  }
}

}  // namespace
}  // namespace bound_property_test_cc
}  // namespace orrery::search
