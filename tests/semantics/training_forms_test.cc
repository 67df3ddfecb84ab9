#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/models/model_test_util.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/lora.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

// Optimizers, adapters and quantized weights compute the same however the step is spread over
// ranks; and adapters learn what the chain rule makes of the gradients of the weights that they
// stand for.

namespace orrery::semantics {
namespace training_forms_test_cc {
namespace {

using transforms::ParallelPlan;

constexpr absl::string_view kLlama =
    "layers=2,hidden=32,heads=4,kv_heads=2,seq=8,vocab=64,mlp=swiglu,norm=rms,ffn=48,flash=1,"
    "bias=0,tied_embeddings=0";
constexpr absl::string_view kGpt = "layers=2,hidden=16,heads=2,seq=8,vocab=32";

ir::Function StepOf(absl::string_view keys, const transforms::StepOptions& options) {
  ir::Function step = ir::BuildModel("gpt", keys, 4);
  const absl::Status status = transforms::MakeTrainingStep(step, options);
  EXPECT_TRUE(status.ok()) << status;
  return step;
}

// `priced`: tensor parallelism by prices, and not by columns and rows.
void ExpectTheSameHoweverItIsSpread(const ir::Function& step,
                                    const std::vector<ParallelPlan>& plans, bool priced = false) {
  const Named inputs = RandomInputs(step, 7), expected = RunAll(step, inputs).outputs;
  for (const ParallelPlan& plan : plans) {
    SCOPED_TRACE(ToString(plan));
    const transforms::PlainPrices prices(
        transforms::MakeMesh(plan).value(),
        {.flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9});
    const auto parallel = transforms::ParallelTransform3d(step, transforms::ByFlops(plan),
                                                          {.prices = priced ? &prices : nullptr});
    ASSERT_TRUE(parallel.ok()) << parallel.status();
    const PipelinedOutcome outcome =
        RunPipelined(*parallel, OrdersOf(plan.schedule->name, *parallel), inputs);
    ExpectSame(outcome.outputs, expected);
    EXPECT_LE(outcome.disagreement, kTolerance);
    EXPECT_EQ(outcome.lost, 0);
  }
}

const std::vector<ParallelPlan>& Plans() {
  static const auto& plans =
      *new std::vector<ParallelPlan>{{},
                                     {.dp = 2},
                                     {.hp = 2},
                                     {.pp = 2, .microbatches = 2},
                                     {.dp = 2, .zero = 1},
                                     {.dp = 2, .microbatches = 2, .zero = 2},
                                     {.dp = 2, .zero = 3},
                                     {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2, .zero = 1},
                                     {.dp = 4, .hp = 2, .zero = 3}};
  return plans;
}

// Muon makes whole matrices orthogonal, of which ranks have parts: by hp, by ZeRO, and by both. The
// whole step computes it as one op, the others as many.
TEST(Optimizers, ComputeTheSameHoweverTheyAreSpread) {
  for (const char* optimizer : {"adagrad", "lion", "adafactor", "muon"}) {
    for (const absl::string_view keys : {kLlama, kGpt}) {
      SCOPED_TRACE(absl::StrCat(optimizer, " ", keys));
      ExpectTheSameHoweverItIsSpread(StepOf(keys, {.optimizer = optimizer}), Plans());
    }
  }
}

// A step of Adafactor in which all that it knows tells: gradients beside the moments that are
// there, the norm that it clips by, and how large weights are. Those of its defaults hardly do.
ir::Function Adafactor(const ir::Function& model) {
  ir::Function step = model;
  const absl::Status status = transforms::MakeTrainingStep(step, {.optimizer = "adafactor"});
  EXPECT_TRUE(status.ok()) << status;
  const std::string text = absl::StrReplaceAll(
      ir::Print(step), {{"{parameters=", "{beta2=0.25, clip=0.001, lr=100.0, parameters="}});
  absl::StatusOr<ir::Function> parsed = ir::ParseFunction(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *std::move(parsed) : step;
}

// Means and norms are over all of a parameter, of which ranks have parts.
TEST(Optimizers, AdafactorAddsUpWhatRanksHave) {
  std::vector<ParallelPlan> plans = Plans();
  plans.push_back({.hp = 4});
  plans.push_back({.dp = 2, .hp = 2, .zero = 2});
  plans.push_back({.dp = 2, .pp = 2, .microbatches = 2, .zero = 3});
  plans.back().recompute = transforms::ParseRecomputePolicy("full").value();
  for (const absl::string_view keys : {kLlama, kGpt}) {
    SCOPED_TRACE(keys);
    const ir::Function step = Adafactor(ir::BuildModel("gpt", keys, 4));
    ExpectTheSameHoweverItIsSpread(step, plans);
    ExpectTheSameHoweverItIsSpread(step, plans, true);
  }
}

// Experts are matrices in a row, each with means of its own; the norms are of all of them.
TEST(Optimizers, AdafactorIsOfAllMatricesOfAParameter) {
  ExpectTheSameHoweverItIsSpread(
      Adafactor(ir::BuildModel("gpt",
                               "layers=2,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4,"
                               "tied_embeddings=0",
                               8)),
      {{.ep = 2},
       {.dp = 2, .ep = 2, .microbatches = 2, .zero = 1},
       {.pp = 2, .cp = 2, .ep = 2, .microbatches = 2, .zero = 3}},
      true);
}

// 3 ranks divide neither rows nor columns, and of 16 bits a master copy is what is updated.
TEST(Optimizers, AdafactorTakesUnevenShardsAndMasterCopies) {
  ExpectTheSameHoweverItIsSpread(Adafactor(ir::BuildModel("gpt", kLlama, 6)),
                                 {{.dp = 3, .zero = 1}, {.dp = 3, .zero = 3}});
  ExpectTheSameHoweverItIsSpread(Adafactor(ir::BuildModel("gpt", kLlama, 4, ir::DType::kBF16)),
                                 {{.dp = 2, .zero = 1}, {.hp = 2}, {.dp = 2, .hp = 2, .zero = 3}});
}

// 3 ranks do not divide the dimensions of weights.
TEST(Optimizers, MuonGathersUnevenShards) {
  ir::Function step = ir::BuildModel("gpt", kLlama, 6);
  ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "muon"}).ok());
  ExpectTheSameHoweverItIsSpread(step, {{.dp = 3, .zero = 1}, {.dp = 3, .zero = 3}});
}

// Master copies of 16 bits are what Muon updates.
TEST(Optimizers, MuonUpdatesMasterCopies) {
  ir::Function step = ir::BuildModel("gpt", kLlama, 4, ir::DType::kBF16);
  ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "muon"}).ok());
  ExpectTheSameHoweverItIsSpread(step, {{.dp = 2, .zero = 1}, {.hp = 2}});
}

