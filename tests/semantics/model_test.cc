#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/schedules/schedule.h"
#include "transforms/sharding/shard.h"
#include "transforms/training/training_step.h"

// The built-in models, small: what simplifying, differentiating and sharding them must not change.

namespace orrery::semantics {
namespace model_test_cc {
namespace {

using transforms::ParallelPlan;

struct Model {
  absl::string_view family, keys;
  /// Whether each sample is computed by itself, so that replicas change nothing.
  bool exact = true;
};

constexpr Model kModels[] = {
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0"},
    {"gpt", "layers=3,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=1"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,qkv=packed,flash=1"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,qkv=packed,flash=1,tied_embeddings=0"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=12"},
    {"gpt", "layers=2,hidden=16,heads=4,kv_heads=2,seq=4,vocab=8,mlp=swiglu,ffn=16,flash=1"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4,capacity_factor=2"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=6,experts=4,topk=2"},
    {"gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,experts=2,topk=1,capacity_factor=0.5"},
    {"gpt",
     "layers=2,hidden=8,heads=2,head_dim=4,seq=4,vocab=8,mlp=swiglu,ffn=12,attention=latent,q_rank="
     "6,kv_rank=4,rope_dim=2,v_dim=3,experts=4,expert_ffn=4,shared_ffn=6,dense_layers=1,"
     "capacity_factor=2"},
    {"hybrid",
     "pattern=M*-M,hidden=8,heads=2,seq=4,vocab=8,ffn=12,mamba_heads=4,mamba_dim=2,groups=2,state="
     "2,"
     "chunk=2"},
    {"hybrid",
     "pattern=MEM,hidden=8,seq=4,vocab=8,mamba_heads=4,mamba_dim=2,groups=2,state=2,chunk=3,"
     "experts="
     "4,topk=2,expert_ffn=4,shared_ffn=6,latent=4,capacity_factor=2"},
    {"hybrid", "pattern=-,hidden=8,heads=2,seq=4,vocab=8,ffn=6,predicted=2,predicted_pattern=*-"},
    {"bert", "layers=2,hidden=8,heads=2,seq=4,vocab=8,classes=4"},
    {"bert", "layers=2,hidden=8,heads=2,seq=4,vocab=8,head=words"},
    {"lstm", "layers=2,hidden=4,seq=3,vocab=8"},
    {"resnet", "depth=18,image=32,width=2,classes=4", false},
};

constexpr int64_t kBatch = 4;

std::string Show(const Model& model) { return absl::StrCat(model.family, ":", model.keys); }

ir::Function Step(const Model& model, const std::string& optimizer, bool simplify = true) {
  ir::Function function = ir::BuildModel(model.family, model.keys, kBatch);
  const absl::Status status =
      transforms::MakeTrainingStep(function, {.optimizer = optimizer, .simplify = simplify});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  return function;
}

// The sum of the losses, and gradients and updated values by the name of what they are of.
Named Results(const ir::Function& function, const Named& inputs) {
  const Named outputs = RunAll(function, inputs).outputs;
  Named results;
  for (const ir::Output& output : function.outputs()) {
    const Tensor& tensor = outputs.at(std::string(function.value_name(output.value)));
    if (output.role == ir::OutputRole::kLoss) {
      Tensor& sum = results.try_emplace("loss", ir::DType::kF64, ir::Dims{}).first->second;
      for (const double value : tensor.floats()) sum.floats()[0] += value;
    } else if (output.of.valid()) {
      results[absl::StrCat(ir::ToString(output.role), " ", function.value_name(output.of))] =
          tensor;
    }
  }
  return results;
}

// The parts "w.0", "w.1" … of a packed weight that simplifying has taken apart, put together as
// a tensor of `type`; along the one dimension in which they differ from it.
Tensor Joined(const Named& parts, const std::string& name, const ir::TensorType& type) {
  Tensor whole(type.dtype, type.dims);
  int64_t begin = 0;
  for (int i = 0; parts.contains(absl::StrCat(name, ".", i)); ++i) {
    const Tensor& part = parts.at(absl::StrCat(name, ".", i));
    size_t dim = 0;
    while (dim + 1 < type.dims.size() && part.dims()[dim] == type.dims[dim]) ++dim;
    const ir::AroundDim from = ir::SplitAround(part.dims(), dim);
    for (int64_t at = 0; at < part.size(); ++at) {
      const int64_t outer = at / (from.size * from.inner), rest = at % (from.size * from.inner);
      whole.CopyElement((outer * type.dims[dim] + begin) * from.inner + rest, part, at);
    }
    begin += part.dims()[dim];
  }
  return whole;
}

TEST(Models, SimplifyingChangesNothingThatIsComputed) {
  for (const Model& model : kModels) {
    SCOPED_TRACE(Show(model));
    const ir::Function plain = Step(model, "none", false), simple = Step(model, "none", true);
    const Named inputs = RandomInputs(simple, 3);
    Named whole = inputs, results = Results(simple, inputs);
    for (const ir::Input& input : plain.inputs()) {
      const std::string name(plain.value_name(input.value));
      if (inputs.contains(name)) continue;
      whole[name] = Joined(inputs, name, plain.type(input.value));
      results["gradient " + name] = Joined(results, "gradient " + name, plain.type(input.value));
    }
    ExpectSame(results, Results(plain, whole));
  }
}

TEST(Models, GradientsAreTheDerivativesOfTheLoss) {
  constexpr double kStep = 1e-5;
  for (const Model& model : kModels) {
    SCOPED_TRACE(Show(model));
    const ir::Function step = Step(model, "none");
    Named inputs = RandomInputs(step, 5);
    const Named here = Results(step, inputs);
    const auto loss = [&] { return Results(step, inputs).at("loss").floats()[0]; };
    const double middle = loss();
    int parameters = 0, looked_at = 0, compared = 0;
    for (const ir::Input& input : step.inputs()) {
      if (input.role != ir::InputRole::kParameter || ++parameters % 3 != 1) continue;
      ++looked_at;
      const std::string name(step.value_name(input.value));
      ASSERT_TRUE(here.contains("gradient " + name)) << name;
      // One element a parameter, each time another one.
      Tensor& tensor = inputs.at(name);
      const size_t at = static_cast<size_t>(parameters * 7) % tensor.floats().size();
      double& number = tensor.floats()[at];
      const double before = number;
      number = before + kStep;
      const double above = loss();
      number = before - kStep;
      const double below = loss();
      number = before;
      const double left = (middle - below) / kStep, right = (above - middle) / kStep;
      if (std::abs(left - right) > 1e-2 * (1 + std::abs(left))) continue;  // a ReLU bends
      ++compared;
      EXPECT_NEAR(here.at("gradient " + name).floats()[at], (above - below) / (2 * kStep),
                  1e-5 * (1 + std::abs(left)))
          << name << "[" << at << "]";
    }
    EXPECT_GE(2 * compared, looked_at);  // an LSTM has eight parameters in all
    EXPECT_GT(compared, 0);
  }
}

TEST(Models, ShardedTheyAreTheSame) {
  for (const Model& model : kModels) {
    const ir::Function step = Step(model, "adam");
    const Named inputs = RandomInputs(step, 7);
    const Named expected = RunAll(step, inputs).outputs;
    for (const auto& [dp, hp] :
         std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 2}, {2, 2}, {4, 1}}) {
      if (!model.exact && dp > 1) continue;
      SCOPED_TRACE(absl::StrCat(Show(model), " dp=", dp, " hp=", hp));
      const auto sharded = transforms::Shard(step, ir::Mesh({{"dp", dp}, {"hp", hp}}));
      ASSERT_TRUE(sharded.ok()) << sharded.status();
      ASSERT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
      const Outcome outcome = RunAll(*sharded, inputs);
      ExpectSame(outcome.outputs, expected);
      EXPECT_LE(outcome.disagreement, kTolerance);
    }
  }
}

TEST(Models, PipelinedTheyAreTheSame) {
  int ran = 0;
  for (const Model& model : kModels) {
    if (!model.exact) continue;
    const ir::Function step = Step(model, "momentum");
    const Named inputs = RandomInputs(step, 9);
    const Named expected = RunAll(step, inputs).outputs;
    for (const ParallelPlan& plan :
         std::vector<ParallelPlan>{{.microbatches = 2},
                                   {.pp = 2, .microbatches = 2},
                                   {.hp = 2, .pp = 2, .microbatches = 4},
                                   {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2}}) {
      SCOPED_TRACE(absl::StrCat(Show(model), " dp=", plan.dp, " hp=", plan.hp, " pp=", plan.pp,
                                " K=", plan.microbatches));
      const auto pipelined = transforms::ParallelTransform3d(step, transforms::ByFlops(plan));
      ASSERT_TRUE(pipelined.ok()) << pipelined.status();
      const transforms::RankOrders orders = OrdersOf("1f1b", *pipelined);
      const PipelinedOutcome outcome = RunPipelined(*pipelined, orders, inputs);
      ExpectSame(outcome.outputs, expected);
      EXPECT_LE(outcome.disagreement, kTolerance);
      EXPECT_EQ(outcome.lost, 0);
      ++ran;
    }
  }
  EXPECT_GT(ran, 10);
}

}  // namespace
}  // namespace model_test_cc
}  // namespace orrery::semantics
