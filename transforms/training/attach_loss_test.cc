#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/training_step.h"

// Which loss an output gets, and how an own loss becomes one of its rows.

namespace orrery::transforms {
namespace attach_loss_test_cc {
namespace {

constexpr char kMlp[] =
    "%x: f32[8,4] data, %w: f32[4,5] parameter\n%y: f32[8,5] = MatMul(%x, %w)\n";

// What is returned then, without names: "CrossEntropy(%y, %labels) {batch=8}"; or the error.
std::string Loss(const std::string& lines, const LossChoice& choice = {}) {
  ir::Function function = ParseLines(lines);
  const auto attached = AttachLoss(function, choice);
  if (!attached.ok()) return std::string(attached.status().message());
  EXPECT_TRUE(*attached);
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  std::string text;
  for (const ir::Output& output : function.outputs()) {
    EXPECT_EQ(output.role, ir::OutputRole::kLoss);
    const std::string ops = OpLines(function);
    const std::string name = absl::StrCat("%", function.value_name(output.value), ": ");
    const size_t begin = ops.find("= ", ops.find(name)) + 2;
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    ops.substr(begin, ops.find('\n', begin) - begin));
  }
  return text;
}

std::string LossOf(const std::string& op, const std::string& dims = "8,5") {
  return Loss(absl::StrCat(kMlp, "%a: f32[8,5] = Abs(%y)\n%z: f32[", dims, "] = ", op,
                           "\nreturn %z: result, %a: result"));
}

TEST(AttachLoss, OfProductsAndSoftmaxesIsCrossEntropy) {
  EXPECT_EQ(LossOf("Identity(%y)"), "CrossEntropy(%z, %labels) {batch=8}");
  EXPECT_EQ(LossOf("Softmax(%a) {axis=1}"), "CrossEntropy(%a, %labels) {batch=8}");
  EXPECT_EQ(LossOf("Softmax(%a)"), "CrossEntropy(%a, %labels) {batch=8}");
  EXPECT_EQ(LossOf("LogSoftmax(%a) {axis=1}"), "CrossEntropy(%a, %labels) {batch=8}");
  EXPECT_EQ(LossOf("Add(%y, %a)"), "CrossEntropy(%z, %labels) {batch=8}");
  EXPECT_EQ(LossOf("Add(%a, %y)"), "CrossEntropy(%z, %labels) {batch=8}");
}

TEST(AttachLoss, OfOtherOutputsIsSquaredError) {
  EXPECT_EQ(LossOf("Relu(%y)"), "Loss(%z, %target) {batch=8}");
  EXPECT_EQ(LossOf("Add(%a, %a)"), "Loss(%z, %target) {batch=8}");
  EXPECT_EQ(LossOf("Softmax(%a) {axis=0}"), "Loss(%z, %target) {batch=8}");
  EXPECT_EQ(LossOf("ReduceMax(%y) {axes=[1], keepdims=0}", "8"), "Loss(%z, %target) {batch=8}");
}

// One column is a number and no class.
TEST(AttachLoss, WantsTwoClasses) {
  const std::string lines = kMlp + std::string("return %y: result");
  EXPECT_EQ(Loss(With(lines, {{"[8,5]", "[8,2]"}, {"[4,5]", "[4,2]"}})),
            "CrossEntropy(%y, %labels) {batch=8}");
  EXPECT_EQ(Loss(With(lines, {{"[8,5]", "[8,1]"}, {"[4,5]", "[4,1]"}})),
            "Loss(%y, %target) {batch=8}");
}

// Classes in dimension 1 stand before positions.
TEST(AttachLoss, OfImagesIsByPosition) {
  const auto of = [](const std::string& ops) {
    return Loss(
        "%x: f32[2,3,4,4] data, %w: f32[5,3,1,1] parameter, %b: f32[5,1,1] parameter\n"
        "%c: f32[2,5,4,4] = Conv(%x, %w)\n%d: f32[2,5,4,4] = Mul(%c, %b)\n" +
            ops + "\nreturn %y: result, %d: result",
        {.kind = "cross-entropy"});
  };
  const std::string by_position = "SumLoss(%7) {batch=32}";
  const std::string by_pixel_row = "CrossEntropy(%y, %labels) {batch=40}";
  EXPECT_EQ(of("%y: f32[2,5,4,4] = Identity(%c)"), by_position);
  EXPECT_EQ(of("%y: f32[2,5,4,4] = Add(%c, %b)"), by_position);
  EXPECT_EQ(of("%y: f32[2,5,4,4] = Softmax(%d) {axis=1}"), by_position);
  EXPECT_EQ(of("%y: f32[2,5,4,4] = Relu(%c)"), by_pixel_row);
  EXPECT_EQ(of("%y: f32[2,5,4,4] = Softmax(%d) {axis=3}"), "CrossEntropy(%d, %labels) {batch=40}");
}

TEST(AttachLoss, OfItsOwnIsALossOfRows) {
  const auto own = [](const std::string& ops) {
    return Loss(kMlp + ops + "\nreturn %y: result, %z: result");
  };
  EXPECT_EQ(own("%z: f32[] = ReduceMean(%y) {axes=[0, 1], keepdims=0}"), "SumLoss(%y) {batch=40}");
  EXPECT_EQ(own("%z: f32[] = ReduceSum(%y) {axes=[0, 1], keepdims=0}"), "SumLoss(%y)");
  EXPECT_EQ(own("%s: f32[1,1] = ReduceMean(%y) {axes=[0, 1], keepdims=1}\n"
                "%z: f32[] = Reshape(%s) {shape=[]}"),
            "SumLoss(%y) {batch=40}");
  EXPECT_EQ(own("%s: f32[] = ReduceMean(%y) {axes=[0, 1], keepdims=0}\n%z: f32[] = Exp(%s)"),
            "SumLoss(%z)");
}

// The sum of likelihoods over the number of labels that count.
TEST(AttachLoss, OfItsOwnMeanOfLikelihoodsIsALossOfAllRows) {
  const std::string lines = R"(%x: f32[8,4] data, %labels: i64[8] data, %w: f32[4,5] parameter
%y: f32[8,5] = MatMul(%x, %w)
%rows: f32[8], %weights: f32[8] = NegativeLikelihood(%y, %labels)
%s: f32[] = ReduceSum(%rows) {axes=[0], keepdims=0}
%n: f32[] = ReduceSum(%weights) {axes=[0], keepdims=0}
%z: f32[] = Div(%s, %n)
return %z: result)";
  EXPECT_EQ(Loss(lines), "SumLoss(%rows) {batch=8}");
  EXPECT_EQ(Loss(With(lines, {{"ReduceSum(%weights)", "ReduceMax(%weights)"}})), "SumLoss(%z)");
  EXPECT_EQ(Loss(With(lines, {{"ReduceSum(%rows)", "ReduceMax(%rows)"}})), "SumLoss(%z)");
  EXPECT_EQ(Loss(With(lines, {{"ReduceSum(%weights)", "ReduceSum(%t)"},
                              {"%n: f32", "%t: f32[8] = Abs(%weights)\n%n: f32"}})),
            "SumLoss(%z)");
}

TEST(AttachLoss, TakesTheChosenKindAndOutputs) {
  const std::string lines = std::string(kMlp) +
                            "%z: f32[] = ReduceMean(%y) {axes=[0, 1], keepdims=0}\n"
                            "%a: f32[8,5] = Abs(%y)\nreturn %z: result, %y: result, %a: result";
  EXPECT_EQ(Loss(lines), "SumLoss(%y) {batch=40}");
  EXPECT_EQ(Loss(lines, {.kind = "sum"}), "SumLoss(%y) {batch=40}");
  EXPECT_EQ(Loss(lines, {.kind = "mse"}), "Loss(%y, %target) {batch=8}");
  EXPECT_EQ(Loss(lines, {.kind = "cross-entropy"}), "CrossEntropy(%y, %labels) {batch=8}");
  EXPECT_EQ(Loss(lines, {.output = "a"}), "Loss(%a, %target) {batch=8}");
  EXPECT_EQ(Loss(lines, {.kind = "sum", .output = "a"}), "SumLoss(%a)");
  EXPECT_EQ(Loss(lines, {.output = "a,y,a"}),
            "Loss(%a, %target) {batch=8}; CrossEntropy(%y, %labels) {batch=8}");
}

TEST(AttachLoss, SaysWhatIsWrong) {
  const std::string lines = std::string(kMlp) +
                            "%z: f32[] = ReduceMean(%y) {axes=[0, 1], keepdims=0}\n"
                            "%v: f32[8] = ReduceMax(%y) {axes=[1], keepdims=0}\n"
                            "%i: i64[8] = ArgMax(%y) {axis=1, keepdims=0}\n"
                            "return %z: result, %v: result, %i: result";
  EXPECT_EQ(Loss(lines, {.kind = "hinge"}),
            "there is no loss 'hinge'; wanted auto, cross-entropy, mse, sum or none");
  EXPECT_EQ(Loss(lines, {.output = "y"}), "f: has no output 'y'; wanted one of z, v, i");
  EXPECT_EQ(Loss(lines, {.output = "v,w"}), "f: has no output 'w'; wanted one of z, v, i");
  EXPECT_EQ(Loss(lines, {.kind = "cross-entropy"}),
            "%v has 1 dimensions; cross-entropy wants samples and classes; try `loss` mse");
  EXPECT_EQ(Loss(lines, {.kind = "mse", .output = "z"}),
            "f: output %z is f32[]; wanted one of floating point with at least one dimension");
  EXPECT_EQ(Loss(lines, {.output = "i"}),
            "f: output %i is i64[8]; wanted one of floating point with at least one dimension");
}

TEST(AttachLoss, LeavesWhatIsTrainedAndForwardPasses) {
  ir::Function function = ParseLines(kMlp + std::string("return %y: result"));
  EXPECT_FALSE(AttachLoss(function, {.kind = "none"}).value());
  EXPECT_TRUE(AttachLoss(function).value());
  EXPECT_FALSE(AttachLoss(function).value());
  EXPECT_FALSE(AttachLoss(function, {.kind = "hinge"}).value());
}

// Several rows of a sample have their targets sample by sample.
TEST(AttachLoss, TargetsOfRowsAreBySample) {
  const std::string lines = R"(%x: f32[BATCH,EACH,4] data, %w: f32[4,5] parameter
%f: f32[ALL,4] = Reshape(%x) {shape=[-1, 4]}
%y: f32[ALL,5] = MatMul(%f, %w)
return %y: result)";
  const auto target = [&](const char* b, const char* r, const char* n) {
    ir::Function function = ParseLines(With(lines, {{"BATCH", b}, {"EACH", r}, {"ALL", n}}));
    EXPECT_TRUE(AttachLoss(function, {.kind = "mse"}).value());
    return ir::ToString(function.type(function.inputs()[2].value), function.mesh());
  };
  EXPECT_EQ(target("8", "3", "24"), "f32[8,3,5]");
  EXPECT_EQ(target("8", "1", "8"), "f32[8,5]");
}

