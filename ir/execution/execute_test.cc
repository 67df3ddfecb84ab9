#include "ir/execution/execute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/tensor_parts.h"
#include "ir/text/text.h"

namespace orrery::ir {
namespace execute_test_cc {
namespace {

Tensor Floats(Dims dims, std::vector<double> values, DType dtype = DType::kF32) {
  return Tensor::OfFloats(dtype, std::move(dims), std::move(values));
}

// Runs the function of that text; aborts when it cannot.
Execution Ran(const std::string& text, const NamedTensors& inputs,
              const ExecuteOptions& options = {}) {
  return Execute(ParseFunction(text).value(), inputs, options).value();
}

std::string ErrorOf(const std::string& text, const NamedTensors& inputs) {
  return std::string(Execute(ParseFunction(text).value(), inputs).status().message());
}

// By hand: small enough to check by eye.

const Tensor kA = Floats({2, 3}, {1, 2, 3,  //
                                  4, 5, 6});
const Tensor kB = Floats({3, 2}, {1, 0,  //
                                  0, 1,  //
                                  1, 1});
const Tensor kProduct = Floats({2, 2}, {4, 5,  //
                                        10, 11});

TEST(Execute, MultipliesMatrices) {
  const Execution execution = Ran(R"(
func @products (%a: f32[2,3] data, %b: f32[3,2] data) {
  %at: f32[3,2] = Transpose(%a)
  %bt: f32[2,3] = Transpose(%b) {perm=[1, 0]}
  %y: f32[2,2] = MatMul(%a, %b)
  %w: f32[2,2] = MatMul(%a, %bt) {transpose_w=1}
  %x: f32[2,2] = MatMul(%at, %b) {transpose_x=1}
  return %bt: result, %y: result, %w: result, %x: result
})",
                                  {{"a", kA}, {"b", kB}});
  EXPECT_EQ(execution.outputs[0], Floats({2, 3}, {1, 0, 1, 0, 1, 1}));
  for (const size_t i : {1U, 2U, 3U}) EXPECT_EQ(execution.outputs[i], kProduct);
}

TEST(Execute, GradientsOfAProductAreProducts) {
  const Execution execution = Ran(R"(
func @gradients (%a: f32[2,3] data, %b: f32[3,2] data, %dy: f32[2,2] data) {
  %da: f32[2,3], %db: f32[3,2] = MatMulGrad(%a, %b, %dy)
  %x: f32[2,3] = MatMul(%dy, %b) {transpose_w=1}
  %w: f32[3,2] = MatMul(%a, %dy) {transpose_x=1}
  return %da: result, %db: result, %x: result, %w: result
})",
                                  {{"a", kA}, {"b", kB}, {"dy", Floats({2, 2}, {1, 2, 3, 4})}});
  EXPECT_EQ(execution.outputs[0], Floats({2, 3}, {1, 2, 3, 3, 4, 7}));
  EXPECT_EQ(execution.outputs[0], execution.outputs[2]);
  EXPECT_EQ(execution.outputs[1], execution.outputs[3]);
}

TEST(Execute, BroadcastsAndReduces) {
  const Execution execution =
      Ran(R"(
func @broadcasts (%a: f32[2,3] data, %row: f32[3] data, %column: f32[2,1] data) {
  %sum: f32[2,3] = Add(%a, %row)
  %product: f32[2,3] = Mul(%column, %a)
  %rows: f32[3] = ReduceSum(%a) {axes=[0]}
  %all: f32[] = ReduceSum(%a) {axes=[0, 1]}
  return %sum: result, %product: result, %rows: result, %all: result
})",
          {{"a", kA}, {"row", Floats({3}, {10, 20, 30})}, {"column", Floats({2, 1}, {2, 3})}});
  EXPECT_EQ(execution.outputs[0], Floats({2, 3}, {11, 22, 33, 14, 25, 36}));
  EXPECT_EQ(execution.outputs[1], Floats({2, 3}, {2, 4, 6, 12, 15, 18}));
  EXPECT_EQ(execution.outputs[2], Floats({3}, {5, 7, 9}));
  EXPECT_EQ(execution.outputs[3], Floats({}, {21}));
}

