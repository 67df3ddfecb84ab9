#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "importer/batch/rebind.h"
#include "importer/load_model.h"
#include "importer/onnx_test_util.h"
#include "ir/batch.h"
#include "ir/verifier.h"

// Graphs that compute with their batch, as exports do. Imported at one batch and brought to another
// they must be what they are when they are imported at that other one.

namespace orrery::importer {
namespace dynamic_batch_test_cc {
namespace {

absl::StatusOr<ir::Function> Load(const std::string& graph, int64_t batch) {
  const std::string path = WriteTestFile("m.onnx", ModelOf(graph).SerializeAsString());
  return LoadModel({.model = path, .batch_size = batch});
}

std::string Text(const absl::StatusOr<ir::Function>& function) {
  if (function.ok()) {
    EXPECT_TRUE(ir::Verify(*function).ok()) << ir::Verify(*function);
  }
  return TextOf(function);
}

// At batches of 1, 3 and 8: the text of the first.
std::string AtAnyBatch(const std::string& graph) {
  const absl::StatusOr<ir::Function> large = Load(graph, 24);
  EXPECT_TRUE(large.ok()) << large.status();
  if (!large.ok()) return "";
  for (const int64_t batch : {1, 3, 8}) {
    const absl::StatusOr<ir::Function> direct = Load(graph, batch);
    EXPECT_EQ(ir::BatchOf(*direct), batch);
    EXPECT_EQ(Text(ir::ChangeBatch(*large, batch, ir::LossBatch::kScales)), Text(direct)) << batch;
    EXPECT_EQ(Text(WithBatch(*large, batch)), Text(direct)) << batch;
    EXPECT_EQ(Text(WithBatch(*direct, 24)), Text(large)) << batch;
  }
  return Text(Load(graph, 1));
}

// What an op asked for is joined with another batched value: a mask of a Llama.
TEST(DynamicBatch, AMaskThatIsAddedTwice) {
  EXPECT_EQ(AtAnyBatch(R"(
g (float[batch,6,6] x) => (float[batch,6,6] y) {
  s = Shape(x)
  i = Constant <value = int64 {0}> ()
  b = Gather <axis = 0> (s, i)
  zero = Constant <value = int64[1] {0}> ()
  ub = Unsqueeze(b, zero)
  six = Constant <value = int64[1] {6}> ()
  shape = Concat <axis = 0> (ub, six, six)
  c = Constant <value = float[1,6,1] {1, 2, 3, 4, 5, 6}> ()
  e = Expand(c, shape)
  h = Add(x, e)
  y = Add(h, x)
})"),
            R"(
func @m (
  %x: f32[1,6,6] data
) {
  %c: f32[1,6,1] = Constant() {values=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
  %e: f32[1,6,6] = Expand(%c) {batch_dim=0, shape=[1, -1, 6]}
  %h: f32[1,6,6] = Add(%x, %e)
  %y: f32[1,6,6] = Add(%h, %x)
  return %y: result
}
)");
}

// The last token of each sample: x[arange(batch), place].
TEST(DynamicBatch, APlaceOfEachSample) {
  constexpr char kGraph[] = R"(
g (float[$0,6,4] x, int64[$0] place) => (float[$0,4] y) {
  s = Shape(x)
  i = Constant <value = int64 {0}> ()
  b = Gather <axis = 0> (s, i)
  one = Constant <value = int64 {1}> ()
  r = Range(i, b, one)
  last = Constant <value = int64[1] {1}> ()
  ur = Unsqueeze(r, last)
  up = Unsqueeze(place, last)
  at = Concat <axis = -1> (ur, up)
  y = GatherND(x, at)
})";
  constexpr char kText[] = R"(
func @m (
  %x: f32[1,6,4] data,
  %place: i64[1] data
) {
  %up: i64[1,1] = Unsqueeze(%place) {axes=[1]}
  %y: f32[1,4] = GatherND(%x, %up) {batch_dims=1}
  return %y: result
}
)";
  EXPECT_EQ(AtAnyBatch(absl::StrReplaceAll(kGraph, {{"$0", "batch"}})), kText);
  EXPECT_EQ(AtAnyBatch(absl::StrReplaceAll(kGraph, {{"$0", "2"}})), kText);
}

TEST(DynamicBatch, ANumberOfEachSample) {
  EXPECT_EQ(AtAnyBatch(R"(
g (int64[batch] x) => (int64[batch] y) {
  s = Shape(x)
  i = Constant <value = int64 {0}> ()
  b = Gather <axis = 0> (s, i)
  one = Constant <value = int64 {1}> ()
  r = Range(i, b, one)
  four = Constant <value = int64 {4}> ()
  rows = Mul(r, four)
  y = Add(rows, x)
})"),
            R"(
func @m (
  %x: i64[1] data
) {
  %1: i64[1] = Constant() {values=[1]}
  %2: i64[1] = Expand(%1) {batch_dim=0, shape=[1]}
  %r: i64[1] = CumSum(%2) {axis=0, exclusive=1}
  %four: i64[] = Constant() {values=[4]}
  %rows: i64[1] = Mul(%r, %four)
  %y: i64[1] = Add(%rows, %x)
  return %y: result
}
)");
}

// The gates of a mixture of experts: as many rows of zeros as there are tokens.
TEST(DynamicBatch, ZerosForEachToken) {
  constexpr char kGraph[] = R"(
g (float[$0,5,3] x, int64[5,1] expert) => (float[$0,5,3] y) {
  flat = Constant <value = int64[2] {-1, 3}> ()
  tokens = Reshape(x, flat)
  k = Constant <value = int64[1] {1}> ()
  best, place = TopK <axis = -1> (tokens, k)
  s = Shape(tokens)
  zeros = ConstantOfShape(s)
  gates = ScatterElements <axis = -1> (zeros, place, best)
  h = Mul(gates, tokens)
  sx = Shape(x)
  y = Reshape(h, sx)
})";
  constexpr char kText[] = R"(
func @m (
  %x: f32[1,5,3] data,
  %expert: i64[5,1] data
) {
  %tokens: f32[5,3] = Reshape(%x) {shape=[-1, 3]}
  %best: f32[5,1], %place: i64[5,1] = TopK(%tokens) {axis=1, k=1}
  %5: f32[1,3] = Constant() {fill=0.0}
  %6: f32[5,3] = Expand(%5) {batch_dim=0, shape=[5, -1]}
  %gates: f32[5,3] = ScatterElements(%6, %place, %best) {axis=1}
  %h: f32[5,3] = Mul(%gates, %tokens)
  %y: f32[1,5,3] = Reshape(%h) {shape=[-1, 5, 3]}
  return %y: result
}
)";
  EXPECT_EQ(AtAnyBatch(absl::StrReplaceAll(kGraph, {{"$0", "batch"}})),
            absl::StrReplaceAll(kText, {{"i64[5,1] data", "i64[5,1] buffer"}}));
  EXPECT_EQ(AtAnyBatch(absl::StrReplaceAll(kGraph, {{"$0", "1"}})), kText);
  EXPECT_EQ(AtAnyBatch(absl::StrReplaceAll(kGraph, {{"$0", "2"}})), kText);
}