// Labels come sample by sample, also where the output has time first.
TEST(AttachLoss, OfOutputsWithTheBatchSecond) {
  for (const int64_t steps : {3, 8}) {  // as many as samples, too
    ir::Function function =
        ParseLines(absl::StrCat("%x: f32[8,", steps, ",4] data, %w: f32[4,5] parameter\n%t: f32[",
                                steps, ",8,4] = Transpose(%x) {perm=[1, 0, 2]}\n%y: f32[", steps,
                                ",8,5] = MatMul(%t, %w)\nreturn %y: result"));
    ASSERT_TRUE(AttachLoss(function, {}).value());
    const ir::TensorType& labels = function.type(function.inputs().back().value);
    EXPECT_EQ(labels.dims, (ir::Dims{8, steps}));
    EXPECT_EQ(function.type(function.outputs()[0].value).dims, (ir::Dims{8, steps}));
  }
}

// Rows of [time · batch] are told apart first.
TEST(AttachLoss, OfRowsOfTimeAndBatch) {
  ir::Function function = ParseLines(R"(%x: f32[8,3,4] data, %w: f32[4,5] parameter
%t: f32[3,8,4] = Transpose(%x) {perm=[1, 0, 2]}
%f: f32[24,4] = Reshape(%t) {shape=[-1, 4]}
%y: f32[24,5] = MatMul(%f, %w)
return %y: result)");
  ASSERT_TRUE(AttachLoss(function, {}).value());
  EXPECT_EQ(function.type(function.inputs().back().value).dims, (ir::Dims{8, 3}));
  EXPECT_EQ(function.type(function.outputs()[0].value).dims, (ir::Dims{8, 3}));
}

}  // namespace
}  // namespace attach_loss_test_cc
}  // namespace orrery::transforms