TEST(Execute, LosesAndLearns) {
  const Execution execution =
      Ran(R"(
func @step (%x: f64[2] parameter, %z: f64[2] data) {
  %loss: f64[2] = Loss(%x, %z) {batch=2}
  %dx: f64[2] = LossGrad(%x, %z) {batch=2}
  %relu: f64[2] = Relu(%x)
  %drelu: f64[2] = ReluGrad(%x, %z)
  %sgd: f64[2] = Sgd(%x, %z) {lr=0.1, parameters=1}
  return %loss: loss, %dx: result, %relu: result, %drelu: result, %sgd: updated(%x)
})",
          {{"x", Floats({2}, {3, -1}, DType::kF64)}, {"z", Floats({2}, {1, 1}, DType::kF64)}});
  EXPECT_EQ(execution.outputs[0].floats(), (std::vector<double>{2, 2}));
  EXPECT_EQ(execution.outputs[1].floats(), (std::vector<double>{2, -2}));
  EXPECT_EQ(execution.outputs[2].floats(), (std::vector<double>{3, 0}));
  EXPECT_EQ(execution.outputs[3].floats(), (std::vector<double>{1, 0}));
  EXPECT_DOUBLE_EQ(execution.outputs[4].floats()[0], 2.9);
  EXPECT_DOUBLE_EQ(execution.outputs[4].floats()[1], -1.1);
}

TEST(Execute, OptimizersByHand) {
  const std::string text = R"(
func @optimizers (
  %w: f64[1] parameter, %u: f16[1] parameter, %master: f32[1] state, %m: f64[1] state,
  %v: f64[1] state, %n: f32[1] state, %g: f64[1] data, %h: f16[1] data
) {
  %w1: f64[1], %m1: f64[1] = Momentum(%w, %m, %g) {lr=0.5, mu=0.25, parameters=1}
  %w2: f64[1], %m2: f64[1], %v2: f64[1] = Adam(%w, %m, %v, %g) {beta1=0.5, beta2=0.75, epsilon=0.0, lr=0.5, parameters=1, step=2}
  %u1: f16[1], %master1: f32[1], %n1: f32[1] = Momentum(%u, %master, %n, %h) {lr=0.0004, mu=0.5, parameters=1}
  return %w1: updated(%w), %m1: updated(%m), %w2: result, %m2: result, %v2: result, %u1: updated(%u), %master1: updated(%master), %n1: updated(%n)
})";
  const Execution execution = Ran(text, {{"w", Floats({1}, {1}, DType::kF64)},
                                         {"u", Floats({1}, {1}, DType::kF16)},
                                         {"master", Floats({1}, {1.0004})},
                                         {"m", Floats({1}, {8}, DType::kF64)},
                                         {"v", Floats({1}, {4}, DType::kF64)},
                                         {"n", Floats({1}, {0})},
                                         {"g", Floats({1}, {2}, DType::kF64)},
                                         {"h", Floats({1}, {0.25}, DType::kF16)}});
  const auto value = [&](size_t i) { return execution.outputs[i].floats()[0]; };
  EXPECT_DOUBLE_EQ(value(1), 4);      // 8/4 + 2
  EXPECT_DOUBLE_EQ(value(0), 1 - 2);  // half of that
  EXPECT_DOUBLE_EQ(value(3), 5);      // (8 + 2)/2
  EXPECT_DOUBLE_EQ(value(4), 4);      // 3/4 of 4, 1/4 of 2 squared
  EXPECT_DOUBLE_EQ(value(2), 1 - 0.5 * (5 / 0.75) / std::sqrt(4 / 0.4375));
  // What a half cannot see, its master copy remembers.
  EXPECT_EQ(value(5), 1);
  EXPECT_NEAR(value(6), 1.0004 - 0.0001, 1e-7);
  EXPECT_EQ(value(7), 0.25);
}

TEST(Execute, RoundsUnlessToldNotTo) {
  const std::string text = R"(
func @third (%x: f16[1] data) {
  %y: f16[1] = Scale(%x) {factor=0.3333333333333333}
  return %y: result
})";
  const NamedTensors one = {{"x", Floats({1}, {1}, DType::kF16)}};
  EXPECT_EQ(Ran(text, one).outputs[0].floats()[0], RoundFloat(1.0 / 3, DType::kF16));
  EXPECT_EQ(Ran(text, one, {.round = false}).outputs[0].floats()[0], 1.0 / 3);
}