// A fixed batch of which the graph makes its queries: they follow it though nothing joins the two.
TEST(DynamicBatch, QueriesForEachSampleOfAFixedBatch) {
  for (const char* batch : {"1", "2"}) {
    EXPECT_EQ(AtAnyBatch(absl::StrReplaceAll(R"(
g (float[$0,8,4] x) => (float[$0,3,4] y) <float[3,4] query = {}> {
  s = Shape(x)
  i = Constant <value = int64 {0}> ()
  b = Gather <axis = 0> (s, i)
  zero = Constant <value = int64[1] {0}> ()
  ub = Unsqueeze(b, zero)
  rest = Constant <value = int64[2] {3, 4}> ()
  shape = Concat <axis = 0> (ub, rest)
  q = Unsqueeze(query, zero)
  e = Expand(q, shape)
  y = Relu(e)
})",
                                             {{"$0", batch}})),
              R"(
func @m (
  %x: f32[1,8,4] data,
  %query: f32[3,4] parameter
) {
  %q: f32[1,3,4] = Unsqueeze(%query) {axes=[0]}
  %e: f32[1,3,4] = Expand(%q) {batch_dim=0, shape=[1, -1, -1]}
  %y: f32[1,3,4] = Relu(%e)
  return %y: result
}
)");
  }
}

// Time before the batch, as torch.nn.LSTM has it unless told otherwise: another dimension is the
// batch where its samples stay apart, which those of a sum over them do not.
TEST(DynamicBatch, TimeIsNoBatch) {
  constexpr char kGraph[] = R"(
g (float[10,2,4] x) => (float[10,1,3] z)
<float[1,12,4] w = {}, float[1,12,3] r = {}> {
  y = LSTM <hidden_size = 3> (x, w, r)
  axes = Constant <value = int64[1] {2}> ()
  z = ReduceSum <keepdims = 0> (y, axes)
})";
  constexpr char kWhy[] =
      "m.onnx: batch 4 in place of 10: m: Lstm 'y' cannot follow the batch: its steps in time are "
      "dimension 0 of the first input, where the batch should be; try to export the model with "
      "batch_first=True";
  EXPECT_EQ(Text(Load(kGraph, 4)), kWhy);
  const auto fixed = Load(kGraph, 10);
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(Text(ir::ChangeBatch(*fixed, 5, ir::LossBatch::kStays)),
            "m: Lstm 'y' cannot have another batch: its steps in time are dimension 0 of the first "
            "input, where the batch should be; try to export the model with batch_first=True");
}

// A mean over all samples by a factor of its own cannot be told from what it is at this batch.
TEST(DynamicBatch, WhatComputesWithItStaysAsItIs) {
  const absl::StatusOr<ir::Function> function = Load(R"(
g (float[batch,4] x) => (float[4] y) {
  s = Shape(x)
  i = Constant <value = int64 {0}> ()
  b = Gather <axis = 0> (s, i)
  f = Cast <to = 1> (b)
  r = Reciprocal(f)
  axes = Constant <value = int64[1] {0}> ()
  sum = ReduceSum <keepdims = 0> (x, axes)
  y = Mul(sum, r)
})",
                                                     8);
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_NE(Text(function).find("%r: f32[] = Constant() {values=[0.125]}"), std::string::npos)
      << Text(function);
}

