#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/layout.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/sanitized_test_util.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/pad_dimensions.h"

// A padded step whose weights are zero where they were padded computes what the step does, on one
// device and on ranks that share it out.

namespace orrery::semantics {
namespace padding_test_cc {
namespace {

using transforms::PaddedFunction;
using transforms::PadDimensions;
using transforms::ParallelPlan;
using transforms::UnevenShards;

// Where an element goes in a dimension of `blocks` parts, each of which is padded at its end.
int64_t PlaceOf(int64_t at, int64_t from, int64_t to, int64_t blocks) {
  const int64_t part = from / blocks;
  return at / part * (to / blocks) + at % part;
}

// Packed weights have a block each of queries, keys and values.
int64_t BlocksOf(const std::string& name) { return absl::StrContains(name, "qkv") ? 3 : 1; }

// The position in a tensor of `to` of element `at` of one of `from`.
int64_t PlaceOf(int64_t at, const ir::Dims& from, const ir::Dims& to, int64_t blocks) {
  int64_t place = 0, stride = 1;
  for (size_t d = from.size(); d-- > 0;) {
    const int64_t of = from[d] == to[d] ? 1 : blocks;
    place += PlaceOf(at % from[d], from[d], to[d], of) * stride;
    at /= from[d];
    stride *= to[d];
  }
  return place;
}

// With zeros around.
Tensor Padded(const Tensor& tensor, const ir::Dims& dims, int64_t blocks) {
  Tensor padded(tensor.dtype(), dims);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    padded.CopyElement(PlaceOf(i, tensor.dims(), dims, blocks), tensor, i);
  }
  return padded;
}

Named Padded(const Named& inputs, const ir::Function& function) {
  Named padded;
  for (const ir::Input& input : function.inputs()) {
    const std::string name(function.value_name(input.value));
    padded[name] = Padded(inputs.at(name), function.type(input.value).dims, BlocksOf(name));
  }
  return padded;
}

// Outputs as they should be once they are padded, too: what was added stays zero. Heads that are
// added to those of one head of keys see the mean of its values, and their output weights learn of
// it: of these, what was there before.
Named Padded(const Named& outputs, const Named& like, bool stays_zero = true) {
  Named padded;
  for (const auto& [name, tensor] : like) {
    const Tensor& before = outputs.at(name);
    Tensor& after = padded[name] = Padded(before, tensor.dims(), BlocksOf(name));
    if (stays_zero || !absl::StrContains(name, "attn.proj.weight")) continue;
    after = tensor;
    for (int64_t i = 0; i < before.size(); ++i) after.CopyElement(i, before, i);
  }
  return padded;
}

struct Case {
  std::string family, keys;
  bool simplify = true;  // else packed weights stay packed
};

ir::Function StepOf(const Case& of, int64_t batch) {
  ir::Function step = ir::BuildModel(of.family, of.keys, batch);
  const absl::Status status =
      transforms::MakeTrainingStep(step, {.optimizer = "adam", .simplify = of.simplify});
  EXPECT_TRUE(status.ok()) << status;
  return step;
}

// Vocabularies are multiples of all degrees: what is added to them takes part.
const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"gpt", "layers=1,hidden=8,heads=4,head_dim=2,seq=4,vocab=210,ffn=13"},
      {"gpt", "layers=2,hidden=10,heads=11,head_dim=2,seq=3,vocab=210,ffn=9,tied_embeddings=0"},
      {"gpt",
       "layers=1,hidden=8,heads=8,kv_heads=4,head_dim=2,seq=4,vocab=210,ffn=11,mlp=swiglu,"
       "flash=1"},
      {"gpt", "layers=1,hidden=8,heads=9,kv_heads=1,head_dim=2,seq=4,vocab=210,ffn=11"},
      {"gpt", "layers=1,hidden=8,heads=4,head_dim=2,seq=4,vocab=210,ffn=11,qkv=packed", false},
      {"bert", "layers=1,hidden=8,heads=4,seq=4,vocab=11,classes=2"},
      {"gpt", "layers=1,hidden=8,heads=4,seq=4,vocab=210,mlp=swiglu,ffn=11,experts=4"},
      {"gpt", "layers=1,hidden=8,heads=4,seq=4,vocab=210,mlp=swiglu,ffn=11,lora=2"},
      {"gpt",
       "layers=1,hidden=8,heads=4,seq=4,vocab=210,mlp=swiglu,ffn=9,attention=latent,q_rank=8,"
       "kv_rank=8,rope_dim=4,v_dim=6"},
      {"hybrid",
       "pattern=M*-,hidden=8,heads=4,seq=8,vocab=210,ffn=9,mamba_heads=8,mamba_dim=2,"
       "groups=4,state=2,chunk=4"},
      {"resnet", "depth=18,image=32,width=4,classes=4"}};
  return cases;
}

