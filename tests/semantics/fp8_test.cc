#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/builder.h"
#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/rebuild.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "tests/semantics/shard.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/fp8_mixed.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/split_backward.h"
#include "transforms/training/training_step.h"

// A step with 8-bit products computes what it computes without them: exactly where nothing is
// rounded, wherever its ranks are, and within what three bits allow where it is.

namespace orrery::semantics {
namespace fp8_test_cc {
namespace {

using transforms::ParallelPlan;
using transforms::PlainPrices;
using transforms::PlanContext;

// A forward function of f32 in bf16.
ir::Function InBf16(const ir::Function& function) {
  const auto narrow = [](const ir::TensorType& type) {
    ir::TensorType narrowed = type;
    if (type.dtype == ir::DType::kF32) narrowed.dtype = ir::DType::kBF16;
    return narrowed;
  };
  ir::Rebuild change;
  change.input = [&](const ir::Input&, const ir::TensorType& type) { return narrow(type); };
  change.uninferred = [&](ir::OpId, const ir::TensorType& type) { return narrow(type); };
  return ir::RebuildWithInputs(function, change).value();
}

ir::Function MlpStep(const std::string& optimizer) {
  ir::Function step =
      ir::Mlp({.layers = 4, .dim = 64, .batch = 192, .dtype = ir::DType::kBF16}).value();
  EXPECT_TRUE(transforms::AppendOptimizer(step, optimizer).value());
  return step;
}

// With the copy of each weight.
Named WithCopies(const ir::Function& step, Named inputs) {
  for (const ir::Input& input : step.inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    const std::string name(step.value_name(input.value));
    const Tensor& weight = inputs.at(name);
    Tensor copy(ir::DType::kF8, weight.dims());
    copy.floats() = weight.floats();
    inputs.emplace(absl::StrCat(name, ".f8"), std::move(copy));
  }
  return inputs;
}

struct Expected {
  explicit Expected(ir::Function of)
      : step(std::move(of)), inputs(RandomInputs(step, 7)), outputs(RunAll(step, inputs).outputs) {}

