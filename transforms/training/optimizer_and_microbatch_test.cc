#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transforms/simplify/pass_test_util.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace optimizer_and_microbatch_test_cc {
namespace {

// Gradients of two parameters, which are there already.
std::string TwoGradients(const std::string& w, const std::string& v) {
  return absl::StrCat("%x: f32[4] data, %w: ", w, "[4] parameter, %v: ", v,
                      "[4] parameter\n%dw: ", w, "[4] = Abs(%w)\n%dv: ", v,
                      "[4] = Abs(%v)\nreturn %dw: gradient(%w), %dv: gradient(%v)");
}

std::string StateOf(const std::string& lines, absl::string_view optimizer) {
  ir::Function function = ParseLines(lines);
  EXPECT_TRUE(AppendOptimizer(function, optimizer).value());
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  std::string text;
  for (const ir::Input& input : function.inputs()) {
    if (input.role != ir::InputRole::kState) continue;
    EXPECT_EQ(function.type(input.value).dtype, ir::DType::kF32);
    absl::StrAppend(&text, text.empty() ? "" : " ", function.value_name(input.value));
  }
  for (const ir::Output& output : function.outputs()) {
    EXPECT_EQ(output.role, ir::OutputRole::kUpdated);
  }
  return text;
}

constexpr char kX[] = "%x: f32[4] data, ";

TEST(AppendOptimizer, HasTheStateOfItsKind) {
  const std::string lines = With(TwoGradients("f32", "f32"), {{kX, ""}});
  EXPECT_EQ(StateOf(lines, "sgd"), "");
  EXPECT_EQ(StateOf(lines, "momentum"), "w.m v.m");
  EXPECT_EQ(StateOf(lines, "adam"), "w.m v.m w.v v.v");
}

// One parameter of less than 32 bits is enough: all have a master copy.
TEST(AppendOptimizer, KeepsMasterCopiesOfNarrowParameters) {
  for (const char* dtype : {"bf16", "f16", "f8"}) {
    EXPECT_EQ(StateOf(With(TwoGradients(dtype, dtype), {{kX, ""}}), "momentum"),
              "w.master v.master w.m v.m");
  }
  EXPECT_EQ(StateOf(With(TwoGradients("f32", "bf16"), {{kX, ""}}), "sgd"), "w.master v.master");
  EXPECT_EQ(StateOf(With(TwoGradients("bf16", "f32"), {{kX, ""}}), "sgd"), "w.master v.master");
}

TEST(AppendOptimizer, FindsNamesThatAreFree) {
  const std::string lines =
      "%w: f32[4] parameter, %w.m: f32[4] buffer\n%w': f32[4] = Mul(%w, %w.m)\n"
      "return %w': gradient(%w)";
  ir::Function function = ParseLines(lines);
  ASSERT_TRUE(AppendOptimizer(function, "momentum").value());
  EXPECT_EQ(OpLines(function), R"(%w': f32[4] = Mul(%w, %w.m)
%w'': f32[4], %w.m'': f32[4] = Momentum(%w, %w.m', %w') {parameters=1}
return %w'': updated(%w), %w.m'': updated(%w.m')
)");
}

TEST(AppendOptimizer, NeedsGradientsAndAKnownKind) {
  ir::Function plain = ParseLines("%x: f32[4] data\n%y: f32[4] = Abs(%x)\nreturn %y: result");
  for (const char* kind : {"none", "sgd", "momentum", "adam"}) {
    EXPECT_FALSE(AppendOptimizer(plain, kind).value()) << kind;
  }
  ir::Function step = ParseLines(With(TwoGradients("f32", "f32"), {{kX, ""}}));
  EXPECT_FALSE(AppendOptimizer(step, "none").value());
  for (ir::Function* function : {&plain, &step}) {
    EXPECT_EQ(AppendOptimizer(*function, "lamb").status().message(),
              "there is no optimizer 'lamb'; wanted none, sgd, momentum, adam, adagrad, lion, "
              "adafactor or muon");
  }
}

// Else Adam would be taken for Muon.
TEST(AppendOptimizer, OfMatricesWantsMatrices) {
  ir::Function step = ParseLines(R"(%x: f32[4,6] data, %w: f32[6,3] parameter
%y: f32[4,3] = MatMul(%x, %w)
return %y: result)");
  EXPECT_EQ(MakeTrainingStep(step, {.optimizer = "muon"}).message(),
            "f: `optimizer` muon: it trains no matrix between hidden layers, so that all were "
            "Adam's; wanted a model that does, or `optimizer` adam");
}

// Of matrices means over a dimension, which is left as one element; of vectors and scalars a moment
// of their own. Each kind has its op, with a master copy where one of its parameters is narrow.
TEST(AppendOptimizer, KeepsMeansOfMatricesAlone) {
  const std::string lines = R"(%w: f32[2,4,6] parameter, %b: bf16[6] parameter, %s: f32[] parameter
%dw: f32[2,4,6] = Abs(%w)
%db: bf16[6] = Abs(%b)
%ds: f32[] = Abs(%s)
return %dw: gradient(%w), %db: gradient(%b), %ds: gradient(%s))";
  ir::Function step = ParseLines(lines);
  ASSERT_TRUE(AppendOptimizer(step, "adafactor").value());
  ASSERT_TRUE(ir::Verify(step).ok()) << ir::Verify(step);
  EXPECT_EQ(OpLines(step), R"(%dw: f32[2,4,6] = Abs(%w)
%db: bf16[6] = Abs(%b)
%ds: f32[] = Abs(%s)
%w': f32[2,4,6], %w.r': f32[2,4,1], %w.c': f32[2,1,6] = Adafactor(%w, %w.r, %w.c, %dw) {parameters=1}
%b': bf16[6], %s': f32[], %b.master': f32[6], %s.master': f32[], %b.v': f32[6], %s.v': f32[] = AdafactorVectors(%b, %s, %b.master, %s.master, %b.v, %s.v, %db, %ds) {parameters=2}
return %w': updated(%w), %w.r': updated(%w.r), %w.c': updated(%w.c), %b': updated(%b), %s': updated(%s), %b.master': updated(%b.master), %s.master': updated(%s.master), %b.v': updated(%b.v), %s.v': updated(%s.v)
)");
}

constexpr char kBatch[] =
    R"(%mask: f32[] data, %x: f32[8,4] data, %z: f32[4,8] data, %same: f32[8] data, %w: f32[8] parameter
%a: f32[8,4] = Mul(%x, %mask)
%b: f32[8,8] = MatMul(%a, %z)
%s: f32[8,1] = Unsqueeze(%same) {axes=[1]}
%c: f32[8,8] = Mul(%b, %s)
%d: f32[8,8] = Mul(%c, %w)
return %d: result)";

