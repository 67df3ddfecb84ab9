#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/models/mlp.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

// BuildBackward against gradients that were written by hand. Whether they are the derivatives is
// for tests/semantics/ to say.

namespace orrery::transforms {
namespace backward_test_cc {
namespace {

std::map<std::string, int> CountOps(const ir::Function& function) {
  std::map<std::string, int> counts;
  for (const ir::OpId op : function.order()) ++counts[std::string(function.info(op).name)];
  return counts;
}

// The forward of ir::Mlp, with its loss.
ir::Function MlpForward(int64_t layers) {
  const ir::TensorType activation{ir::DType::kF32, {16, 8}, {}};
  ir::Builder b("mlp");
  ir::ValueId a = b.Data("x", activation);
  const ir::ValueId z = b.Data("z", activation);
  for (int64_t i = 0; i < layers; ++i) {
    const ir::ValueId w = b.Parameter(absl::StrCat("w", i), {ir::DType::kF32, {8, 8}, {}});
    a = b.Relu(b.MatMul(a, w, absl::StrCat("y", i)), absl::StrCat("a", i));
  }
  b.Return(b.Loss(a, z, 16, "l"), ir::OutputRole::kLoss);
  return std::move(b).Finalize().value();
}

// The notebook's MLP asks for the gradient of its input, too; nobody needs that one.
TEST(BuildBackward, HasTheOpsOfTheMlpButForTheGradientOfItsInput) {
  for (const int64_t layers : {1, 2, 5}) {
    ir::Function function = MlpForward(layers);
    ASSERT_TRUE(BuildBackward(function).value());
    std::map<std::string, int> expected =
        CountOps(ir::Mlp({.layers = layers, .dim = 8, .batch = 16}).value());
    if (--expected["MatMulGrad"] == 0) expected.erase("MatMulGrad");
    ++expected["MatMul"];
    EXPECT_EQ(CountOps(function), expected) << layers;
  }
}

TEST(BuildBackward, ReturnsGradientsLastLayerFirst) {
  ir::Function function = MlpForward(3);
  ASSERT_TRUE(BuildBackward(function).value());
  std::vector<std::string> parameters;
  for (const ir::Output& output : function.outputs()) {
    if (output.role == ir::OutputRole::kGradient)
      parameters.emplace_back(function.value_name(output.of));
  }
  EXPECT_THAT(parameters, testing::ElementsAre("w2", "w1", "w0"));
}

TEST(BuildBackward, LeavesGradientsThatAreThere) {
  ir::Function function = ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value();
  const std::string before = ir::Print(function);
  EXPECT_FALSE(BuildBackward(function).value());
  EXPECT_EQ(ir::Print(function), before);
}

std::string Error(const std::string& text) {
  ir::Function function = ir::ParseFunction(text).value();
  const absl::Status status = BuildBackward(function).status();
  return std::string(status.message());
}

TEST(BuildBackward, SaysWhichOpHasNoGradient) {
  EXPECT_EQ(Error("func @f (%x: f32[4] data) {\n %y: f32[4] = Relu(%x)\n return %y: result\n}"),
            "f: has no loss to differentiate; try attach-loss first");
  EXPECT_EQ(Error(R"(func @f (
  %x: f32[4,4] data,
  %z: f32[4,4] data,
  %w: f32[4,4] parameter
) {
  %y: f32[4,4] = MatMul(%w, %x)
  %g: f32[4,4] = ReluGrad(%y, %x)
  %l: f32[4,4] = Loss(%g, %z) {batch=4}
  return %l: loss
})"),
            "f: ReluGrad %g: has no gradient rule, and a parameter depends on it");
}

// What no parameter is behind needs no gradient, even where there is none.
TEST(BuildBackward, AsksNoGradientOfWhatOnlyDataIsBehind) {
  EXPECT_EQ(Error(R"(func @f (
  %x: f32[4,4] data,
  %z: f32[4,4] data,
  %w: f32[4,4] parameter
) {
  %g: f32[4,4] = ReluGrad(%x, %x)
  %y: f32[4,4] = MatMul(%g, %w)
  %l: f32[4,4] = Loss(%y, %z) {batch=4}
  return %l: loss
})"),
            "");
}

TEST(AttachLoss, WantsAResultOfFloatingPoint) {
  ir::Function function =
      ir::ParseFunction(
          "func @f (%x: i64[4] data) {\n %y: i64[4] = Identity(%x)\n return %y: result\n}")
          .value();
  EXPECT_EQ(AttachLoss(function).status().message(),
            "f: has no result of floating-point type to put a loss on; wanted one");
}

TEST(AttachLoss, FindsNamesThatAreFree) {
  ir::Function function = ir::ParseFunction(R"(func @f (
  %target: f32[4] data,
  %loss: f32[4] parameter
) {
  %y: f32[4] = Mul(%target, %loss)
  return %y: result
})")
                              .value();
  ASSERT_TRUE(AttachLoss(function).value());
  EXPECT_THAT(ir::Print(function),
              testing::HasSubstr("%loss': f32[4] = Loss(%y, %target') {batch=4}"));
}

// Back to a shape that has the batch behind time, or in one dimension with it, without its size: so
// microbatches are the same ops.
TEST(BuildBackward, ReshapesKeepTheBatchOpen) {
  auto function = ir::ParseFunction(R"(func @f (
  %x: f32[4,3,6] data,
  %w: f32[6,6] parameter,
  %z: f32[4,3,6] data
) {
  %h: f32[4,3,6] = MatMul(%x, %w)
  %t: f32[3,4,6] = Transpose(%h) {perm=[1, 0, 2]}
  %f: f32[12,6] = Reshape(%t) {shape=[-1, 6]}
  %r: f32[3,4,6] = Reshape(%f) {shape=[3, -1, 6]}
  %y: f32[4,3,6] = Transpose(%r) {perm=[1, 0, 2]}
  %l: f32[4,3,6] = Loss(%y, %z) {batch=4}
  return %l: loss
}
)");
  ASSERT_TRUE(function.ok()) << function.status();
  ASSERT_TRUE(BuildBackward(*function).value());
  const auto half = Microbatch(*function, 2);
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ(half->order().size(), function->order().size());
}

TEST(MakeTrainingStep, WantsSomethingToTrain) {
  auto function = ir::ParseFunction(R"(func @f (
  %x: f32[4,6] data,
  %w: f32[6,6] buffer
) {
  %y: f32[4,6] = MatMul(%x, %w)
  return %y: result
}
)");
  ASSERT_TRUE(function.ok()) << function.status();
  ir::Function forward = *function;
  EXPECT_TRUE(MakeTrainingStep(forward, {.optimizer = "adam", .loss = {.kind = "none"}}).ok());
  EXPECT_THAT(std::string(MakeTrainingStep(*function, {}).message()),
              testing::StartsWith("f: has no parameter to train; wanted one that the loss"));
}

}  // namespace
}  // namespace backward_test_cc
}  // namespace orrery::transforms
