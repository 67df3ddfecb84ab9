#include <gtest/gtest.h>

#include <string>

#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/training_step.h"

// What is left of a training step, or of a function with a loss, where forward alone is asked for.

namespace orrery::transforms {
namespace keep_forward_test_cc {
namespace {

std::string Kept(ir::Function function) {
  EXPECT_TRUE(KeepForward(function));
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  EXPECT_FALSE(IsTrained(function));
  return ir::Print(function);
}

// Neither the loss nor z, nor dy0, which is a result of the backward pass.
constexpr char kForwardOfMlp[] = R"(func @mlp (
  %x: f32[8,4] data,
  %w0: f32[4,4] parameter,
  %w1: f32[4,4] parameter
) {
  %y0: f32[8,4] = MatMul(%x, %w0)
  %a0: f32[8,4] = Relu(%y0)
  %y1: f32[8,4] = MatMul(%a0, %w1)
  %a1: f32[8,4] = Relu(%y1)
  return %a1: result
}
)";

TEST(KeepForward, TakesLossGradientsAndUpdatesOut) {
  ir::Function mlp = ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value();
  EXPECT_EQ(Kept(mlp), kForwardOfMlp);
  ASSERT_TRUE(AppendOptimizer(mlp, "adam").ok());
  EXPECT_EQ(Kept(mlp), kForwardOfMlp);
}

TEST(KeepForward, ReturnsWhatEachLossIsOfOnceAndOtherResults) {
  EXPECT_EQ(Kept(ParseLines("%x: f32[8,4] data, %w: f32[4,5] parameter, %labels: i64[8] data, "
                            "%more: i64[8] data, %z: f32[8,5] data\n"
                            "%y: f32[8,5] = MatMul(%x, %w)\n"
                            "%a: f32[8,5] = Relu(%y)\n"
                            "%l: f32[8] = CrossEntropy(%y, %labels) {batch=8}\n"
                            "%m: f32[8] = CrossEntropy(%y, %more) {batch=8}\n"
                            "%n: f32[8,5] = Loss(%a, %z) {batch=8}\n"
                            "return %l: loss, %a: result, %m: loss, %n: loss")),
            R"(func @f (
  %x: f32[8,4] data,
  %w: f32[4,5] parameter
) {
  %y: f32[8,5] = MatMul(%x, %w)
  %a: f32[8,5] = Relu(%y)
  return %y: result, %a: result
}
)");
}

TEST(KeepForward, LeavesAForwardAsItIs) {
  ir::Function forward = ParseLines(
      "%x: f32[8,4] data, %unused: f32[8,4] data\n%y: f32[8,4] = Relu(%x)\nreturn %y: result");
  const std::string before = ir::Print(forward);
  EXPECT_FALSE(KeepForward(forward));
  EXPECT_EQ(ir::Print(forward), before);
}

}  // namespace
}  // namespace keep_forward_test_cc
}  // namespace orrery::transforms