// Adapters.

const transforms::LoraOptions kAdapters = {.rank = 4, .alpha = 2};

TEST(Lora, ComputesTheSameHoweverItIsSpread) {
  for (const absl::string_view keys : {kLlama, kGpt}) {
    SCOPED_TRACE(keys);
    const ir::Function step = StepOf(keys, {.optimizer = "adam", .lora = kAdapters});
    for (const ir::Output& output : step.outputs()) {
      if (output.role != ir::OutputRole::kUpdated) continue;
      EXPECT_TRUE(absl::StrContains(step.value_name(output.of), ".lora_"));
    }
    std::vector<ParallelPlan> plans = Plans();
    plans.push_back({.dp = 2, .zero = 3});
    plans.back().recompute = transforms::ParseRecomputePolicy("full").value();
    ExpectTheSameHoweverItIsSpread(step, plans);
  }
}

double LossOf(const Named& outputs) { return outputs.at("loss").Number(0); }

// Inputs of `step` from those of `all` by their names.
Named InputsOf(const ir::Function& step, const Named& all) {
  Named inputs;
  for (const ir::Input& input : step.inputs()) {
    const std::string name(step.value_name(input.value));
    inputs.emplace(name, all.at(name));
  }
  return inputs;
}

TEST(Lora, IsTheModelWhereBIsZero) {
  const ir::Function base = StepOf(kGpt, {.optimizer = "none"});
  const ir::Function step = StepOf(kGpt, {.optimizer = "none", .lora = kAdapters});
  Named inputs = RandomInputs(step, 3);
  const double other = LossOf(RunAll(step, inputs).outputs);
  for (auto& [name, tensor] : inputs) {
    if (!absl::StrContains(name, ".lora_b")) continue;
    for (double& value : tensor.floats()) value = 0;
  }
  const double expected = LossOf(RunAll(base, InputsOf(base, inputs)).outputs);
  EXPECT_NEAR(LossOf(RunAll(step, inputs).outputs), expected, 1e-12);
  EXPECT_GT(std::abs(other - expected), 1e-6);
}

