#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx_test_util.h"
#include "ir/execution/execute.h"
#include "ir/op_kind.h"

// Loop and Scan: unrolled where it is known how often they run.

namespace orrery::importer {
namespace loops_test_cc {
namespace {

using Numbers = std::vector<double>;

// What the graph makes of inputs that count from 1 on, output by output.
std::vector<Numbers> Outputs(const std::string& graph) {
  const std::string path = WriteTestFile("m.onnx", ModelOf(graph).SerializeAsString());
  const absl::StatusOr<ir::Function> function = ImportOnnx(path);
  if (!function.ok()) {
    ADD_FAILURE() << function.status();
    return {};
  }
  ir::NamedTensors inputs;
  double next = 1;
  for (const ir::Input& input : function->inputs()) {
    const ir::TensorType& type = function->type(input.value);
    ir::Tensor tensor(type.dtype, type.dims);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetNumber(i, next++);
    inputs[ir::ExecutionName(*function, input.value)] = tensor;
  }
  const absl::StatusOr<ir::Execution> execution = ir::Execute(*function, inputs);
  if (!execution.ok()) {
    ADD_FAILURE() << execution.status();
    return {};
  }
  std::vector<Numbers> outputs;
  for (const ir::Tensor& tensor : execution->outputs) {
    Numbers& output = outputs.emplace_back();
    for (int64_t i = 0; i < tensor.size(); ++i) output.push_back(tensor.Number(i));
  }
  return outputs;
}

// 2 x + 1 for each turn, with what was before it and its number.
std::string Doubling(const std::string& count, const std::string& goes_on,
                     const std::string& head = "") {
  return absl::StrCat("g (", head, R"(float[2] x, float[2] step) => (float[2] y, float[3,2] z) {
  m = Constant <value = int64 {)",
                      count, R"(}> ()
  yes = Constant <value = bool {1}> ()
  y, z = Loop <body = body (int64 i, bool c, float[2] v) => (bool d, float[2] next, float[2] w) {
    two = Constant <value = float {2}> ()
    twice = Mul(v, two)
    next = Add(twice, step)
    turn = Cast <to = 1> (i)
    w = Add(v, turn)
    )",
                      goes_on, R"(
  }> (m, yes, x)
})");
}

TEST(Loop, RunsTurnByTurn) {
  // x = (1, 2), step = (3, 4): (5, 8), (13, 20), (29, 44)
  const std::vector<Numbers> expected = {{29, 44}, {1, 2, 6, 9, 15, 22}};
  EXPECT_EQ(Outputs(Doubling("3", "d = Identity(c)")), expected);
  EXPECT_EQ(Outputs(Doubling("3", "d = Constant <value = bool {1}> ()")), expected);
}

// Two turns go before a third that would be one too many.
TEST(Loop, EndsWhereItsConditionSays) {
  const std::string until = "last = Constant <value = int64 {2}> () d = Less(i, last)";
  const std::vector<Numbers> expected = {{29, 44}, {1, 2, 6, 9, 15, 22}};
  EXPECT_EQ(Outputs(Doubling("9223372036854775807", until)), expected);
}

// The largest number there is has many divisors, but no batch.
TEST(Loop, HasTheBatchInWhatItCarries) {
  for (const int64_t batch : {1, 7, 49, 73}) {
    const std::string text = ImportText(ModelOf(R"(
g (float[batch,2] x) => (float[batch,2] y) {
  m = Constant <value = int64 {9223372036854775807}> ()
  yes = Constant <value = bool {1}> ()
  last = Constant <value = int64 {1}> ()
  y = Loop <body = body (int64 i, bool c, float[batch,2] v) => (bool d, float[batch,2] w) {
    w = Neg(v)
    d = Less(i, last)
  }> (m, yes, x)
})"),
                                        {.batch_size = batch});
    EXPECT_NE(text.find(absl::StrCat("%y/1/w: f32[", batch, ",2] = Neg(%y/0/w)")),
              std::string::npos)
        << text;
  }
}

TEST(Loop, WeightsOfItsBodyAreTheSameInAllTurns) {
  const std::string text = ImportText(ModelOf(R"(
g (float[2,4] x) => (float[2,4] y) {
  m = Constant <value = int64 {3}> ()
  y = Loop <body = body (int64 i, bool c, float[2,4] v) => (bool d, float[2,4] w)
    <float[4,4] weight = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> {
    w = MatMul(v, weight)
    d = Identity(c)
  }> (m,, x)
})"));
  EXPECT_EQ(text, R"(
func @m (
  %x: f32[2,4] data,
  %y/weight: f32[4,4] parameter
) {
  %y/0/w: f32[2,4] = MatMul(%x, %y/weight)
  %y/1/w: f32[2,4] = MatMul(%y/0/w, %y/weight)
  %y/2/w: f32[2,4] = MatMul(%y/1/w, %y/weight)
  %y: f32[2,4] = Identity(%y/2/w)
  return %y: result
}
)");
}

// One in the other, and an If that the number of the turn decides.
TEST(Loop, HoldsOthers) {
  const std::vector<Numbers> outputs = Outputs(R"(
g (float[1] x) => (float[1] y) {
  m = Constant <value = int64 {3}> ()
  y = Loop <body = body (int64 i, bool c, float[1] v) => (bool d, float[1] w) {
    u = Loop <body = inner (int64 j, bool e, float[1] a) => (bool f, float[1] b) {
      number = Cast <to = 1> (j)
      b = Add(a, number)
      f = Identity(e)
    }> (m,, v)
    zero = Constant <value = int64 {0}> ()
    first = Equal(i, zero)
    w = If <then_branch = then () => (float[1] p) { p = Mul(u, u) },
            else_branch = other () => (float[1] q) { q = Neg(u) }> (first)
    d = Identity(c)
  }> (m,, x)
})");
  // 1 + 3 squared, then twice 3 more and turned.
  EXPECT_EQ(outputs, (std::vector<Numbers>{{16}}));
}

TEST(Loop, OfTheBatchIsRefused) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[batch,4] x) => (float[batch,4] y) {
  shape = Shape(x)
  zero = Constant <value = int64 {0}> ()
  m = Gather <axis = 0> (shape, zero)
  y = Loop <body = body (int64 i, bool c) => (bool d, float[4] row) {
    row = Gather <axis = 0> (x, i)
    d = Identity(c)
  }> (m,)
})"),
                       {.batch_size = 4}),
            "m.onnx: the Loop that makes 'y': Loop: how often it runs depends on data: once a "
            "sample; wanted one op for all samples");
}