// A value that is returned stays; inputs and a value that is read twice by one op are no trouble.
TEST(Execute, KeepsWhatIsReturned) {
  const Execution execution = Ran(R"(
func @returns (%x: f32[1] data) {
  %y: f32[1] = Add(%x, %x)
  %z: f32[1] = Mul(%y, %y)
  %u: f32[1] = Add(%z, %z)
  return %y: result, %x: result, %u: result, %y: saved
})",
                                  {{"x", Floats({1}, {3})}});
  const double expected[] = {6, 3, 72, 6};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(execution.outputs[i].floats()[0], expected[i]);
}

TEST(Execute, ConstantsThatHaveNotKeptTheirValuesAreSupplied) {
  const std::string text = R"(
func @constants mesh(dp=2) () {
  %kept: i64[4@dp] = Constant() {values=[1, 2, 3, 4]}
  %lost: f32[4@dp] = Constant()
  %y: f32[4@dp] = Relu(%lost)
  return %kept: result, %y: result
})";
  EXPECT_EQ(ErrorOf(text, {}),
            "constants: Constant %lost: its values were not kept; give them by its name");
  const Tensor lost = Floats({4}, {5, 6, 7, 8});
  const Execution execution = Ran(text, {{"lost", lost}});
  EXPECT_EQ(execution.outputs[0], Tensor::OfInts(DType::kI64, {4}, {1, 2, 3, 4}));
  EXPECT_EQ(execution.outputs[1], lost);
}

TEST(Execute, RanksWorkTogether) {
  const std::string text = R"(
func @layer mesh(dp=2, hp=3) (%x: f32[4@dp,6@hp] data, %w: f32[6@hp,3] parameter) {
  %y.partial: f32[4@dp,3] partial(hp) = MatMul(%x, %w)
  %y: f32[4@dp,3] = AllReduce(%y.partial) {axes="hp"}
  %own: f32[4@dp,3@hp] = AllSlice(%y) {axes="hp", dim=1}
  %a: f32[4@dp,3@hp] = Relu(%own)
  %rows: f32[4@dp,3] = AllGather(%a) {axes="hp", dim=1}
  %all: f32[4,3] = AllGather(%rows) {axes="dp", dim=0}
  %sum: f32[3] partial(dp) = ReduceSum(%rows) {axes=[0]}
  return %y: result, %all: result, %sum: result
})";
  Tensor x(DType::kF32, {4, 6}), w(DType::kF32, {6, 3});
  for (size_t i = 0; i < 24; ++i) x.floats()[i] = static_cast<double>(i * i % 7) - 3;
  for (size_t i = 0; i < 18; ++i) w.floats()[i] = static_cast<double>(i * i % 5) - 2;
  const Execution sharded = Ran(text, {{"x", x}, {"w", w}});
  const Execution alone = Ran(R"(
func @alone (%x: f32[4,6] data, %w: f32[6,3] parameter) {
  %y: f32[4,3] = MatMul(%x, %w)
  %a: f32[4,3] = Relu(%y)
  %sum: f32[3] = ReduceSum(%a) {axes=[0]}
  return %y: result, %a: result, %sum: result
})",
                              {{"x", x}, {"w", w}});
  EXPECT_EQ(sharded.outputs, alone.outputs);
  EXPECT_EQ(sharded.disagreement, 0);
}