// The first data input with dimensions says what the batch is.
TEST(Microbatch, CutsDataWhoseDimension0IsTheBatch) {
  const ir::Function function = ParseLines(kBatch);
  EXPECT_EQ(BatchSize(function).value(), 8);
  EXPECT_EQ(BatchedInputs(function), (std::vector<bool>{false, true, false, true, false}));
  const auto quarter = Microbatch(function, 4);
  ASSERT_TRUE(quarter.ok()) << quarter.status();
  std::string types;
  for (const ir::Input& input : quarter->inputs()) {
    absl::StrAppend(&types, " ", ir::ToString(quarter->type(input.value), quarter->mesh()));
  }
  EXPECT_EQ(types, " f32[] f32[2,4] f32[4,8] f32[2] f32[8]");
  EXPECT_EQ(ir::Print(Microbatch(function, 1).value()), ir::Print(function));
}

TEST(Microbatch, SaysWhatDoesNotDivide) {
  const auto cut = Microbatch(ParseLines(kBatch), 3);
  EXPECT_NE(cut.status().message().find("a batch of 8 does not divide into 3 microbatches"),
            absl::string_view::npos)
      << cut.status();
  EXPECT_TRUE(Microbatch(ParseLines(kBatch), 8).ok());
}

TEST(Microbatch, NeedsABatch) {
  const ir::Function function =
      ParseLines("%w: f32[4] parameter\n%y: f32[4] = Abs(%w)\nreturn %y: result");
  const std::string wanted = "f: has no data input; wanted one with the batch as dimension 0";
  EXPECT_EQ(BatchSize(function).status().message(), wanted);
  EXPECT_EQ(Microbatch(function, 2).status().message(), wanted);
  EXPECT_TRUE(Microbatch(function, 1).ok());
  EXPECT_EQ(BatchedInputs(function), std::vector<bool>{false});
}

