#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "search/spaces/choice_list.h"
#include "search/spaces/weight_strategies.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/training_step.h"

// Plans with strategies of weights drawn at random compute what one device does.

namespace orrery::semantics {
namespace choices_test_cc {
namespace {

using transforms::ParallelPlan;

struct Model {
  const char *family, *keys;
};
constexpr Model kModels[] = {
    {"mlp", "layers=3,dim=8"},
    {"gpt", "layers=2,hidden=8,heads=4,seq=4,vocab=8"},
    {"gpt", "layers=2,hidden=16,heads=4,kv_heads=2,seq=4,vocab=8,mlp=swiglu,ffn=16,flash=1"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4,topk=2"},
    {"bert", "layers=2,hidden=8,heads=4,seq=4,vocab=8,classes=4"}};

// Nothing: pins that no op has a strategy for.
void ExpectSameOrInfeasible(const ir::Function& step, const ParallelPlan& plan, const Named& inputs,
                            const Named& expected, int& ran) {
  const transforms::PlainPrices prices(transforms::MakeMesh(plan).value(), {});
  const auto pipelined = transforms::ParallelTransform3d(step, plan, {.prices = &prices});
  if (AsInfeasible(pipelined.status()).has_value()) return;
  ASSERT_TRUE(pipelined.ok()) << pipelined.status();
  const PipelinedOutcome outcome = RunPipelined(*pipelined, OrdersOf("1f1b", *pipelined), inputs);
  ExpectSame(outcome.outputs, expected);
  EXPECT_LE(outcome.disagreement, kTolerance);
  EXPECT_EQ(outcome.lost, 0);
  ++ran;
}

TEST(Strategies, ComputeWhatOneDeviceDoes) {
  int ran = 0, drawn = 0;
  for (const Model& model : kModels) {
    ir::Function step = ir::BuildModel(model.family, model.keys, /*batch=*/4);
    ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
    const Named inputs = RandomInputs(step, 3);
    const Named expected = RunAll(step, inputs).outputs;
    search::PlanList plans;
    for (const ParallelPlan& plan :
         std::vector<ParallelPlan>{{.hp = 2},
                                   {.hp = 4},
                                   {.dp = 2, .hp = 2, .microbatches = 2},
                                   {.hp = 2, .pp = 2, .microbatches = 2}}) {
      plans.Insert(transforms::ByFlops(plan));
    }
    for (const auto grain : {search::StrategyGrain::kKinds, search::StrategyGrain::kWeights}) {
      const search::ChoiceList list(
          plans, std::make_unique<search::WeightStrategies>(search::WeightKinds(step, grain)));
      std::mt19937 random(11);
      for (int i = 0; i < CasesToWalk(20); ++i, ++drawn) {
        const ParallelPlan plan = list[random() % list.size()];
        SCOPED_TRACE(
            absl::StrCat(model.family, ":", model.keys, " ", transforms::ToString(plan, {})));
        ExpectSameOrInfeasible(step, plan, inputs, expected, ran);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(2 * ran, drawn);
}

}  // namespace
}  // namespace choices_test_cc
}  // namespace orrery::semantics