// to += scale a' b, of matrices that may count as their transposes.
struct Matrix {
  const Tensor& of;
  bool flips = false;
  int64_t rows() const { return of.dims()[flips ? 1 : 0]; }
  int64_t columns() const { return of.dims()[flips ? 0 : 1]; }
  double at(int64_t r, int64_t c) const {
    return of.Number(flips ? c * of.dims()[1] + r : r * of.dims()[1] + c);
  }
};
Tensor Product(double scale, const Matrix& a, const Matrix& b) {
  Tensor to(ir::DType::kF64, {a.rows(), b.columns()});
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t c = 0; c < b.columns(); ++c) {
      double sum = 0;
      for (int64_t k = 0; k < a.columns(); ++k) sum += a.at(r, k) * b.at(k, c);
      to.SetNumber(r * b.columns() + c, scale * sum);
    }
  }
  return to;
}

// W' = W + s A B: dA = s dW' B', dB = s A' dW', of the model with W' in the place of W.
TEST(Lora, LearnsByTheChainRule) {
  for (const absl::string_view keys : {kLlama, kGpt}) {
    SCOPED_TRACE(keys);
    const ir::Function base = StepOf(keys, {.optimizer = "none"});
    const ir::Function step = StepOf(keys, {.optimizer = "none", .lora = kAdapters});
    Named inputs = RandomInputs(step, 5);
    for (auto& [name, tensor] : inputs) {
      if (!absl::StrContains(name, ".lora_")) continue;
      for (double& value : tensor.floats()) value *= 0.25;
    }
    const Named ours = RunAll(step, inputs).outputs;
    const double scale = kAdapters.alpha / static_cast<double>(kAdapters.rank);
    Named merged = InputsOf(base, inputs);
    std::vector<std::string> adapted;
    for (const auto& [name, tensor] : merged) {
      const std::string of = name.substr(0, name.rfind(".weight"));
      if (!inputs.contains(of + ".lora_a.weight")) continue;
      adapted.push_back(of);
    }
    EXPECT_EQ(adapted.size(), keys == kLlama ? 14u : 12u) << absl::StrCat(adapted.size());
    for (const std::string& of : adapted) {
      const Tensor sum =
          Product(scale, {inputs.at(of + ".lora_a.weight")}, {inputs.at(of + ".lora_b.weight")});
      Tensor& weight = merged.at(of + ".weight");
      for (int64_t i = 0; i < weight.size(); ++i) {
        weight.SetNumber(i, weight.Number(i) + sum.Number(i));
      }
    }
    const Named theirs = RunAll(base, merged).outputs;
    EXPECT_NEAR(LossOf(ours), LossOf(theirs), 1e-9);
    Named expected;
    for (const std::string& of : adapted) {
      const Tensor& gradient = theirs.at(absl::StrCat("d", of, ".weight"));
      const Matrix a{inputs.at(of + ".lora_a.weight"), true};
      const Matrix b{inputs.at(of + ".lora_b.weight"), true};
      expected[absl::StrCat("d", of, ".lora_a.weight")] = Product(scale, {gradient}, b);
      expected[absl::StrCat("d", of, ".lora_b.weight")] = Product(scale, a, {gradient});
    }
    ExpectSame(ours, expected);
  }
}

// Quantized weights are numbers that other types hold, too: a step over them is that over these.
TEST(FrozenWeights, ComputeTheSameHoweverTheyAreStored) {
  for (const char* form : {"nf4", "int8"}) {
    SCOPED_TRACE(form);
    const ir::Function wide = StepOf(kLlama, {.optimizer = "sgd", .lora = kAdapters});
    const ir::Function step =
        StepOf(kLlama, {.optimizer = "sgd", .lora = kAdapters, .frozen_dtype = form});
    Named inputs = RandomInputs(wide, 7);
    const Named expected = RunAll(wide, inputs).outputs;
    for (const ir::Input& input : step.inputs()) {
      Tensor& tensor = inputs.at(std::string(step.value_name(input.value)));
      const ir::TensorType& type = step.type(input.value);
      if (tensor.is_float()) tensor = Tensor::OfFloats(type.dtype, type.dims, tensor.floats());
    }
    ExpectSame(RunAll(step, inputs).outputs, expected);
    ExpectTheSameHoweverItIsSpread(step, Plans());
  }
}