// arange(batch) + batch, the numbers of samples of a second view: the batch is counted, too.
TEST(DynamicBatch, NumbersOfAnotherView) {
  EXPECT_EQ(AtAnyBatch(R"(
g (int64[batch] x) => (int64[batch] y) {
  s = Shape(x)
  i = Constant <value = int64 {0}> ()
  b = Gather <axis = 0> (s, i)
  zero = Constant <value = int64 {0}> ()
  one = Constant <value = int64 {1}> ()
  own = Range(zero, b, one)
  other = Add(own, b)
  y = Add(x, other)
})"),
            R"(
func @m (
  %x: i64[1] data
) {
  %1: i64[1] = Constant() {values=[1]}
  %2: i64[1] = Expand(%1) {batch_dim=0, shape=[1]}
  %own: i64[1] = CumSum(%2) {axis=0, exclusive=1}
  %4: i64[1] = Constant() {values=[1]}
  %5: i64[1] = Expand(%4) {batch_dim=0, shape=[1]}
  %6: i64[] = ReduceSum(%5) {axes=[0]}
  %other: i64[1] = Add(%own, %6)
  %y: i64[1] = Add(%x, %other)
  return %y: result
}
)");
}

// The batch of the export stands in a constant: what is said names it.
TEST(DynamicBatch, AConstantOfTheBatchOfTheExport) {
  EXPECT_EQ(Text(Load(R"(
g (float[batch,4] x) => (float[batch,4] y) {
  c = Constant <value = float[2,1] {1, 2}> ()
  y = Add(x, c)
})",
                      8)),
            "m.onnx: the Add that makes 'y': shapes [8,4] and [2,1] do not broadcast: with a batch "
            "of 2 it agrees, "
            "so the file has that as a number, in a constant or a shape; try to make it of the "
            "input: x.shape[0], torch.arange(x.shape[0])");
}

// A size that is the batch by its symbol cannot be told from the batch: it stays as it is.
TEST(DynamicBatch, ASymbolOfTwoDimensions) {
  EXPECT_EQ(Text(Load("g (float[N,N,16] x) => (float[N,N,16] y) { y = Relu(x) }", 8)), R"(
func @m (
  %x: f32[8,8,16] data
) {
  %y: f32[8,8,16] = Relu(%x)
  return %y: result
}
)");
}

// The stand-in for a dynamic batch is a prime: one that neither an input nor a number of the file
// has.
TEST(DynamicBatch, SizesThatArePrimes) {
  EXPECT_EQ(Text(Load(R"(
g (float[batch,16] x, float[10007,16] t) => (float[batch,16] y, float[10007,16] u, float[10009] z) {
  y = Relu(x)
  u = Relu(t)
  size = Constant <value = int64[1] {10009}> ()
  z = ConstantOfShape(size)
})",
                      8)),
            R"(
func @m (
  %x: f32[8,16] data,
  %t: f32[10007,16] buffer
) {
  %y: f32[8,16] = Relu(%x)
  %u: f32[10007,16] = Relu(%t)
  %z: f32[10009] = Constant() {fill=0.0}
  return %y: result, %u: result, %z: result
}
)");
}

// A table may come first: what says that it is the batch is.
TEST(DynamicBatch, ATableMayComeFirst) {
  for (const char* inputs : {"float[4,6] t, float[batch,6] x", "float[batch,6] x, float[4,6] t"}) {
    const auto large = Load(absl::StrCat("g (", inputs, R"() => (float[batch,4] y) {
  u = Transpose <perm = [1, 0]> (t)
  y = MatMul(x, u)
})"),
                            8);
    ASSERT_TRUE(large.ok()) << inputs << ": " << large.status();
    const ir::TensorType& made = large->type(large->outputs()[0].value);
    EXPECT_EQ(made.dims, (ir::Dims{8, 4})) << inputs;
  }
}

// Where the batch is dynamic, an input of a fixed size has none, not even at a batch as large.
TEST(DynamicBatch, AFixedInputAsLargeAsTheBatch) {
  constexpr char kGraph[] = R"(
g (float[batch,16] x, float[64,16] t) => (float[batch,64] y) {
  u = Transpose <perm = [1, 0]> (t)
  y = MatMul(x, u)
})";
  for (const int64_t batch : {32, 64}) {
    const auto large = Load(kGraph, batch);
    ASSERT_TRUE(large.ok()) << large.status();
    EXPECT_EQ(Text(ir::ChangeBatch(*large, 16, ir::LossBatch::kStays)), R"(
func @m (
  %x: f32[16,16] data,
  %t: f32[64,16] parameter
) {
  %u: f32[16,64] = Transpose(%t) {perm=[1, 0]}
  %y: f32[16,64] = MatMul(%x, %u)
  return %y: result
}
)");
  }
}

}  // namespace
}  // namespace dynamic_batch_test_cc
}  // namespace orrery::importer
