#include "transforms/training/step_phases.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/split_backward.h"

// Which part of the step an op belongs to, and backwards in two parts.

namespace orrery::transforms {
namespace step_phases_test_cc {
namespace {

using ir::Function;
using ir::OpId;

Function OnMesh(const std::string& lines) {
  const size_t end = lines.find('\n');
  const auto function = ir::ParseFunction(
      absl::StrCat("func @f mesh(dp=2) (", lines.substr(0, end), ") {", lines.substr(end), "\n}"));
  EXPECT_TRUE(function.ok()) << function.status();
  return function.value_or(Function());
}

// "F: y l; B: da; U: w'", the first results of each phase's ops.
std::string Text(const Function& function, const IdTable<OpId, StepPhase>& phase) {
  std::string text;
  for (size_t i = 0; i < kStepPhaseCount; ++i) {
    std::string names;
    for (const OpId op : function.order()) {
      if (static_cast<size_t>(phase[op]) != i) continue;
      absl::StrAppend(&names, " ", function.value_name(function.result(op)));
    }
    if (!names.empty())
      absl::StrAppend(&text, text.empty() ? "" : "; ", absl::string_view("FBWU").substr(i, 1), ":",
                      names);
  }
  return text;
}

constexpr char kStep[] =
    R"(%x: f32[8,4] data, %z: f32[8,4] data, %w: f32[4,4] parameter, %v: f32[4,4] parameter, %b: f32[4] parameter
%h: f32[8,4] = MatMul(%x, %w)
%a: f32[8,4] = Relu(%h)
%m: f32[8,4] = MatMul(%a, %v)
%y: f32[8,4] = Add(%m, %b)
%l: f32[8,4] = Loss(%y, %z) {batch=8}
%dy: f32[8,4] = LossGrad(%y, %z) {batch=8}
%s: f32[8,4] = Abs(%dy)
%db: f32[4] = ReduceSum(%s) {axes=[0]}
%dv: f32[4,4] = MatMulWeightGrad(%a, %s)
%da: f32[8,4] = MatMul(%s, %v) {transpose_w=1}
%dh: f32[8,4] = ReluGrad(%a, %da)
%dw: f32[4,4] = MatMulWeightGrad(%x, %dh)
%w': f32[4,4], %v': f32[4,4], %b': f32[4] = Sgd(%w, %v, %b, %dw, %dv, %db) {parameters=3}
%half: bf16[4,4] = Cast(%w') {to="bf16"}
return %l: loss, %w': updated(%w), %v': updated(%v), %b': updated(%b), %half: result)";

TEST(FindPhases, FollowTheLossGradientAndTheOptimizer) {
  const Function function = ParseLines(kStep);
  EXPECT_EQ(Text(function, FindPhases(function)),
            "F: h a m y l dy; B: s db dv da dh dw; U: w' half");
}

// Where nobody before the first layer waits, the gradient of its activations leads to the one
// weight; %s leads to three gradients, those of two layers.
TEST(SplitBackwardPhase, MovesWhatOnlyTheUpdateWaitsFor) {
  const Function function = ParseLines(kStep);
  IdTable<OpId, StepPhase> phase = FindPhases(function);
  IdTable<OpId, int32_t> stage(function.op_limit(), 0);
  SplitBackwardPhase(function, stage, phase);
  EXPECT_EQ(Text(function, phase), "F: h a m y l dy; B: s; W: db dv da dh dw; U: w' half");
}

// What another stage's weight waits for is backward still.
TEST(SplitBackwardPhase, KeepsWhatOtherStagesWant) {
  const Function function = ParseLines(kStep);
  IdTable<OpId, StepPhase> phase = FindPhases(function);
  IdTable<OpId, int32_t> stage(function.op_limit(), 1);
  for (const OpId op : function.order()) {
    if (function.value_name(function.result(op)) == "dw") stage[op] = 0;
  }
  SplitBackwardPhase(function, stage, phase);
  EXPECT_EQ(Text(function, phase), "F: h a m y l dy; B: s da dh; W: db dv dw; U: w' half");
}

TEST(SplitBackwardPhase, KeepsWhatIsReturned) {
  const Function function =
      ParseLines(With(kStep, {{"%half: result", "%half: result, %dh: result"}}));
  IdTable<OpId, StepPhase> phase = FindPhases(function);
  SplitBackwardPhase(function, IdTable<OpId, int32_t>(function.op_limit(), 0), phase);
  EXPECT_EQ(Text(function, phase), "F: h a m y l dy; B: s da dh; W: db dv dw; U: w' half");
}

// Gradients that are returned count as those that an optimizer takes.
TEST(SplitBackwardPhase, KnowsGradientsThatAreReturned) {
  const Function function = ParseLines(
      With(kStep, {{"%w': f32[4,4], %v': f32[4,4], %b': f32[4] = Sgd(%w, %v, %b, %dw, %dv, %db) "
                    "{parameters=3}\n%half: bf16[4,4] = Cast(%w') {to=\"bf16\"}\n",
                    ""},
                   {"%w': updated(%w), %v': updated(%v), %b': updated(%b), %half: result",
                    "%dw: gradient(%w), %dv: gradient(%v), %db: gradient(%b)"}}));
  IdTable<OpId, StepPhase> phase = FindPhases(function);
  EXPECT_EQ(Text(function, phase), "F: h a m y l dy; B: s db dv da dh dw");
  SplitBackwardPhase(function, IdTable<OpId, int32_t>(function.op_limit(), 0), phase);
  EXPECT_EQ(Text(function, phase), "F: h a m y l dy; B: s; W: db dv da dh dw");
}

TEST(ReshardsForward, IsWhatPutsTogetherWhatForwardLeft) {
  const Function function = OnMesh(
      R"(%x: f32[8,4@dp] data, %z: f32[8,4] data, %w: f32[4,4] parameter, %u: f32[4@dp,4] buffer
%whole: f32[8,4] = AllGather(%x) {axes="dp", dim=1}
%y: f32[8,4] = MatMul(%whole, %w)
%a: f32[8@dp,4] = AllSlice(%y) {axes="dp", dim=0}
%l: f32[8,4] = Loss(%y, %z) {batch=8}
%dy: f32[8,4] = LossGrad(%y, %z) {batch=8}
%again: f32[8,4] = AllGather(%a) {axes="dp", dim=0}
%input: f32[4,4] = AllGather(%u) {axes="dp", dim=0}
%cut: f32[8@dp,4] = AllSlice(%dy) {axes="dp", dim=0}
%s: f32[8,4] = Mul(%again, %dy)
%t: f32[8,4] = MatMul(%s, %input)
%part: f32[8@dp,4] = AllSlice(%t) {axes="dp", dim=0}
%r: f32[8@dp,4] = Mul(%cut, %part)
return %l: loss, %r: result)");
  const IdTable<OpId, StepPhase> phase = FindPhases(function);
  EXPECT_EQ(Text(function, phase), "F: whole y l dy; B: a again input cut s t part r");
  std::string reshards;
  for (const OpId op : function.order()) {
    if (!ReshardsForward(function, phase, op)) continue;
    absl::StrAppend(&reshards, " ", function.value_name(function.result(op)));
  }
  // Not what cuts the gradient, nor what backward computed.
  EXPECT_EQ(reshards, " a again input");
}

TEST(FindFixedValues, AreMadeFromBuffersAlone) {
  const Function function = OnMesh(R"(%x: f32[8,4] data, %w: f32[4,4] parameter, %m: f32[4,4] buffer
%one: f32[] = Constant() {values=[1.0]}
%sum: f32[4,4] = Add(%m, %one)
%cut: f32[4@dp,4] = AllSlice(%sum) {axes="dp", dim=0}
%whole: f32[4,4] = AllGather(%cut) {axes="dp", dim=0}
%back: f32[4,4] = Abs(%whole)
%shown: f32[4,4] = Abs(%sum)
%v: f32[4,4] = Mul(%w, %sum)
%a: f32[8,4] = MatMul(%x, %v)
%y: f32[8,4] = MatMul(%a, %back)
return %y: result, %shown: result)");
  const IdTable<ir::ValueId, char> fixed = FindFixedValues(function);
  std::string names;
  for (int32_t v = 0; v < function.value_limit(); ++v) {
    if (fixed[ir::ValueId(v)] == 0) continue;
    absl::StrAppend(&names, " ", function.value_name(ir::ValueId(v)));
  }
  // Not what ranks exchange, nor what is returned.
  EXPECT_EQ(names, " m one sum cut");
}

// Both gradients of each product, whichever operands it reads transposed.
TEST(SplitBackward, MakesOneOpOfEachGradient) {
  struct Case {
    const char *flags, *x, *w, *dx, *dw;
  };
  const std::vector<Case> cases = {
      {"", "[3,4]", "[4,5]", "MatMul(%dy, %w) {transpose_w=1}", "MatMulWeightGrad(%x, %dy)"},
      {"{transpose_w=1}", "[3,4]", "[5,4]", "MatMul(%dy, %w)",
       "MatMulWeightGrad(%x, %dy) {transpose_w=1}"},
      {"{transpose_x=1}", "[4,3]", "[4,5]", "MatMul(%w, %dy) {transpose_w=1}",
       "MatMulWeightGrad(%x, %dy) {transpose_x=1}"},
      {"{transpose_w=1, transpose_x=1}", "[4,3]", "[5,4]",
       "MatMul(%w, %dy) {transpose_w=1, transpose_x=1}",
       "MatMulWeightGrad(%x, %dy) {transpose_w=1, transpose_x=1}"}};
  for (const Case& c : cases) {
    EXPECT_EQ(After("split-backward", absl::StrCat("%x: f32", c.x, " data, %w: f32", c.w,
                                                   " parameter, %dy: f32[3,5] data\n%dx: f32", c.x,
                                                   ", %dw: f32", c.w, " = MatMulGrad(%x, %w, %dy) ",
                                                   c.flags, "\nreturn %dx: result, %dw: result")),
              absl::StrCat("%dx: f32", c.x, " = ", c.dx, "\n%dw: f32", c.w, " = ", c.dw,
                           "\nreturn %dx: result, %dw: result\n"));
  }
}

TEST(SplitBackward, AddsUpTheGradientsOfAGroup) {
  const std::string lines =
      R"(%x: f32[3,4] data, %u: f32[4,5] parameter, %v: f32[4,6] parameter, %du: f32[3,5] data, %dv: f32[3,6] data
%dx: f32[3,4], %p: f32[4,5], %q: f32[4,6] = LinearGroupGrad(%x, %u, %v, %du, %dv) {count=2}
return %dx: result, %p: result, %q: result)";
  EXPECT_EQ(After("split-backward", lines), R"(%5: f32[3,4] = MatMul(%du, %u) {transpose_w=1}
%p: f32[4,5] = MatMulWeightGrad(%x, %du)
%7: f32[3,4] = MatMul(%dv, %v) {transpose_w=1}
%dx: f32[3,4] = Add(%5, %7)
%q: f32[4,6] = MatMulWeightGrad(%x, %dv)
return %dx: result, %p: result, %q: result
)");
  EXPECT_EQ(After("split-backward", With(lines, {{"[4,5]", "[5,4]"},
                                                 {"[4,6]", "[6,4]"},
                                                 {"{count=2}", "{count=2, transpose_w=1}"}})),
            R"(%5: f32[3,4] = MatMul(%du, %u)
%p: f32[5,4] = MatMulWeightGrad(%x, %du) {transpose_w=1}
%7: f32[3,4] = MatMul(%dv, %v)
%dx: f32[3,4] = Add(%5, %7)
%q: f32[6,4] = MatMulWeightGrad(%x, %dv) {transpose_w=1}
return %dx: result, %p: result, %q: result
)");
  EXPECT_TRUE(Leaves("split-backward", R"(%x: f32[3,4] data, %w: f32[4,5] parameter
%y: f32[3,5] = MatMul(%x, %w)
return %y: result)"));
}

}  // namespace
}  // namespace step_phases_test_cc
}  // namespace orrery::transforms