std::string NamesOf(const PaddedFunction& padded) { return transforms::ToString(padded.padded); }

TEST(Padding, LeavesWhatIsComputed) {
  std::set<std::string> kinds;
  for (const Case& each : Cases()) {
    const ir::Function step = StepOf(each, 2);
    const Named inputs = RandomInputs(step, 3);
    const Named expected = RunAll(step, inputs).outputs;
    size_t most = 0;
    for (const int64_t multiple : {2, 3, 5, 7}) {
      const PaddedFunction padded = PadDimensions(step, {.ranks = multiple}).value();
      most = std::max(most, padded.padded.size());
      SCOPED_TRACE(absl::StrCat(each.keys, " ", multiple, ": ", NamesOf(padded)));
      ASSERT_TRUE(ir::Verify(padded.function).ok()) << ir::Verify(padded.function);
      const Outcome outcome = RunAll(padded.function, Padded(inputs, padded.function));
      const bool one_key = absl::StrContains(each.keys, "kv_heads=1");
      ExpectSame(outcome.outputs, Padded(expected, outcome.outputs, !one_key));
      for (const auto& what : padded.padded) kinds.insert(what.name);
      if (HasFailure()) FAIL() << ir::Print(padded.function);
    }
    EXPECT_GE(most, 2u) << each.keys;
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"channels", "heads", "table", "width"}));
}

TEST(Padding, LeavesWhatMlpsCompute) {
  for (const int64_t width : {10, 12}) {
    ir::Function step = ir::Mlp({.layers = 4, .dim = width, .batch = 6}).value();
    ASSERT_TRUE(transforms::AppendOptimizer(step, "adam").value());
    const Named inputs = RandomInputs(step, 3);
    const Named expected = RunAll(step, inputs).outputs;
    for (const int64_t multiple : {2, 3, 5, 7}) {
      const PaddedFunction padded = PadDimensions(step, {.ranks = multiple}).value();
      SCOPED_TRACE(absl::StrCat(multiple, ": ", NamesOf(padded)));
      EXPECT_EQ(padded.padded.empty(), width % multiple == 0);
      const Outcome outcome = RunAll(padded.function, Padded(inputs, padded.function));
      ExpectSame(outcome.outputs, Padded(expected, outcome.outputs));
    }
  }
}

TEST(Padding, LeavesWhatRandomStepsCompute) {
  int padded_steps = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(100u); ++seed) {
    const ir::Function step = RandomStep({.seed = seed,
                                          .layers = 2 + static_cast<int>(seed % 4),
                                          .batch = 6,
                                          .width_unit = 5 + seed % 3,
                                          .tied = seed % 2 == 0},
                                         seed % 3 == 0 ? "none" : "momentum");
    const int64_t multiple = 2 + seed % 4;
    const PaddedFunction padded = PadDimensions(step, {.ranks = multiple}).value();
    SCOPED_TRACE(absl::StrCat("seed=", seed, ": ", NamesOf(padded)));
    ASSERT_TRUE(ir::Verify(padded.function).ok()) << ir::Verify(padded.function);
    padded_steps += padded.padded.empty() ? 0 : 1;
    const Named inputs = RandomInputs(step, seed);
    const Named expected = RunAll(step, inputs).outputs;
    const Outcome outcome = RunAll(padded.function, Padded(inputs, padded.function));
    ExpectSame(outcome.outputs, Padded(expected, outcome.outputs));
    if (HasFailure()) FAIL() << ir::Print(step) << ir::Print(padded.function);
  }
  EXPECT_GT(padded_steps, CasesToWalk(100u) / 4);
}