  ir::Function step;
  Named inputs, outputs;
};

int CountIn8Bits(const ir::Function& function) {
  int count = 0;
  for (const ir::OpId op : function.order()) {
    count += function.attributes(op).Find("out") != nullptr ? 1 : 0;
  }
  return count;
}

void ExpectSendsIn16Bits(const ir::Function& function) {
  for (const ir::OpId op : function.order()) {
    if (function.kind(op) != ir::OpKind::kSend) continue;
    EXPECT_NE(function.type(function.operands(op)[0]).dtype, ir::DType::kF8) << function.name();
  }
}

// Each copy that the update makes is of the weight that it makes.
void ExpectCopiesOfWeights(const Named& outputs) {
  for (const auto& [name, copy] : outputs) {
    if (!absl::EndsWith(name, ".f8'")) continue;
    const auto weight = outputs.find(absl::StrCat(name.substr(0, name.size() - 4), "'"));
    ASSERT_NE(weight, outputs.end()) << name;
    EXPECT_LE(ir::Distance(copy, weight->second), 1e-8) << name;
  }
}

// Products in 8 bits that ran; -1 where the step cannot be parallelized like this.
int ExpectSameStep(const Expected& expected, ParallelPlan plan, const PlanContext& context = {}) {
  plan.dtype = transforms::StepDType::kF8Mixed;
  SCOPED_TRACE(ToString(plan));
  const auto step =
      transforms::ParallelTransform3d(expected.step, transforms::ByFlops(plan), context);
  if (AsInfeasible(step.status()).has_value()) return -1;
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return -1;
  int products = 0;
  for (const ir::Function& function : step->Functions()) {
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function) << ir::Print(function);
    products += CountIn8Bits(function);
    ExpectSendsIn16Bits(function);
  }
  if (testing::Test::HasFailure()) return -1;
  const PipelinedOutcome outcome = RunPipelined(*step, OrdersOf(plan.schedule->name, *step),
                                                WithCopies(expected.step, expected.inputs));
  ExpectSame(outcome.outputs, expected.outputs, 1e-8);
  ExpectCopiesOfWeights(outcome.outputs);
  EXPECT_LE(outcome.disagreement, 1e-8);
  EXPECT_EQ(outcome.lost, 0);
  return products;
}

TEST(Fp8Mixed, IsTheMlpHoweverItIsSharded) {
  for (const char* optimizer : {"sgd", "adam"}) {
    const Expected expected(MlpStep(optimizer));
    for (const int64_t dp : CasesToWalk({2, 1, 4})) {
      for (const int64_t hp : {1, 2, 4}) {
        for (const int64_t pp : {1, 2}) {
          for (const int64_t microbatches : {1, 3}) {
            const int products = ExpectSameStep(
                expected, {.dp = dp, .hp = hp, .pp = pp, .microbatches = microbatches});
            EXPECT_EQ(products, 8) << "four forward, four backward";
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Fp8Mixed, IsTheMlpWhoeverKeepsWhat) {
  const Expected expected(MlpStep("adam"));
  for (const int64_t stage : {1, 2, 3}) {
    for (const int64_t pp : {1, 2}) {
      for (const int64_t group : {0, 2}) {
        for (const bool host : {false, true}) {
          ParallelPlan plan = {.dp = 4,
                               .pp = pp,
                               .microbatches = 3,
                               .zero = stage,
                               .zero_group = group,
                               .offload = {.optimizer = host}};
          EXPECT_GT(ExpectSameStep(expected, plan), 0);
          plan.dp = 2;
          plan.hp = 2;
          plan.microbatches = 1;
          EXPECT_GT(ExpectSameStep(expected, plan), 0);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Fp8Mixed, IsTheMlpInPartsAndAgain) {
  Expected expected(MlpStep("adam"));
  const auto recompute = transforms::ParseRecomputePolicy("match:^y").value();
  for (const int64_t hp : {1, 2}) {
    const ParallelPlan plan = {
        .dp = 2, .hp = hp, .pp = 2, .microbatches = 3, .recompute = recompute};
    EXPECT_GT(ExpectSameStep(expected, plan), 8) << "some run again";
  }
  EXPECT_TRUE(transforms::SplitBackward(expected.step).value());
  for (const int64_t zero : {0, 2, 3}) {
    const ParallelPlan plan = {
        .dp = 2, .hp = 2, .pp = 2, .microbatches = 3, .schedule = "zb-h1", .zero = zero};
    EXPECT_EQ(ExpectSameStep(expected, plan, {.split_backward = true}), 12);
  }
}

// With weights stored in several ways, biases, residuals and shared weights; by cost and by
// pattern.
TEST(Fp8Mixed, IsAnyStep) {
  constexpr PlainPrices::Rates kRates = {
      .flops = 1e9, .bytes = 1e12, .link = 1e11, .latency = 1e-9};
  int products = 0, sharded = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(120u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const RandomShape shape = {
        .seed = seed, .layers = 3, .batch = 96, .width_unit = 32, .tied = seed % 3 == 0};
    ir::Function step = InBf16(RandomForward(shape));
    ASSERT_TRUE(transforms::MakeTrainingStep(step, {.loss = {.kind = "mse"}}).ok());
    const Expected expected(std::move(step));
    const ParallelPlan plan = {.dp = 1 + seed % 2,
                               .hp = 1 + seed / 2 % 2,
                               .pp = 1 + seed / 4 % 2,
                               .microbatches = 1 + seed % 3,
                               .zero = seed % 4};
    const PlainPrices prices(transforms::MakeMesh(plan).value(), kRates);
    const int ran = ExpectSameStep(expected, plan, {.prices = seed % 5 < 2 ? &prices : nullptr});
    ASSERT_FALSE(HasFailure()) << ir::Print(expected.step).substr(0, 4000);
    sharded += ran >= 0 ? 1 : 0;
    products += std::max(ran, 0);
  }
  EXPECT_GT(sharded, CasesToWalk(40));
  EXPECT_GT(products, CasesToWalk(100));
}

// Two layers on 16 rows, and their loss.
ir::Function TwoLayers() {
  ir::Builder b("two_layers");
  const auto type = [](ir::Dims dims) {
    return ir::TensorType{ir::DType::kBF16, std::move(dims), {}};
  };
  const ir::ValueId x = b.Data("x", type({16, 32}));
  const ir::ValueId w0 = b.Parameter("w0", type({32, 64}));
  const ir::ValueId w1 = b.Parameter("w1", type({64, 32}));
  b.Return(b.MatMul(b.Relu(b.MatMul(x, w0, "y0"), "a0"), w1, "y1"));
  ir::Function step = std::move(b).Finalize().value();
  EXPECT_TRUE(
      transforms::MakeTrainingStep(step, {.optimizer = "none", .loss = {.kind = "mse"}}).ok());
  return step;
}

// Its gradients, rounded to the type of each value after each op.
Named Rounded(const ir::Function& step, const Named& inputs) {
  const ir::Execution execution = ir::Execute(step, inputs).value();
  Named gradients;
  for (size_t i = 0; i < execution.outputs.size(); ++i) {
    if (step.outputs()[i].role != ir::OutputRole::kGradient) continue;
    gradients.emplace(step.value_name(step.outputs()[i].value), execution.outputs[i]);
  }
  return gradients;
}

// Numbers that 3 bits hold: up to 16 in forward, and in backward sixteenths of them up to 1.
Named WholeInputs(const ir::Function& step) {
  Named inputs = RandomInputs(step, 3);
  for (auto& [name, tensor] : inputs) {
    const bool weight = name[0] == 'w';
    const int64_t columns = tensor.dims().back();
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const int64_t row = i / columns, column = i % columns;
      // Of a weight two elements a row and at most four a column.
      const bool is_zero = weight && (column + 5 * row) % (columns / 2) != 0;
      tensor.SetNumber(i, is_zero ? 0.0 : (row + column) % 3 == 0 ? -1.0 : 1.0);
    }
  }
  return inputs;
}

TEST(Fp8Mixed, IsExactOnSmallWholeNumbers) {
  const ir::Function step = TwoLayers();
  ir::Function mixed = step;
  ASSERT_TRUE(transforms::Fp8Mixed(mixed).value());
  const Named inputs = WholeInputs(step);
  const Named expected = Rounded(step, inputs), gradients = Rounded(mixed, inputs);
  ASSERT_EQ(gradients.size(), 2);
  for (const auto& [name, gradient] : expected) {
    EXPECT_EQ(ir::Distance(gradients.at(name), gradient), 0) << name;
    double largest = 0;
    for (const double value : gradient.floats()) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 0) << name;
  }
}

double Norm(const Tensor& x, const Tensor* minus = nullptr) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double value = x.Number(i) - (minus == nullptr ? 0 : minus->Number(i));
    sum += value * value;
  }
  return std::sqrt(sum);
}

// Three bits round by up to 2^-4 of a number. What makes w0's gradient has been through products
// with six rounded operands, and a Relu that opens or closes where its operand is near zero.
TEST(Fp8Mixed, IsNearOnRandomNumbers) {
  const ir::Function step = TwoLayers();
  ir::Function mixed = step;
  ASSERT_TRUE(transforms::Fp8Mixed(mixed).value());
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const Named inputs = RandomInputs(step, seed);
    const Named expected = Rounded(step, inputs), gradients = Rounded(mixed, inputs);
    for (const auto& [name, gradient] : expected) {
      const double error = Norm(gradients.at(name), &gradient) / Norm(gradient);
      EXPECT_LT(error, name == "dw0" ? 0.2 : 0.1) << name;
      EXPECT_GT(error, 0.005) << name << ": more bits than there are";
    }
  }
}

// The same products with other copies, and products that 4 bits cannot have stay in 16.
TEST(Nvfp4Mixed, IsFp8MixedWithCopiesOf4Bits) {
  ir::Function eight = MlpStep("adam"), four = MlpStep("adam");
  ASSERT_TRUE(transforms::Fp8Mixed(eight).value());
  ASSERT_TRUE(transforms::Nvfp4Mixed(four).value());
  EXPECT_EQ(absl::StrReplaceAll(ir::Print(eight), {{"f8", "f4"}}), ir::Print(four));
  EXPECT_TRUE(ir::Verify(four).ok()) << ir::Verify(four);
  const auto products = [](int64_t dim, ir::DType copies) {
    ir::Function step =
        ir::Mlp({.layers = 2, .dim = dim, .batch = 64, .dtype = ir::DType::kBF16}).value();
    EXPECT_TRUE(transforms::MixProducts(step, copies).ok());
    return CountIn8Bits(step);
  };
  EXPECT_EQ(products(48, ir::DType::kF8), products(64, ir::DType::kF8));
  EXPECT_EQ(products(48, ir::DType::kF4), 0) << "48 is no multiple of 32";
  EXPECT_EQ(products(64, ir::DType::kF4), products(64, ir::DType::kF8));
}

// Likewise with a scale for each 128 elements, of whole blocks alone.
TEST(Fp8Block, IsFp8MixedWithAScaleABlock) {
  const auto step = [](int64_t dim) {
    return ir::Mlp({.layers = 2, .dim = dim, .batch = 128, .dtype = ir::DType::kBF16}).value();
  };
  ir::Function eight = step(256), blocks = step(256), small = step(64);
  ASSERT_TRUE(transforms::Fp8Mixed(eight).value());
  ASSERT_TRUE(transforms::Fp8Block(blocks).value());
  EXPECT_EQ(absl::StrReplaceAll(ir::Print(eight), {{"f8", "f8b"}}), ir::Print(blocks));
  EXPECT_TRUE(ir::Verify(blocks).ok()) << ir::Verify(blocks);
  EXPECT_FALSE(transforms::Fp8Block(small).value()) << "64 is no block of 128";
}

// It is one product for Fp8Mixed however often it is asked.
TEST(Fp8Mixed, IsDoneOnce) {
  ir::Function step = MlpStep("adam");
  ASSERT_TRUE(transforms::Fp8Mixed(step).value());
  const std::string text = ir::Print(step);
  EXPECT_FALSE(transforms::Fp8Mixed(step).value());
  EXPECT_EQ(ir::Print(step), text);
}

}  // namespace
}  // namespace fp8_test_cc
}  // namespace orrery::semantics