TEST(Microbatch, SaysThatAShapeHoldsTheBatch) {
  const ir::Function function =
      ParseLines("%x: f32[8,4] data\n%y: f32[32] = Reshape(%x) {shape=[32]}\nreturn %y: result");
  const std::string message(Microbatch(function, 2).status().message());
  const std::string end =
      ": the batch of 8 is baked in; 2 microbatches need each sample computed by itself, from "
      "dimension 0 of the inputs; try an export with a dynamic batch, or one microbatch";
  ASSERT_GT(message.size(), end.size());
  EXPECT_EQ(message.substr(message.size() - end.size()), end);
}

TEST(Microbatch, PassSaysWhetherItCut) {
  ir::Function function = ParseLines(kBatch);
  EXPECT_FALSE(Changes("microbatch{count=1}", function));
  EXPECT_TRUE(Changes("microbatch{count=2}", function));
  EXPECT_EQ(RunPass(ParsePasses("microbatch{count=0}")->at(0), function).status().message(),
            "microbatch: option count is '0'; wanted a whole number of at least 1");
}

constexpr char kForward[] = R"(%x: f32[8,4] data, %w: f32[4,4] parameter
%one: f32[] = Constant() {values=[1.0]}
%y: f32[8,4] = MatMul(%x, %w)
%z: f32[8,4] = Mul(%y, %one)
return %z: result)";

TEST(MakeTrainingStep, StaysForwardWithoutALoss) {
  ir::Function function = ParseLines(kForward);
  ASSERT_TRUE(MakeTrainingStep(function, {.loss = {.kind = "none"}, .simplify = false}).ok());
  EXPECT_EQ(ir::Print(function), ir::Print(ParseLines(kForward)));
  ASSERT_TRUE(MakeTrainingStep(function, {.loss = {.kind = "none"}}).ok());
  EXPECT_EQ(OpLines(function), "%z: f32[8,4] = MatMul(%x, %w)\nreturn %z: result\n");
}

TEST(MakeTrainingStep, HasLossBackwardAndUpdate) {
  ir::Function function = ParseLines(kForward);
  ASSERT_TRUE(MakeTrainingStep(function, {.optimizer = "sgd"}).ok());
  EXPECT_EQ(OpLines(function), R"(%y: f32[8,4] = MatMul(%x, %w)
%loss: f32[8,4] = Loss(%y, %target) {batch=8}
%dy: f32[8,4] = LossGrad(%y, %target) {batch=8}
%dw: f32[4,4] = MatMul(%x, %dy) {transpose_x=1}
%w': f32[4,4] = Sgd(%w, %dw) {parameters=1}
return %loss: loss, %w': updated(%w)
)");
  // What holds a backward is not simplified: its gradients are of these ops.
  const std::string step = With(OpLines(function), {{"%dw: ",
                                                     "%one: f32[8,4] = Scale(%dy) "
                                                     "{factor=1.0}\n%dw: "}});
  const std::string inputs = "%x: f32[8,4] data, %w: f32[4,4] parameter, %target: f32[8,4] data\n";
  ir::Function again = ParseLines(inputs + With(step, {{"MatMul(%x, %dy)", "MatMul(%x, %one)"}}));
  const std::string before = ir::Print(again);
  ASSERT_TRUE(MakeTrainingStep(again, {}).ok());
  EXPECT_EQ(ir::Print(again), before);
}

// 2^56 bytes are what all values may have together: 2^54 numbers of fp32, input and result.
TEST(MakeTrainingStep, IsHeldToASize) {
  const auto of = [](int64_t columns) {
    ir::Function function = ParseLines(absl::StrCat("%x: f32[4,", columns, "] data\n%y: f32[4,",
                                                    columns, "] = Abs(%x)\nreturn %y: result"));
    const absl::Status status = MakeTrainingStep(function, {.loss = {.kind = "none"}});
    return std::string(status.message());
  };
  EXPECT_EQ(of(int64_t{1} << 51), "");
  EXPECT_EQ(of((int64_t{1} << 51) + (int64_t{1} << 41)),
            "f: its values have 7.21e+16 bytes together; wanted at most 7.21e+16; try a smaller "
            "model or batch");
}

}  // namespace
}  // namespace optimizer_and_microbatch_test_cc
}  // namespace orrery::transforms
