#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/training/training_step.h"

// Adapters add what they compute to a model that is as it was, and learn alone.

namespace orrery::semantics {
namespace lora_test_cc {
namespace {

constexpr absl::string_view kKeys =
    "layers=2,hidden=32,heads=4,kv_heads=2,seq=8,vocab=64,mlp=swiglu,ffn=48,flash=1";

// Whose dense feed-forwards may be experts.
const std::vector<std::string> kMixtures = {"", ",experts=4,topk=2,expert_ffn=16,shared_ffn=8"};

ir::Function Model(const std::string& more) {
  return ir::BuildModel("gpt", absl::StrCat(kKeys, more), 4);
}

double LossOf(const ir::Function& function, const Named& inputs) {
  return RunAll(function, inputs).outputs.begin()->second.Number(0);
}

void ExpectTheModelWhereAdaptersAreZero(const std::string& mixture) {
  const ir::Function plain = Model(mixture), adapted = Model(mixture + ",lora=4");
  Named inputs = RandomInputs(adapted, 3);
  const double other = LossOf(adapted, inputs);
  for (auto& [name, tensor] : inputs) {
    if (!absl::EndsWith(name, ".lora_b.weight")) continue;
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetNumber(i, 0);
  }
  Named of_plain;
  for (const ir::Input& input : plain.inputs()) {
    const std::string name(plain.value_name(input.value));
    of_plain.emplace(name, inputs.at(name));
  }
  EXPECT_EQ(LossOf(adapted, inputs), LossOf(plain, of_plain));
  EXPECT_NE(other, LossOf(plain, of_plain));
}

TEST(Lora, IsTheModelWhereAdaptersAreZero) {
  for (const std::string& mixture : kMixtures) {
    SCOPED_TRACE(mixture);
    ExpectTheModelWhereAdaptersAreZero(mixture);
  }
}

// However it is parallelized; no gradient is of a frozen weight.
void ExpectTheSameHoweverItIsSharded(const std::string& mixture) {
  ir::Function step = Model(mixture + ",lora=4");
  ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "sgd"}).ok());
  const Named inputs = RandomInputs(step, 7), expected = RunAll(step, inputs).outputs;
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(name == "loss" || absl::StrContains(name, ".lora_")) << name;
  }
  for (const transforms::ParallelPlan& plan : std::vector<transforms::ParallelPlan>{
           {.dp = 2}, {.hp = 2}, {.pp = 2, .microbatches = 2}, {.dp = 2, .zero = 3}}) {
    SCOPED_TRACE(ToString(plan));
    const auto parallel = transforms::ParallelTransform3d(step, transforms::ByFlops(plan), {});
    ASSERT_TRUE(parallel.ok()) << parallel.status();
    const PipelinedOutcome outcome =
        RunPipelined(*parallel, OrdersOf(plan.schedule->name, *parallel), inputs);
    ExpectSame(outcome.outputs, expected);
    EXPECT_EQ(outcome.lost, 0);
  }
}

TEST(Lora, LearnsTheSameHoweverItIsSharded) {
  for (const std::string& mixture : kMixtures) {
    SCOPED_TRACE(mixture);
    ExpectTheSameHoweverItIsSharded(mixture);
  }
}

}  // namespace
}  // namespace lora_test_cc
}  // namespace orrery::semantics