// Every op that changes a layout, over axes of unlike sizes: what comes back whole is what went in.
TEST(Execute, LayoutsChange) {
  const auto run = [](const std::string& ops, const std::string& what) {
    const std::string text =
        absl::StrCat("func @layouts mesh(dp=2, hp=3, cp=2) (%x: f32[12@dp.hp,12@cp] data) {\n", ops,
                     "  return %y: result\n}");
    Tensor x(DType::kF32, {12, 12});
    for (size_t i = 0; i < 144; ++i) x.floats()[i] = static_cast<double>(i);
    const Execution execution = Ran(text, {{"x", x}});
    EXPECT_EQ(execution.outputs[0], x) << ops << what;
    EXPECT_EQ(execution.disagreement, 0) << ops;
  };
  run("  %y: f32[12@dp,12@cp] = AllGather(%x) {axes=\"hp\", dim=0}\n", "a suffix");
  run("  %y: f32[12,12@cp] = AllGather(%x) {axes=\"dp.hp\", dim=0}\n", "all axes");
  run("  %y: f32[12@dp,12@cp.hp] = AllToAll(%x) {axes=\"hp\", from=0, to=1}\n", "a suffix");
  run("  %y: f32[12,12@cp.dp.hp] = AllToAll(%x) {axes=\"dp.hp\", from=0, to=1}\n", "all axes");
  run("  %y: f32[12@dp.hp.cp,12] = AllToAll(%x) {axes=\"cp\", from=1, to=0}\n", "onto others");
  run("  %y: f32[12@hp.dp,12@cp] = Permute(%x) {axes=\"dp.hp\", to=\"hp.dp;cp\"}\n", "an order");
  run("  %y: f32[12@cp.hp,12@dp] = Permute(%x) {axes=\"dp.hp.cp\", to=\"cp.hp;dp\"}\n", "a swap");
  run("  %a: f32[12@dp,12@cp] = AllGather(%x) {axes=\"hp\", dim=0}\n"
      "  %y: f32[12@dp,12@cp.hp] = AllSlice(%a) {axes=\"hp\", dim=1}\n",
      "a slice within a split");
}

TEST(Execute, SumsAreScattered) {
  const auto run = [](const std::string& op) {
    const std::string text = absl::StrCat(
        "func @scattered mesh(dp=2, hp=3) (%x: f32[12@dp,6@hp] data, %w: f32[6@hp,6] data) {\n"
        "  %y: f32[12@dp,6] partial(hp) = MatMul(%x, %w)\n",
        op, "  return %z: result\n}");
    Tensor x(DType::kF32, {12, 6}), w(DType::kF32, {6, 6});
    for (size_t i = 0; i < 72; ++i) x.floats()[i] = static_cast<double>(i * i % 11) - 5;
    for (size_t i = 0; i < 36; ++i) w.floats()[i] = static_cast<double>(i * i % 7) - 3;
    return Ran(text, {{"x", x}, {"w", w}}).outputs[0];
  };
  const Tensor whole = run("  %z: f32[12@dp,6] = AllReduce(%y) {axes=\"hp\"}\n");
  EXPECT_EQ(run("  %z: f32[12@dp.hp,6] = ReduceScatter(%y) {axes=\"hp\", dim=0}\n"), whole);
  EXPECT_EQ(run("  %z: f32[12@dp,6@hp] = ReduceScatter(%y) {axes=\"hp\", dim=1}\n"), whole);
}

TEST(Execute, WhatIsWrongIsOneLine) {
  const std::string text = R"(
func @f (%x: f32[2] data) {
  %y: f32[2] = Relu(%x)
  return %y: result
})";
  EXPECT_EQ(ErrorOf(text, {}), "f: input %x is not given");
  EXPECT_EQ(ErrorOf(text, {{"x", Tensor(DType::kI64, {2})}}),
            "f: the value given for %x is i64[2]; wanted f32[2]");
  EXPECT_EQ(ErrorOf(text, {{"x", Tensor(DType::kF32, {3})}}),
            "f: the value given for %x is f32[3]; wanted f32[2]");
  EXPECT_EQ(
      ErrorOf("func @g () {\n %x: f32[2] = Receive() {from=0, tag=\"a\"}\n return %x: result }",
              {}),
      "g: Receive %x: there is nobody to receive from");
  EXPECT_EQ(ErrorOf("func @h mesh(dp=8192) (%x: f32[2] data) {\n return %x: result }", {}),
            "h: got 8192 ranks; wanted at most 4096");
}

TEST(Execute, ValuesWithoutNamesGoByNumber) {
  const Function function = ParseFunction(R"(
func @f (%0: f32[1] data) {
  %1: f32[1] = Relu(%0)
  return %1: result
})")
                                .value();
  EXPECT_EQ(ExecutionName(function, function.inputs()[0].value), "0");
  EXPECT_TRUE(Execute(function, {{"0", Tensor(DType::kF32, {1})}}).ok());
}

}  // namespace
}  // namespace execute_test_cc
}  // namespace orrery::ir
