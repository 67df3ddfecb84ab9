#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/fp8_mixed.h"
#include "transforms/training/training_step.h"

// For which values gradients are computed, and how those of several uses add up; which weights have
// 8-bit copies.

namespace orrery::transforms {
namespace backward_gradients_test_cc {
namespace {

// The gradients by finite differences of the sum of the loss, and those that BuildBackward makes,
// of each parameter. Returns the names of the parameters that have one.
std::string CheckGradients(const std::string& lines) {
  const ir::Function forward = ParseLines(lines);
  ir::Function backward = forward;
  EXPECT_TRUE(BuildBackward(backward).value());
  EXPECT_TRUE(ir::Verify(backward).ok()) << ir::Verify(backward);
  ir::NamedTensors inputs = RandomTensors(forward);
  const auto run = ir::Execute(backward, inputs, {.round = false});
  EXPECT_TRUE(run.ok()) << run.status();
  const auto loss = [&] {
    const auto at = ir::Execute(forward, inputs, {.round = false});
    double sum = 0;
    for (size_t o = 0; o < at->outputs.size(); ++o) {
      if (forward.outputs()[o].role != ir::OutputRole::kLoss) continue;
      for (int64_t i = 0; i < at->outputs[o].size(); ++i) sum += at->outputs[o].Number(i);
    }
    return sum;
  };
  std::string names;
  for (size_t o = 0; o < backward.outputs().size(); ++o) {
    if (backward.outputs()[o].role != ir::OutputRole::kGradient) continue;
    const std::string name = ir::ExecutionName(backward, backward.outputs()[o].of);
    absl::StrAppend(&names, names.empty() ? "" : " ", name);
    ir::Tensor& parameter = inputs.at(name);
    for (int64_t i = 0; i < parameter.size(); ++i) {
      const double x = parameter.Number(i), step = 1e-4;
      parameter.SetNumber(i, x + step);
      const double above = loss();
      parameter.SetNumber(i, x - step);
      const double below = loss();
      parameter.SetNumber(i, x);
      EXPECT_NEAR(run->outputs[o].Number(i), (above - below) / (2 * step), 1e-4) << name << i;
    }
  }
  return names;
}

TEST(BuildBackward, AddsUpTheGradientsOfAllUses) {
  EXPECT_EQ(CheckGradients(R"(%x: f32[2,3] data, %z: f32[2,3] data, %w: f32[3,3] parameter
%a: f32[2,3] = MatMul(%x, %w)
%b: f32[2,3] = MatMul(%a, %w)
%c: f32[2,3] = Mul(%a, %b)
%y: f32[2,3] = Add(%c, %a)
%l: f32[2,3] = Loss(%y, %z) {batch=2}
return %l: loss)"),
            "w");
}

// Two losses, and a result that is none: %v has no gradient.
TEST(BuildBackward, GoesBackFromLossesAlone) {
  EXPECT_EQ(
      CheckGradients(
          R"(%x: f32[2,3] data, %z: f32[2,3] data, %w: f32[3,3] parameter, %v: f32[3] parameter, %u: f32[3] parameter
%a: f32[2,3] = MatMul(%x, %w)
%b: f32[2,3] = Mul(%a, %u)
%c: f32[2,3] = Mul(%a, %v)
%l: f32[2,3] = Loss(%a, %z) {batch=2}
%m: f32[2,3] = Loss(%b, %z) {batch=4}
return %l: loss, %m: loss, %c: result)"),
      "u w");
}

TEST(BuildBackward, AsksNoGradientsOfWholeNumbersBuffersAndData) {
  EXPECT_EQ(
      CheckGradients(
          R"(%z: f32[2,3] data, %t: f32[4,3] parameter, %i: i64[2] parameter, %s: f32[3] buffer
%a: f32[2,3] = Gather(%t, %i) {axis=0}
%b: f32[2,3] = Mul(%a, %s)
%l: f32[2,3] = Loss(%b, %z) {batch=2}
return %l: loss)"),
      "t");
}

// A product of 33 operands and more: the last has a gradient like the first.
TEST(BuildBackward, KnowsMoreThan32Operands) {
  std::string operands = "%w";
  for (int i = 0; i < 32; ++i) absl::StrAppend(&operands, ", %x");
  EXPECT_EQ(CheckGradients(absl::StrCat(
                "%x: f32[1] data, %z: f32[34] data, %w: f32[1] parameter, %v: f32[1] parameter\n"
                "%a: f32[34] = Concat(",
                operands, ", %v) {axis=0}\n%l: f32[34] = Loss(%a, %z) {batch=1}\nreturn %l: loss")),
            "w v");
}

std::string ErrorOf(const std::string& lines) {
  ir::Function function = ParseLines(lines);
  return std::string(BuildBackward(function).status().message());
}

TEST(BuildBackward, WantsALossThatIsMadeByALoss) {
  EXPECT_EQ(ErrorOf("%w: f32[4] parameter\n%y: f32[4] = Abs(%w)\nreturn %y: loss"),
            "f: Abs %y: makes the loss that is returned; wanted a loss op, such as Loss");
}

// The updates of two weights, one moved on its way: each copy is of its own weight.
TEST(FindWeightCopies, AreOfTheirParameters) {
  const ir::Function function = ParseLines(
      R"(%w: bf16[4,4] parameter, %v: bf16[4,4] parameter, %w8: f8[4,4] parameter, %v8: f8[4,4] parameter, %o8: f8[4,4] parameter, %dw: bf16[4,4] data, %dv: bf16[4,4] data, %m: f32[4,4] state, %n: f32[4,4] state
%w': bf16[4,4], %v': bf16[4,4], %m': f32[4,4], %n': f32[4,4] = Sgd(%w, %v, %m, %n, %dw, %dv) {parameters=2}
%v8': f8[4,4] = Cast(%v') {to="f8"}
%same: bf16[4,4] = Identity(%w')
%w8': f8[4,4] = Cast(%same) {to="f8"}
%sum: bf16[4,4] = Add(%w', %v')
%o8': f8[4,4] = Cast(%sum) {to="f8"}
%d8: f8[4,4] = Cast(%dw) {to="f8"}
return %w': updated(%w), %v': updated(%v), %m': updated(%m), %n': updated(%n), %v8': updated(%v8), %w8': updated(%w8), %o8': updated(%o8), %d8: result)");
  std::string copies;
  for (const WeightCopy& copy : FindWeightCopies(function)) {
    absl::StrAppend(&copies, function.value_name(copy.copy), " of ",
                    function.value_name(copy.parameter), " by ",
                    function.value_name(function.result(copy.cast)), "\n");
  }
  EXPECT_EQ(copies, "v8 of v by v8'\nw8 of w by w8'\n");
}

}  // namespace
}  // namespace backward_gradients_test_cc
}  // namespace orrery::transforms