// What is kept from forward to backward are weights as they are stored, not what products read.
TEST(FrozenWeights, AreCastAgainInBackward) {
  const ir::Function step =
      StepOf(kLlama, {.optimizer = "sgd", .lora = kAdapters, .frozen_dtype = "nf4"});
  const auto parallel = transforms::ParallelTransform3d(step, transforms::ByFlops({.dp = 2}), {});
  ASSERT_TRUE(parallel.ok()) << parallel.status();
  const auto casts = [](const ir::Function& function) {
    int count = 0;
    for (const ir::OpId op : function.order()) {
      count += function.kind(op) == ir::OpKind::kCast &&
               ir::IsQuantized(function.type(function.operands(op)[0]).dtype);
    }
    return count;
  };
  const transforms::PipelineStage& stage = parallel->stages[0];
  EXPECT_EQ(casts(stage.forward.function), 15);  // of two layers and the last product
  // But for the first three, as nobody asks for the gradient of what a frozen table says.
  EXPECT_EQ(casts(stage.backward.function), 12);
  for (const ir::Output& output : stage.forward.function.outputs()) {
    if (output.role != ir::OutputRole::kSaved) continue;
    const ir::OpId maker = stage.forward.function.producer(output.value);
    EXPECT_FALSE(maker.valid() && stage.forward.function.kind(maker) == ir::OpKind::kCast)
        << stage.forward.function.value_name(output.value);
  }
}

// Frozen weights along hp, by cost and by the pattern.

std::optional<ir::Function> Sharded(const ir::Function& step, int64_t hp,
                                    std::optional<transforms::SequenceParallel> pattern,
                                    double* seconds = nullptr) {
  const ir::Mesh mesh({{"dp", 1}, {"hp", hp}});
  // Rows of products by whole weights would be cheaper than to exchange anything.
  const transforms::PlainPrices prices(mesh,
                                       {.flops = 1e9, .bytes = 1e10, .link = 1e9, .latency = 1e-7});
  transforms::AutoShardReport report;
  auto sharded = transforms::AutoShard(step, mesh, transforms::BatchedInputs(step), prices,
                                       {.pattern = pattern}, &report);
  EXPECT_TRUE(sharded.ok()) << sharded.status();
  if (!sharded.ok()) return std::nullopt;
  EXPECT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
  if (seconds != nullptr) *seconds = report.seconds;
  return *std::move(sharded);
}

constexpr std::optional<transforms::SequenceParallel> kWays[] = {
    std::nullopt, transforms::SequenceParallel::kOff, transforms::SequenceParallel::kOn,
    transforms::SequenceParallel::kAuto};

TEST(FrozenWeights, AreSharedByHp) {
  for (const char* form : {"none", "nf4", "int8"}) {
    for (const absl::string_view keys : {kLlama, kGpt}) {
      const ir::Function step =
          StepOf(keys, {.optimizer = "adam", .lora = kAdapters, .frozen_dtype = form});
      const Named inputs = RandomInputs(step, 7), expected = RunAll(step, inputs).outputs;
      for (const int64_t hp : {2, 4}) {
        for (const auto& way : kWays) {
          SCOPED_TRACE(absl::StrCat(form, " ", keys, " hp ", hp, " way ",
                                    way.has_value() ? static_cast<int>(*way) : -1));
          const auto sharded = Sharded(step, hp, way);
          ASSERT_TRUE(sharded.has_value());
          int whole = 0;
          for (const ir::Input& input : sharded->inputs()) {
            const ir::TensorType& type = sharded->type(input.value);
            const bool matrix = input.role == ir::InputRole::kFrozen && type.dims.size() > 1;
            const bool table = absl::StartsWith(sharded->value_name(input.value), "w");
            if (!matrix || table) continue;
            whole += ir::LocalType(type, sharded->mesh()).dims == type.dims;
          }
          // Keys and values of fewer heads than ranks are for prices to split.
          EXPECT_LE(whole, keys == kLlama && hp == 4 && way.has_value() ? 4 : 0);
          const Outcome outcome = RunAll(*sharded, inputs);
          ExpectSame(outcome.outputs, expected);
          EXPECT_LE(outcome.disagreement, kTolerance);
          if (HasFailure()) return ADD_FAILURE() << ir::Print(*sharded);
        }
      }
    }
  }
}

// What is made of a quantized weight is a weight: no rank computes rows with all of it, which would
// be faster than with the weights as they were.
TEST(FrozenWeights, AreNoFasterInFewerBits) {
  const auto seconds = [&](const char* form, const auto& way) {
    const ir::Function step =
        StepOf(kLlama, {.optimizer = "adam", .lora = kAdapters, .frozen_dtype = form});
    double of = 0;
    Sharded(step, 2, way, &of);
    return of;
  };
  for (const auto& way : kWays) {
    SCOPED_TRACE(way.has_value() ? static_cast<int>(*way) : -1);
    for (const char* form : {"nf4", "int8"}) EXPECT_GE(seconds(form, way), seconds("none", way));
  }
}

}  // namespace
}  // namespace training_forms_test_cc
}  // namespace orrery::semantics