// The plan's step, in the order of 1f1b, on inputs that are padded.
void ExpectSamePlan(const ir::Function& step, const ParallelPlan& plan, const Named& inputs,
                    const Named& expected) {
  SCOPED_TRACE(transforms::ToString(plan));
  const transforms::PlainPrices prices(
      transforms::MakeMesh(plan).value(),
      {.flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9});
  const auto parallel =
      transforms::ParallelTransform3d(step, transforms::ByFlops(plan), {.prices = &prices});
  ASSERT_TRUE(parallel.ok()) << parallel.status();
  for (const ir::Function& function : parallel->Functions()) {
    ASSERT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  }
  const PaddedFunction padded = PadDimensions(step, {.ranks = plan.hp}).value();
  EXPECT_EQ(parallel->padded, padded.padded);
  const Named given = Padded(inputs, padded.function);
  const PipelinedOutcome outcome = RunPipelined(*parallel, OrdersOf("1f1b", *parallel), given);
  ExpectSame(outcome.outputs, Padded(expected, RunAll(padded.function, given).outputs), 1e-8);
  EXPECT_LE(outcome.disagreement, 1e-8);
  EXPECT_EQ(outcome.lost, 0);
}

TEST(Padding, RanksComputeWhatOneDeviceDoes) {
  for (const Case& each : {Cases()[1], Cases()[2], Cases()[5]}) {
    const ir::Function step = StepOf(each, 4);
    const Named inputs = RandomInputs(step, 5);
    const Named expected = RunAll(step, inputs).outputs;
    const auto run = [&](ParallelPlan plan) {
      plan.uneven = UnevenShards::kPad;
      ExpectSamePlan(step, plan, inputs, expected);
    };
    for (const int64_t hp : CasesToWalk({3, 2, 5, 7})) {
      SCOPED_TRACE(each.keys);
      run({.hp = hp});
      run({.hp = hp, .sharding = transforms::ShardingMethod::kMegatron});
      if (HasFailure()) return;
    }
    run({.dp = 2, .hp = 3, .zero = 2});
    run({.hp = 3, .pp = 2, .microbatches = 2});
  }
}

// What is padded is what a model of those sizes is: the oracle is the model itself.
TEST(Padding, IsTheModelOfTheseSizes) {
  const std::string flags = "layers=2,hidden=20,seq=4,head_dim=2";
  const auto step = [&](const std::string& keys) {
    return transforms::ModelStep("gpt", absl::StrCat(flags, ",", keys), 2);
  };
  struct Pair {
    std::string from, to, padded;
    int64_t multiple, share = 1;
  };
  for (const Pair& each : std::vector<Pair>{
           {"heads=4,ffn=13,vocab=11", "heads=5,ffn=15,vocab=15",
            "vocabulary 11 -> 15, heads 4 -> 5, width 13 -> 15", 5},
           {"heads=4,ffn=13,vocab=11,tied_embeddings=0",
            "heads=6,ffn=15,vocab=12,tied_embeddings=0",
            "vocabulary 11 -> 12, heads 4 -> 6, width 13 -> 15", 3},
           {"heads=12,kv_heads=4,ffn=10,vocab=10", "heads=15,kv_heads=5,ffn=10,vocab=10",
            "heads 12 -> 15", 5},
           {"heads=8,kv_heads=4,ffn=12,vocab=12,flash=1,mlp=swiglu",
            "heads=12,kv_heads=6,ffn=12,vocab=12,flash=1,mlp=swiglu", "heads 8 -> 12", 3},
           {"heads=8,kv_heads=1,ffn=12,vocab=12", "heads=9,kv_heads=1,ffn=12,vocab=12",
            "heads 8 -> 9", 3},
           {"heads=4,ffn=16,vocab=16,qkv=packed", "heads=6,ffn=18,vocab=18,qkv=packed",
            "vocabulary 16 -> 18, heads 4 -> 6, width 16 -> 18", 3},
           {"heads=4,ffn=25,vocab=100", "heads=6,ffn=48,vocab=120",
            "vocabulary 100 -> 120, heads 4 -> 6, width 25 -> 48", 3, 8},
           // The share is not worth more than half of it.
           {"heads=6,ffn=11,vocab=120", "heads=6,ffn=12,vocab=120", "width 11 -> 12", 3, 8},
           // Queries divide: all ranks have all heads of keys.
           {"heads=12,kv_heads=4,ffn=12,vocab=12", "heads=12,kv_heads=4,ffn=12,vocab=12", "", 3},
           // More than half would be padding.
           {"heads=2,ffn=15,vocab=10", "heads=2,ffn=15,vocab=10", "", 5}}) {
    SCOPED_TRACE(each.from);
    const PaddedFunction padded =
        PadDimensions(step(each.from), {.ranks = each.multiple, .share = each.share}).value();
    EXPECT_EQ(NamesOf(padded), each.padded);
    EXPECT_EQ(ir::Print(padded.function), ir::Print(step(each.to)));
    const PaddedFunction again =
        PadDimensions(padded.function, {.ranks = each.multiple, .share = each.share}).value();
    EXPECT_TRUE(again.padded.empty()) << NamesOf(again);
  }
}

