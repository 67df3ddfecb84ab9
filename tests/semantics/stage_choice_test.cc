#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

// Wherever stages begin, a pipelined step computes what one device does.

namespace orrery::semantics {
namespace stage_choice_test_cc {
namespace {

using transforms::ParallelPlan;
using transforms::StagesBy;

// Whether there are such stages; if so, they are compared with one device.
bool ExpectSameInStages(const ir::Function& step, const ParallelPlan& plan,
                        const transforms::PlanContext& context = {}) {
  SCOPED_TRACE(ToString(plan));
  const auto pipelined = transforms::ParallelTransform3d(step, plan, context);
  if (AsInfeasible(pipelined.status()).has_value()) return false;
  EXPECT_TRUE(pipelined.ok()) << pipelined.status();
  if (!pipelined.ok()) return false;
  for (const ir::Function& function : pipelined->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
  const Named inputs = RandomInputs(step, 7);
  const PipelinedOutcome sharded =
      RunPipelined(*pipelined, OrdersOf(plan.schedule->name, *pipelined), inputs);
  ExpectSame(sharded.outputs, RunAll(step, inputs).outputs);
  EXPECT_LE(sharded.disagreement, kTolerance);
  EXPECT_EQ(sharded.lost, 0);
  return true;
}

ir::Function Step(absl::string_view family, absl::string_view keys) {
  ir::Function step = ir::BuildModel(family, keys, 4);
  const absl::Status status = transforms::MakeTrainingStep(step, {.optimizer = "momentum"});
  EXPECT_TRUE(status.ok()) << status;
  return step;
}

TEST(StageChoice, ChangesNothingThatIsComputed) {
  struct Model {
    absl::string_view family, keys;
    int64_t microbatches;
  };
  constexpr Model kModels[] = {
      {"gpt", "layers=3,hidden=8,heads=2,seq=4,vocab=8", 2},
      {"gpt", "layers=3,hidden=8,heads=2,seq=4,vocab=64,tied_embeddings=0", 2},
      {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4", 1},
      {"bert", "layers=3,hidden=8,heads=2,seq=4,vocab=8,classes=4", 2},
      {"lstm", "layers=2,hidden=4,seq=3,vocab=8", 2},
      {"resnet", "depth=18,image=32,width=2,classes=4", 1},
  };
  for (const Model& model : kModels) {
    const ir::Function step = Step(model.family, model.keys);
    int feasible = 0;
    for (const StagesBy by : {StagesBy::kLayers, StagesBy::kCost, StagesBy::kOps}) {
      for (const int64_t pp : {2, 3, 5}) {
        SCOPED_TRACE(absl::StrCat(model.family, ":", model.keys));
        feasible += ExpectSameInStages(
                        step, {.pp = pp, .microbatches = model.microbatches, .stages_by = by})
                        ? 1
                        : 0;
      }
    }
    EXPECT_GE(feasible, model.family == "lstm" ? 0 : 9) << model.family << ":" << model.keys;
  }
}

TEST(StageChoice, ChangesNothingWithChunksAndOtherAxes) {
  const ir::Function step = Step("gpt", "layers=4,hidden=8,heads=2,seq=4,vocab=32");
  for (const ParallelPlan& choice :
       {ParallelPlan{.stages_by = StagesBy::kCost}, ParallelPlan{.stages_by = StagesBy::kLayers},
        ParallelPlan{.split_at = "h[.][0-2][.]mlp[.]up$"},
        ParallelPlan{.layers_per_stage = {1, 1, 1, 1}}}) {
    ParallelPlan plan = choice;
    plan.dp = 2;
    plan.hp = 2;
    plan.pp = 4;
    plan.microbatches = 2;
    EXPECT_TRUE(ExpectSameInStages(step, plan));
    plan.dp = 1;
    plan.pp = 2;
    plan.microbatches = 4;
    plan.schedule = "interleaved";
    EXPECT_TRUE(ExpectSameInStages(step, plan, {.chunks = 2}));
  }
}

}  // namespace
}  // namespace stage_choice_test_cc
}  // namespace orrery::semantics
