#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "transforms/simplify/pass_test_util.h"
#include "transforms/simplify/simplify.h"

// What is known beforehand, what is computed twice, what nobody uses, and all passes in a row.

namespace orrery::transforms {
namespace fold_and_merge_test_cc {
namespace {

TEST(FoldConstants, ComputesWhatIsKnown) {
  EXPECT_EQ(After("fold-constants", R"(%x: f32[2] data
%a: f32[2] = Constant() {values=[1.5, -2.0]}
%b: f32[] = Constant() {values=[2.0]}
%c: f32[2] = Mul(%a, %b)
%d: f32[2] = Abs(%c)
%y: f32[2] = Add(%x, %d)
return %y: result)"),
            R"(%d: f32[2] = Constant() {values=[3.0, 4.0]}
%y: f32[2] = Add(%x, %d)
return %y: result
)");
}

// Views are computed as well; of several results only those that are used are written down.
TEST(FoldConstants, ComputesViewsAndEachResult) {
  EXPECT_EQ(After("fold-constants", R"(%x: i64[2] data
%a: i64[4] = Constant() {values=[3, 1, 4, 5]}
%b: i64[1], %c: i64[2], %d: i64[1] = Split(%a) {axis=0, sizes=[1, 2, 1]}
%y: i64[2] = Add(%x, %c)
%z: i64[2] = Mul(%y, %d)
return %z: result)"),
            R"(%c: i64[2] = Constant() {values=[1, 4]}
%d: i64[1] = Constant() {values=[5]}
%y: i64[2] = Add(%x, %c)
%z: i64[2] = Mul(%y, %d)
return %z: result
)");
}

// 4096 elements are written down, 4097 are not; neither are those of an operand.
TEST(FoldConstants, StopsAt4096Elements) {
  const std::string lines = R"(%x: f32[N] data
%a: f32[1] = Constant() {values=[2.0]}
%b: f32[N] = Expand(%a) {shape=[N]}
%y: f32[N] = Add(%x, %b)
return %y: result)";
  EXPECT_FALSE(Leaves("fold-constants", With(lines, {{"N", "4096"}})));
  EXPECT_TRUE(Leaves("fold-constants", With(lines, {{"N", "4097"}})));
  const std::string sum = R"(%x: f32[1] data
%a: f32[N] = Constant() {fill=2.0}
%b: f32[1] = ReduceMax(%a) {axes=[0], keepdims=1}
%y: f32[1] = Add(%x, %b)
return %y: result)";
  EXPECT_EQ(After("fold-constants", With(sum, {{"N", "4096"}})),
            "%b: f32[1] = Constant() {values=[2.0]}\n%y: f32[1] = Add(%x, %b)\n"
            "return %y: result\n");
  EXPECT_TRUE(Leaves("fold-constants", With(sum, {{"N", "4097"}})));
}

TEST(FoldConstants, LeavesWhatDependsOnData) {
  EXPECT_TRUE(Leaves("fold-constants", R"(%x: f32[2] data
%a: f32[2] = Constant() {values=[1.0, 2.0]}
%y: f32[2] = Add(%x, %a)
%z: f32[2] = Mul(%a, %y)
return %z: result)"));
}

TEST(MergeCommon, ComputesOnceWhatHasOneKindOperandsAndAttributes) {
  const std::string lines = R"(%x: f32[2,2] data, %z: f32[2,2] data
%a: f32[2,2] = Softmax(%x) {axis=1}
%b: f32[2,2] = OTHER
%y: f32[2,2] = Sub(%a, %b)
return %y: result)";
  const auto other = [&](const char* op) {
    return With(lines, {{"OTHER", op},
                        {"return ", "%u: f32[2,2] = Add(%y, %z)\nreturn "},
                        {"%y: result", "%u: result"}});
  };
  EXPECT_EQ(After("merge-common", other("Softmax(%x) {axis=1}")),
            "%a: f32[2,2] = Softmax(%x) {axis=1}\n%y: f32[2,2] = Sub(%a, %a)\n"
            "%u: f32[2,2] = Add(%y, %z)\nreturn %u: result\n");
  for (const char* op : {"Softmax(%x) {axis=0}", "Softmax(%z) {axis=1}", "LogSoftmax(%x) {axis=1}",
                         "MaskedSoftmax(%x, %z) {axis=1}"}) {
    EXPECT_TRUE(Leaves("merge-common", other(op))) << op;
  }
}

// All results of an op, or none.
TEST(MergeCommon, OpsOfSeveralResultsAreOne) {
  const std::string lines = R"(%x: f32[4] data
%a: f32[2], %b: f32[2] = Split(%x) {axis=0, sizes=[2, 2]}
%c: f32[2], %d: f32[2] = Split(%x) {axis=0, sizes=[2, 2]}
%e: f32[2] = Sub(%a, %d)
%y: f32[2] = Sub(%e, %b)
%z: f32[2] = Mul(%y, %c)
return %z: result)";
  EXPECT_EQ(After("merge-common", lines),
            R"(%a: f32[2], %b: f32[2] = Split(%x) {axis=0, sizes=[2, 2]}
%e: f32[2] = Sub(%a, %b)
%y: f32[2] = Sub(%e, %b)
%z: f32[2] = Mul(%y, %a)
return %z: result
)");
  // Two outputs must not become one, nor one half of an op go without the other.
  EXPECT_TRUE(
      Leaves("merge-common", With(lines, {{"return ", "return %b: result, %d: result, "}})));
}