TEST(Loop, OfAnUnknownLengthIsRefused) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[4] x, int64 m) => (float[4] y) {
  y = Loop <body = body (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    w = Relu(v)
    d = Identity(c)
  }> (m,, x)
})")),
            "m.onnx: the Loop that makes 'y': Loop: how often it runs depends on data: its trip "
            "count is not known beforehand; try to unroll it");
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float x) => (float y) {
  m = Constant <value = int64 {9}> ()
  y = Loop <body = body (int64 i, bool c, float v) => (bool d, float w) {
    w = Mul(v, v)
    d = Less(w, x)
  }> (m,, x)
})")),
            "m.onnx: the Loop that makes 'y': Loop: how often it runs depends on data: its "
            "condition is not known beforehand; try to unroll it");
}

TEST(Loop, OfTooManyOpsIsRefused) {
  const auto loop = [](int64_t turns) {
    return absl::StrCat(R"(
g (float[4] x) => (float[4] y) {
  m = Constant <value = int64 {)",
                        turns, R"(}> ()
  y = Loop <body = body (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    r = Relu(v)
    w = Neg(r)
    d = Identity(c)
  }> (m,, x)
})");
  };
  const absl::StatusOr<ir::Function> most =
      ImportOnnx(WriteTestFile("m.onnx", ModelOf(loop(3000)).SerializeAsString()));
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(std::count_if(most->order().begin(), most->order().end(),
                          [&](ir::OpId op) { return most->kind(op) == ir::OpKind::kRelu; }),
            3000);
  EXPECT_EQ(ImportText(ModelOf(loop(1000000))),
            "m.onnx: the Loop that makes 'y': Loop: unrolled it has more than 10000 ops or turns; "
            "wanted fewer");
}

TEST(Loop, BodiesOfOtherPartsAreRefused) {
  const auto error = [](const std::string& body) {
    return ImportText(ModelOf(absl::StrCat(R"(
g (float[4] x) => (float[4] y) {
  m = Constant <value = int64 {2}> ()
  y = Loop <body = body )",
                                           body, R"(> (m,, x)
})")));
  };
  EXPECT_EQ(error("(int64 i, bool c) => (bool d, float[4] w) { w = Relu(x) d = Identity(c) }"),
            "m.onnx: the Loop that makes 'y': Loop: its body has 2 inputs; wanted 3");
  EXPECT_EQ(error("(int64 i, bool c, float[4] v) => (bool d) { d = Identity(c) }"),
            "m.onnx: the Loop that makes 'y': Loop: its body has 1 outputs; wanted a condition, 1 "
            "values, and one for each other output of the node, which has 1");
  EXPECT_EQ(error("(int64 i, bool c, float[4] v) => (bool d, float[4] w) { d = Identity(c) }"),
            "m.onnx: the Loop that makes 'y': Loop: output 'w' of its body is made by no node");
}

// Sums of rows forward, and of columns of what goes backward; x [3,2] and u [2,3] count from 1.
TEST(Scan, GoesAlongDimensions) {
  const std::vector<Numbers> outputs = Outputs(R"(
g (float[2] s, float[3,2] x, float[2,3] u) => (float[2] t, float[3,2] y, float[2,3] z) {
  t, y, z = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                  scan_output_axes = [0, -1], scan_output_directions = [0, 1],
                  body = body (float[2] a, float[2] b, float[2] c)
                         => (float[2] d, float[2] e, float[2] f) {
    d = Add(a, b)
    e = Add(a, c)
    f = Mul(b, c)
  }> (s, x, u)
})");
  // s = 1 2, x = 3 4, 5 6, 7 8, u = 9 10 11, 12 13 14
  EXPECT_EQ(outputs,
            (std::vector<Numbers>{{16, 20}, {12, 16, 14, 19, 18, 24}, {63, 50, 33, 96, 78, 56}}));
}

TEST(Scan, OfTheBatchIsRefused) {
  EXPECT_EQ(ImportText(ModelOf(R"(
g (float[batch,4] x) => (float[batch,4] y) {
  y = Scan <num_scan_inputs = 1, body = body (float[4] a) => (float[4] b) { b = Relu(a) }> (x)
})"),
                       {.batch_size = 4}),
            "m.onnx: the Scan that makes 'y': Scan: it runs once a sample; wanted one op for all "
            "samples");
}

}  // namespace
}  // namespace loops_test_cc
}  // namespace orrery::importer
