#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ir/execution/execute.h"
#include "ir/function.h"
#include "ir/op_kind.h"
#include "ir/tensor_parts.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/pass_registry.h"
#include "transforms/simplify/pass_test_util.h"

// Batch norms of inference in the weights of convolutions: with weights that are folded here by
// hand, both functions compute the same.

namespace orrery::transforms {
namespace fold_batch_norm_test_cc {
namespace {

constexpr char kConvNorm[] =
    R"(%x: f32[2,3,5,5] data, %w: f32[4,3,3,3] parameter, %b: f32[4] parameter, %g: f32[4] parameter, %beta: f32[4] parameter, %mean: f32[4] buffer, %var: f32[4] buffer
%c: f32[2,4,3,3] = Conv(%x, %w, %b)
%y: f32[2,4,3,3] = BatchNorm(%c, %g, %beta, %mean, %var) {activation="relu", epsilon=0.01}
return %y: result)";

ir::Function Folded(const std::string& lines) {
  ir::Function function = ParseLines(lines);
  const auto calls = ParsePasses("fold-batch-norm");
  EXPECT_TRUE(RunPass((*calls)[0], function).ok());
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  return function;
}

TEST(FoldBatchNorm, LeavesAConvolution) {
  EXPECT_EQ(ir::Print(Folded(kConvNorm)),
            R"(func @f (
  %x: f32[2,3,5,5] data,
  %w: f32[4,3,3,3] parameter,
  %beta: f32[4] parameter
) {
  %y: f32[2,4,3,3] = Conv(%x, %w, %beta) {activation="relu"}
  return %y: result
}
)");
}

void ExpectSame(const std::string& lines, bool has_bias) {
  const ir::Function before = ParseLines(lines), after = Folded(lines);
  EXPECT_EQ(after.order().size(), 1u);
  ir::NamedTensors inputs = RandomTensors(before);
  for (int64_t i = 0; i < 4; ++i) {  // a variance is not negative
    inputs.at("var").SetNumber(i, std::abs(inputs.at("var").Number(i)));
  }
  ir::NamedTensors folded = {
      {"x", inputs.at("x")}, {"w", inputs.at("w")}, {"beta", inputs.at("beta")}};
  for (int64_t map = 0; map < 4; ++map) {
    const double scale =
        inputs.at("g").Number(map) / std::sqrt(inputs.at("var").Number(map) + 0.01);
    const double bias = has_bias ? inputs.at("b").Number(map) : 0;
    for (int64_t i = map * 27; i < (map + 1) * 27; ++i) {
      folded.at("w").SetNumber(i, inputs.at("w").Number(i) * scale);
    }
    folded.at("beta").SetNumber(
        map, (bias - inputs.at("mean").Number(map)) * scale + inputs.at("beta").Number(map));
  }
  const auto wanted = ir::Execute(before, inputs, {.round = false}),
             found = ir::Execute(after, folded, {.round = false});
  ASSERT_TRUE(wanted.ok() && found.ok()) << wanted.status() << found.status();
  EXPECT_LT(ir::Distance(wanted->outputs[0], found->outputs[0]), 1e-6);
}

TEST(FoldBatchNorm, ComputesTheSame) {
  ExpectSame(kConvNorm, true);
  ExpectSame(With(kConvNorm, {{" %b: f32[4] parameter,", ""}, {"%w, %b)", "%w)"}}), false);
  ExpectSame(With(kConvNorm, {{"activation=\"relu\", ", ""}}), true);
}

TEST(FoldBatchNorm, FoldsWeightsThatAreFrozen) {
  EXPECT_EQ(Folded(With(kConvNorm, {{" parameter", " frozen"}})).order().size(), 1u);
}

// A norm of training, one of weights that others read, and one behind an activation or another op.
TEST(FoldBatchNorm, LeavesWhatItMayNot) {
  for (const auto& change : std::vector<LineChanges>{
           {{"return %y: result", "return %y: result, %c: result"}},
           {{"%c: f32[2,4,3,3] = Conv(%x, %w, %b)",
             "%c: f32[2,4,3,3] = Conv(%x, %w, %b) {activation=\"relu\"}"}},
           {{"Conv(%x, %w, %b)\n", "Conv(%x, %w, %b)\n%q: f32[4] = Relu(%g)\n"},
            {"return %y: result", "return %y: result, %q: result"}},
           {{"%y: f32[2,4,3,3] =",
             "%y: f32[2,4,3,3], %m: f32[4], %r: f32[4], %rm: f32[4], %rv: f32[4] ="},
            {"epsilon=0.01", "epsilon=0.01, training=1"}}}) {
    EXPECT_TRUE(Leaves("fold-batch-norm", With(kConvNorm, change))) << With(kConvNorm, change);
  }
}

// simplify makes the sum of a branch a part of the norm: the pass goes before it.
TEST(FoldBatchNorm, GoesBeforeSimplify) {
  const std::string block =
      With(kConvNorm, {{"activation=\"relu\", ", ""},
                       {"%x: f32[2,3,5,5] data,", "%x: f32[2,3,5,5] data, %r: f32[2,4,3,3] data,"},
                       {"return %y: result", "%z: f32[2,4,3,3] = Add(%y, %r)\nreturn %z: result"}});
  const auto norms = [&](const char* passes) {
    ir::Function function = ParseLines(block);
    const auto calls = ParsePasses(passes);
    for (const PassCall& call : *calls) EXPECT_TRUE(RunPass(call, function).ok());
    return std::ranges::count_if(
        function.order(), [&](ir::OpId op) { return function.kind(op) == ir::OpKind::kBatchNorm; });
  };
  EXPECT_EQ(norms("fold-batch-norm,simplify"), 0);
  EXPECT_EQ(norms("simplify,fold-batch-norm"), 1);
}

// Also where norms use running statistics: backward reads their input.
TEST(FoldBatchNorm, LeavesATrainingStep) {
  ir::Function function = ParseLines(kConvNorm);
  const auto calls = ParsePasses("attach-loss{loss=mse},build-backward,fold-batch-norm");
  ASSERT_TRUE(calls.ok()) << calls.status();
  for (const PassCall& call : *calls) {
    const auto changed = RunPass(call, function);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(*changed, call.pass->name != "fold-batch-norm") << call.pass->name;
  }
}

}  // namespace
}  // namespace fold_batch_norm_test_cc
}  // namespace orrery::transforms