TEST(MergeCommon, ConstantsAreTheSameByTypeAndValues) {
  const std::string lines = R"(%x: f32[2] data
%a: f32[] = Constant() {values=[2.0]}
%b: TYPE = Constant() {values=[VALUE]}
%y: f32[2] = Mul(%x, %a)
%z: f32[2] = Sub(%y, %b)
return %z: result)";
  EXPECT_FALSE(Leaves("merge-common", With(lines, {{"TYPE", "f32[]"}, {"VALUE", "2.0"}})));
  EXPECT_TRUE(Leaves("merge-common", With(lines, {{"TYPE", "f32[]"}, {"VALUE", "3.0"}})));
  EXPECT_TRUE(Leaves("merge-common", With(lines, {{"TYPE", "f32[1]"}, {"VALUE", "2.0"}})));
}

// Which elements they had, nobody knows: two of them need not be alike.
TEST(MergeCommon, ConstantsThatHaveNotKeptTheirElementsStay) {
  ir::Function function = ParseLines(R"(%x: f32[2] data
%a: f32[2] = Constant()
%b: f32[2] = Constant()
%y: f32[2] = Mul(%x, %a)
%z: f32[2] = Sub(%y, %b)
return %z: result)");
  EXPECT_FALSE(Changes("merge-common", function));
}

TEST(MergeCommon, WhatIsDrawnAtRandomIsDrawnTwice) {
  ir::Function function = ParseLines(R"(%x: f32[2] data
%a: f32[2], %m: bool[2] = Dropout(%x) {ratio=0.5}
%b: f32[2], %n: bool[2] = Dropout(%x) {ratio=0.5}
%y: f32[2] = Sub(%a, %b)
return %y: result)");
  EXPECT_FALSE(Changes("merge-common", function));
}

TEST(DeadCode, RemovesWhatNothingUses) {
  ir::Function function = ParseLines(R"(%x: f32[2] data
%y: f32[2] = Exp(%x)
%z: f32[2] = Abs(%y)
return %y: result, %z: result)");
  EXPECT_FALSE(Changes("dead-code", function));
  function.SetOutputs({function.outputs()[0]});
  EXPECT_TRUE(Changes("dead-code", function));
  EXPECT_EQ(OpLines(function), "%y: f32[2] = Exp(%x)\nreturn %y: result\n");
}

// One pass makes way for the next, over several rounds.
TEST(Simplify, GoesOnUntilNothingChanges) {
  EXPECT_EQ(After("simplify", R"(%x: f32[4,6] data, %w: f32[8,6] parameter, %b: f32[8] parameter
%one: f32[] = Constant() {values=[1.0]}
%two: f32[] = Constant() {values=[2.0]}
%three: f32[] = Add(%one, %two)
%s: f32[4,6] = Div(%x, %three)
%t: f32[4,6] = Mul(%s, %three)
%wt: f32[6,8] = Transpose(%w) {perm=[1, 0]}
%m: f32[4,8] = MatMul(%t, %wt)
%a: f32[4,8] = Add(%m, %b)
%y: f32[4,8] = Relu(%a)
return %y: result)"),
            R"(%y: f32[4,8] = Linear(%x, %w, %b) {activation="relu", transpose_w=1}
return %y: result
)");
}

TEST(Simplify, KeepsSumsOfRowsWithFlash) {
  const std::string lines = R"(%q: f32[2,2,3,4] data, %k: f32[2,2,3,4] data, %v: f32[2,2,3,4] data
%s: f32[2,2,3,3] = MatMul(%q, %k) {transpose_w=1}
%p: f32[2,2,3,3] = Softmax(%s) {axis=3}
%y: f32[2,2,3,4] = MatMul(%p, %v)
return %y: result)";
  EXPECT_EQ(After("simplify{flash=1}", lines),
            "%y: f32[2,2,3,4], %4: f32[2,2,3] = Attention(%q, %k, %v) "
            "{flash=1, heads=2, kv_heads=2, scale=1.0}\nreturn %y: result\n");
  for (const bool flash : {false, true}) {
    ir::Function function = ParseLines(lines);
    EXPECT_TRUE(Simplify(function, {.flash = flash}).value());
    EXPECT_EQ(absl::StrContains(OpLines(function), "flash=1"), flash);
  }
}

TEST(Simplify, SaysWhatFlashMayBe) {
  for (const std::string pass : {"simplify", "fuse-attention"}) {
    ir::Function function = ParseLines("%x: f32[2] data\n%y: f32[2] = Exp(%x)\nreturn %y: result");
    for (const char* flash : {"2", "yes", "", "-1"}) {
      const auto calls = ParsePasses(absl::StrCat(pass, "{flash=", flash, "}"));
      ASSERT_TRUE(calls.ok()) << calls.status();
      EXPECT_EQ(RunPass(calls->at(0), function).status().message(),
                absl::StrCat(pass, ": option flash is '", flash, "'; wanted 0 or 1"));
    }
    EXPECT_TRUE(RunPass(ParsePasses(pass)->at(0), function).ok());
  }
}

// What is sharded was simplified before.
TEST(Simplify, LeavesAFunctionOverAMesh) {
  const std::string text = R"(func @f mesh(dp=2) (
  %x: f32[4] data
) {
  %y: f32[4] = Identity(%x)
  %z: f32[4] = Exp(%y)
  return %z: result
}
)";
  for (const char* pass : {"simplify", "remove-identities", "unpack-weights"}) {
    auto function = ir::ParseFunction(text);
    ASSERT_TRUE(function.ok()) << function.status();
    EXPECT_FALSE(RunPass(ParsePasses(pass)->at(0), *function).value());
    EXPECT_EQ(ir::Print(*function), text);
  }
}

}  // namespace
}  // namespace fold_and_merge_test_cc
}  // namespace orrery::transforms