// Whatever the model, no crash, data and hidden widths under norms are what they were, and each
// dimension is divided or as it was.
TEST(Padding, OfAnyFamilyVerifies) {
  for (const auto& [family, keys] : std::vector<std::pair<std::string, std::string>>{
           {"gpt", "layers=1,hidden=16,heads=4,seq=4,vocab=8,mlp=swiglu,ffn=10,experts=4"},
           {"gpt", "layers=1,hidden=16,heads=4,seq=4,vocab=8,mlp=swiglu,ffn=10,lora=2"},
           {"gpt",
            "layers=1,hidden=16,heads=4,seq=4,vocab=8,mlp=swiglu,attention=latent,"
            "q_rank=8,kv_rank=8,rope_dim=4,v_dim=6"},
           {"hybrid",
            "pattern=M*-,hidden=8,heads=4,seq=8,vocab=8,ffn=8,mamba_heads=8,mamba_dim=2,"
            "groups=4,state=2,chunk=4"},
           {"resnet", "depth=18,image=32,width=4,classes=4"},
           {"resnet", "depth=50,image=32,width=4,classes=10"},
           {"lstm", "layers=1,hidden=4,seq=3,vocab=8"},
           {"bert", "layers=1,hidden=8,heads=2,seq=4,vocab=12,classes=4"}}) {
    const ir::Function step = transforms::ModelStep(family, keys, 2);
    for (const int64_t multiple : {2, 3, 5, 7}) {
      SCOPED_TRACE(absl::StrCat(family, ":", keys, " ", multiple));
      const PaddedFunction padded = PadDimensions(step, {.ranks = multiple}).value();
      ASSERT_TRUE(ir::Verify(padded.function).ok()) << ir::Verify(padded.function);
      ASSERT_EQ(step.inputs().size(), padded.function.inputs().size());
      for (size_t i = 0; i < step.inputs().size(); ++i) {
        const ir::Input& input = step.inputs()[i];
        const ir::Dims& before = step.type(input.value).dims;
        const ir::Dims& after = padded.function.type(padded.function.inputs()[i].value).dims;
        for (size_t d = 0; d < before.size(); ++d) {
          if (before[d] == after[d]) continue;
          EXPECT_NE(input.role, ir::InputRole::kData);
          EXPECT_LE(after[d], 2 * before[d]);
        }
      }
      for (const auto& each : padded.padded) EXPECT_EQ(each.to % multiple, 0) << each.name;
      EXPECT_TRUE(PadDimensions(padded.function, {.ranks = multiple})->padded.empty());
    }
  }
}

// Where hp divides all, a plan that pads is one that does not.
TEST(Padding, OfWhatDividesIsNothing) {
  const ir::Function step =
      transforms::ModelStep("gpt", "layers=2,hidden=8,heads=4,seq=4,vocab=8,ffn=8", 4);
  for (const ParallelPlan& plan :
       {ParallelPlan{.hp = 2}, ParallelPlan{.hp = 4}, ParallelPlan{.dp = 2}}) {
    ParallelPlan pads = plan;
    pads.uneven = UnevenShards::kPad;
    const auto whole = transforms::ParallelTransform3d(step, transforms::ByFlops(plan));
    const auto padded = transforms::ParallelTransform3d(step, transforms::ByFlops(pads));
    ASSERT_TRUE(whole.ok() && padded.ok()) << whole.status() << padded.status();
    EXPECT_TRUE(padded->padded.empty());
    ASSERT_EQ(whole->Functions().size(), padded->Functions().size());
    for (size_t i = 0; i < whole->Functions().size(); ++i) {
      EXPECT_EQ(ir::Print(whole->Functions()[i]), ir::Print(padded->Functions()[i]));
    }
  }
}

}  // namespace
}  // namespace padding_test_cc
}  // namespace orrery::semantics
