#include <gtest/gtest.h>

#include <string>

#include "transforms/simplify/pass_test_util.h"

// Values that have the batch second, or with time in one dimension, are made of those that have it
// first, and compute the same.

namespace orrery::transforms {
namespace batch_first_test_cc {
namespace {

// 4 samples of 3 positions, 6 channels, as nn.MultiheadAttention has them, with 2 heads.
constexpr char kAttention[] =
    R"(%x: f32[4,3,6] data, %w: f32[6,18] parameter, %b: f32[18] parameter, %o: f32[6,6] parameter
%xt: f32[3,4,6] = Transpose(%x) {perm=[1, 0, 2]}
%m: f32[3,4,18] = MatMul(%xt, %w)
%p: f32[3,4,18] = Add(%b, %m)
%q: f32[3,4,6] = Slice(%p) {axes=[2], ends=[6], starts=[0], steps=[1]}
%k: f32[3,4,6] = Slice(%p) {axes=[2], ends=[12], starts=[6], steps=[1]}
%v: f32[3,4,6] = Slice(%p) {axes=[2], ends=[18], starts=[12], steps=[1]}
%q3: f32[3,8,3] = Reshape(%q) {shape=[3, -1, 3]}
%k3: f32[3,8,3] = Reshape(%k) {shape=[3, -1, 3]}
%v3: f32[3,8,3] = Reshape(%v) {shape=[3, -1, 3]}
%qh: f32[8,3,3] = Transpose(%q3) {perm=[1, 0, 2]}
%kh: f32[8,3,3] = Transpose(%k3) {perm=[1, 2, 0]}
%vh: f32[8,3,3] = Transpose(%v3) {perm=[1, 0, 2]}
%s: f32[8,3,3] = MatMul(%qh, %kh)
%a: f32[8,3,3] = Softmax(%s) {axis=2}
%h: f32[8,3,3] = MatMul(%a, %vh)
%ht: f32[3,8,3] = Transpose(%h) {perm=[1, 0, 2]}
%f: f32[12,6] = Reshape(%ht) {shape=[-1, 6]}
%g: f32[12,6] = MatMul(%f, %o)
%r: f32[3,4,6] = Reshape(%g) {shape=[3, -1, 6]}
%y: f32[4,3,6] = Transpose(%r) {perm=[1, 0, 2]}
return %y: result)";

TEST(BatchFirst, AttentionWithTheBatchSecond) {
  EXPECT_EQ(After("batch-first", kAttention), R"(%m: f32[4,3,18] = MatMul(%x, %w)
%p: f32[4,3,18] = Add(%b, %m)
%q: f32[4,3,6] = Slice(%p) {axes=[2], ends=[6], starts=[0], steps=[1]}
%k: f32[4,3,6] = Slice(%p) {axes=[2], ends=[12], starts=[6], steps=[1]}
%v: f32[4,3,6] = Slice(%p) {axes=[2], ends=[18], starts=[12], steps=[1]}
%9: f32[4,3,2,3] = Reshape(%q) {shape=[-1, 3, 2, 3]}
%10: f32[4,3,2,3] = Reshape(%k) {shape=[-1, 3, 2, 3]}
%11: f32[4,3,2,3] = Reshape(%v) {shape=[-1, 3, 2, 3]}
%12: f32[4,2,3,3] = Transpose(%9) {perm=[0, 2, 1, 3]}
%qh: f32[8,3,3] = Reshape(%12) {shape=[-1, 3, 3]}
%14: f32[4,2,3,3] = Transpose(%10) {perm=[0, 2, 3, 1]}
%kh: f32[8,3,3] = Reshape(%14) {shape=[-1, 3, 3]}
%16: f32[4,2,3,3] = Transpose(%11) {perm=[0, 2, 1, 3]}
%vh: f32[8,3,3] = Reshape(%16) {shape=[-1, 3, 3]}
%s: f32[8,3,3] = MatMul(%qh, %kh)
%a: f32[8,3,3] = Softmax(%s) {axis=2}
%h: f32[8,3,3] = MatMul(%a, %vh)
%21: f32[4,2,3,3] = Reshape(%h) {shape=[-1, 2, 3, 3]}
%22: f32[4,3,2,3] = Transpose(%21) {perm=[0, 2, 1, 3]}
%23: f32[4,3,6] = Reshape(%22) {shape=[-1, 3, 6]}
%y: f32[4,3,6] = MatMul(%23, %o)
return %y: result
)");
  // All of it is what is written with the batch first.
  EXPECT_EQ(
      After("simplify", kAttention),
      R"(%q: f32[4,3,6], %k: f32[4,3,6], %v: f32[4,3,6] = LinearGroup(%x, %w.0, %w.1, %w.2, %b.0, %b.1, %b.2) {count=3}
%11: f32[4,3,6], %12: f32[4,2,3,3] = Attention(%q, %k, %v) {heads=2, kv_heads=2, scale=1.0}
%y: f32[4,3,6] = MatMul(%11, %o)
return %y: result
)");
}

// Residuals, norms and tables of an encoder that has time first throughout; the output too.
constexpr char kEncoder[] = R"(%x: f32[4,3,6] data, %t: f32[3,1,6] parameter, %w: f32[6,6] parameter
%xt: f32[3,4,6] = Transpose(%x) {perm=[1, 0, 2]}
%e: f32[3,4,6] = Add(%xt, %t)
%m: f32[3,4,1] = ReduceMean(%e) {axes=[2], keepdims=1}
%c: f32[3,4,6] = Sub(%e, %m)
%h: f32[3,4,6] = MatMul(%c, %w)
%s: f32[3,4,6] = Add(%h, %e)
%f: f32[12,6] = Reshape(%s) {shape=[-1, 6]}
%g: f32[12,6] = Relu(%f)
%r: f32[3,4,6] = Reshape(%g) {shape=[3, -1, 6]}
%z: f32[4,6] = ReduceSum(%r) {axes=[0], keepdims=0}
%y: f32[4,3,6] = Transpose(%r) {perm=[1, 0, 2]}
return %y: result, %z: result)";

TEST(BatchFirst, TimeFirstThroughout) {
  EXPECT_EQ(After("batch-first", kEncoder), R"(%3: f32[1,3,6] = Reshape(%t) {shape=[1, 3, 6]}
%e: f32[4,3,6] = Add(%x, %3)
%m: f32[4,3,1] = ReduceMean(%e) {axes=[2], keepdims=1}
%c: f32[4,3,6] = Sub(%e, %m)
%h: f32[4,3,6] = MatMul(%c, %w)
%s: f32[4,3,6] = Add(%h, %e)
%y: f32[4,3,6] = Relu(%s)
%z: f32[4,6] = ReduceSum(%y) {axes=[1], keepdims=0}
return %y: result, %z: result
)");
}

TEST(BatchFirst, OutputsStayAsTheyWere) {
  // Nothing is won where the value is wanted with the batch second, and nothing has it inside.
  const LineChanges second = {
      {"%y: f32[4,3,6] = Transpose(%r) {perm=[1, 0, 2]}", "%y: f32[3,4,6] = Exp(%r)"}};
  LineChanges apart = second;
  apart.emplace_back("%f: f32[12,6] = Reshape(%s) {shape=[-1, 6]}\n", "");
  apart.emplace_back("%g: f32[12,6] = Relu(%f)", "%r: f32[3,4,6] = Relu(%s)");
  apart.emplace_back("%r: f32[3,4,6] = Reshape(%g) {shape=[3, -1, 6]}\n", "");
  ExpectLeft("batch-first", kEncoder, {apart});
  // Where something has, as much is moved, and samples follow each other.
  EXPECT_EQ(After("batch-first", With(kEncoder, second)),
            R"(%3: f32[1,3,6] = Reshape(%t) {shape=[1, 3, 6]}
%e: f32[4,3,6] = Add(%x, %3)
%m: f32[4,3,1] = ReduceMean(%e) {axes=[2], keepdims=1}
%c: f32[4,3,6] = Sub(%e, %m)
%h: f32[4,3,6] = MatMul(%c, %w)
%s: f32[4,3,6] = Add(%h, %e)
%g: f32[4,3,6] = Relu(%s)
%z: f32[4,6] = ReduceSum(%g) {axes=[1], keepdims=0}
%11: f32[4,3,6] = Exp(%g)
%y: f32[3,4,6] = Transpose(%11) {perm=[1, 0, 2]}
return %y: result, %z: result
)");
}

TEST(BatchFirst, WhatMixesTheBatchIsLeft) {
  ExpectLeft("batch-first", kEncoder,
             {{{"%c: f32[3,4,6] = Sub(%e, %m)", "%c: f32[3,4,6] = CumSum(%e) {axis=1}"},
               {"%m: f32[3,4,1] = ReduceMean(%e) {axes=[2], keepdims=1}\n", ""},
               {"%s: f32[3,4,6] = Add(%h, %e)", "%s: f32[3,4,6] = CumSum(%h) {axis=1}"},
               {"%g: f32[12,6] = Relu(%f)", "%g: f32[12,6] = CumSum(%f) {axis=0}"}}});
}

// A Split without an axis goes along the first dimension, here time; an output that is seen with
// time first has its name once.
TEST(BatchFirst, PartsAlongTime) {
  constexpr char kParts[] = R"(%x: f32[4,6,2] data, %w: f32[2,2] parameter
%t: f32[6,4,2] = Transpose(%x) {perm=[1, 0, 2]}
%h: f32[6,4,2] = MatMul(%t, %w)
%a: f32[2,4,2], %b: f32[4,4,2] = Split(%h) {sizes=[2, 4]}
%f: f32[16,2] = Reshape(%b) {shape=[-1, 2]}
%g: f32[16,2] = Exp(%f)
%r: f32[4,4,2] = Reshape(%g) {shape=[4, -1, 2]}
%y: f32[4,4,2] = Transpose(%r) {perm=[1, 0, 2]}
return %y: result, %a: result)";
  EXPECT_EQ(After("batch-first", kParts), R"(%h: f32[4,6,2] = MatMul(%x, %w)
%3: f32[4,2,2], %b: f32[4,4,2] = Split(%h) {axis=1, sizes=[2, 4]}
%y: f32[4,4,2] = Exp(%b)
%a: f32[2,4,2] = Transpose(%3) {perm=[1, 0, 2]}
return %y: result, %a: result
)");
}

// Pooling that takes the first of time behind the attention, x[0].
TEST(BatchFirst, TakesOneOfTime) {
  EXPECT_EQ(After("batch-first", R"(%x: f32[4,3,6] data, %w: f32[6,8] parameter
%i: i64[] = Constant() {values=[0]}
%xt: f32[3,4,6] = Transpose(%x) {perm=[1, 0, 2]}
%m: f32[3,4,8] = MatMul(%xt, %w)
%y: f32[4,8] = Gather(%m, %i) {axis=0}
return %y: result)"),
            R"(%i: i64[] = Constant() {values=[0]}
%m: f32[4,3,8] = MatMul(%x, %w)
%y: f32[4,8] = Gather(%m, %i) {axis=1}
return %y: result
)");
}

// What recurrent ops make has the batch behind time: rows of it are no longer flattened, and
// nothing is moved.
constexpr char kRecurrent[] =
    R"(%x: f32[4,3,2] data, %w: f32[2,8,2] parameter, %u: f32[2,8,2] parameter, %l: f32[4,5] parameter
%xt: f32[3,4,2] = Transpose(%x) {perm=[1, 0, 2]}
%y: f32[3,2,4,2], %h: f32[2,4,2], %c: f32[2,4,2], %gates: f32[3,2,4,8], %cells: f32[3,2,4,2] = Lstm(%xt, %w, %u) {direction="bidirectional"}
%yt: f32[3,4,2,2] = Transpose(%y) {perm=[0, 2, 1, 3]}
%f: f32[12,4] = Reshape(%yt) {shape=[-1, 4]}
%g: f32[12,5] = MatMul(%f, %l)
%e: f32[12,5] = Relu(%g)
%z: f32[3,4,5] = Reshape(%e) {shape=[3, -1, 5]}
return %z: result)";

TEST(BatchFirst, RecurrentOpsHaveItBehindTime) {
  EXPECT_EQ(After("batch-first", kRecurrent), R"(%4: f32[3,4,2] = Transpose(%x) {perm=[1, 0, 2]}
%y: f32[3,2,4,2], %h: f32[2,4,2], %c: f32[2,4,2], %gates: f32[3,2,4,8], %cells: f32[3,2,4,2] = Lstm(%4, %w, %u) {direction="bidirectional"}
%10: f32[3,4,2,2] = Transpose(%y) {perm=[0, 2, 1, 3]}
%11: f32[3,4,4] = Reshape(%10) {shape=[3, -1, 4]}
%g: f32[3,4,5] = MatMul(%11, %l)
%z: f32[3,4,5] = Relu(%g)
return %z: result
)");
}

// A sum of rows that come from a recurrent op and of rows that had the batch first.
TEST(BatchFirst, RowsOfBothOrders) {
  EXPECT_EQ(
      After("batch-first", With(kRecurrent, {{"%e: f32[12,5] = Relu(%g)",
                                              R"(%xm: f32[3,4,5] = MatMul(%xt, %m)
%xf: f32[12,5] = Reshape(%xm) {shape=[-1, 5]}
%e: f32[12,5] = Add(%g, %xf))"},
                                             {"%l: f32[4,5] parameter",
                                              "%l: f32[4,5] parameter, %m: f32[2,5] parameter"}})),
      R"(%5: f32[3,4,2] = Transpose(%x) {perm=[1, 0, 2]}
%y: f32[3,2,4,2], %h: f32[2,4,2], %c: f32[2,4,2], %gates: f32[3,2,4,8], %cells: f32[3,2,4,2] = Lstm(%5, %w, %u) {direction="bidirectional"}
%11: f32[3,4,2,2] = Transpose(%y) {perm=[0, 2, 1, 3]}
%12: f32[3,4,4] = Reshape(%11) {shape=[3, -1, 4]}
%g: f32[3,4,5] = MatMul(%12, %l)
%xm: f32[4,3,5] = MatMul(%x, %m)
%15: f32[3,4,5] = Transpose(%xm) {perm=[1, 0, 2]}
%z: f32[3,4,5] = Add(%g, %15)
return %z: result
)");
}

// What is moved of parameters does not count: as much as before is moved of samples, and no rank
// has to gather any. The batch of two views of each sample is one of twice as many.
TEST(BatchFirst, ViewsOfSamples) {
  EXPECT_EQ(After("batch-first",
                  R"(%x: f32[4,2,6,3] data, %t: f32[3,1,6] parameter, %w: f32[6,6] parameter
%v: f32[8,6,3] = Reshape(%x) {shape=[-1, 6, 3]}
%xt: f32[3,8,6] = Transpose(%v) {perm=[2, 0, 1]}
%e: f32[3,8,6] = Add(%xt, %t)
%f: f32[24,6] = Reshape(%e) {shape=[-1, 6]}
%g: f32[24,6] = MatMul(%f, %w)
%r: f32[3,8,6] = Reshape(%g) {shape=[3, -1, 6]}
%z: f32[8,6] = ReduceSum(%r) {axes=[0], keepdims=0}
return %z: result)"),
            R"(%v: f32[8,6,3] = Reshape(%x) {shape=[-1, 6, 3]}
%4: f32[3,1,6] = Reshape(%t) {shape=[3, 1, 6]}
%5: f32[1,6,3] = Transpose(%4) {perm=[1, 2, 0]}
%e: f32[8,6,3] = Add(%v, %5)
%7: f32[8,3,6] = Transpose(%e) {perm=[0, 2, 1]}
%g: f32[8,3,6] = MatMul(%7, %w)
%z: f32[8,6] = ReduceSum(%g) {axes=[1], keepdims=0}
return %z: result
)");
}

// Ops that compute each row by itself, as convolutions of frames: rows stand as [batch, time], and
// activations stay with what they follow.
TEST(BatchFirst, RowsOfTimeAndBatch) {
  EXPECT_EQ(After("batch-first", R"(%x: f32[4,3,2,2] data, %w: f32[5,2,1] parameter
%xt: f32[3,4,2,2] = Transpose(%x) {perm=[1, 0, 2, 3]}
%f: f32[12,2,2] = Reshape(%xt) {shape=[-1, 2, 2]}
%c: f32[12,5,2] = Conv(%f, %w) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
%r: f32[12,5,2] = Relu(%c)
%m: f32[12,5] = ReduceMean(%r) {axes=[2], keepdims=0}
%y: f32[3,4,5] = Reshape(%m) {shape=[3, -1, 5]}
%z: f32[4,5] = ReduceSum(%y) {axes=[0], keepdims=0}
return %z: result)"),
            R"(%2: f32[12,2,2] = Reshape(%x) {shape=[-1, 2, 2]}
%3: f32[12,5,2] = Conv(%2, %w) {dilations=[1], group=1, pads=[0, 0], strides=[1]}
%4: f32[4,3,5,2] = Reshape(%3) {shape=[-1, 3, 5, 2]}
%5: f32[12,5,2] = Reshape(%4) {shape=[-1, 5, 2]}
%6: f32[12,5,2] = Relu(%5)
%7: f32[4,3,5,2] = Reshape(%6) {shape=[-1, 3, 5, 2]}
%8: f32[12,5,2] = Reshape(%7) {shape=[-1, 5, 2]}
%9: f32[12,5] = ReduceMean(%8) {axes=[2], keepdims=0}
%10: f32[4,3,5] = Reshape(%9) {shape=[-1, 3, 5]}
%z: f32[4,5] = ReduceSum(%10) {axes=[1], keepdims=0}
return %z: result
)");
}

// Losses of rows are summed: their order is that of the rows.
TEST(BatchFirst, LossesOfRows) {
  EXPECT_EQ(After("batch-first", R"(%x: f32[4,3,2] data, %l: i64[4,3] data, %w: f32[2,5] parameter
%xt: f32[3,4,2] = Transpose(%x) {perm=[1, 0, 2]}
%lt: i64[3,4] = Transpose(%l) {perm=[1, 0]}
%f: f32[12,2] = Reshape(%xt) {shape=[-1, 2]}
%t: i64[12] = Reshape(%lt) {shape=[-1]}
%g: f32[12,5] = MatMul(%f, %w)
%s: f32[12,5] = LogSoftmax(%g) {axis=1}
%n: f32[12], %c: f32[12] = NegativeLikelihood(%s, %t)
%loss: f32[] = ReduceMean(%n) {axes=[0], keepdims=0}
return %loss: result)"),
            R"(%g: f32[4,3,5] = MatMul(%x, %w)
%s: f32[4,3,5] = LogSoftmax(%g) {axis=2}
%5: f32[12,5] = Reshape(%s) {shape=[-1, 5]}
%6: i64[12] = Reshape(%l) {shape=[-1]}
%7: f32[12], %8: f32[12] = NegativeLikelihood(%5, %6)
%9: f32[4,3] = Reshape(%7) {shape=[-1, 3]}
%10: f32[12] = Reshape(%9) {shape=[-1]}
%loss: f32[] = ReduceMean(%10) {axes=[0], keepdims=0}
return %loss: result
)");
}

// What comes with time first from an op that makes much of little stays so: as little is moved as
// before.
TEST(BatchFirst, TimeStaysFirstWhereLittleIsMoved) {
  EXPECT_EQ(
      After(
          "batch-first",
          R"(%x: i64[4,3] data, %e: f32[9,4] parameter, %w: f32[1,8,4] parameter, %u: f32[1,8,2] parameter
%xt: i64[3,4] = Transpose(%x) {perm=[1, 0]}
%t: f32[3,4,4] = Gather(%e, %xt) {axis=0}
%f: f32[12,4] = Reshape(%t) {shape=[-1, 4]}
%g: f32[12,4] = Relu(%f)
%s: f32[3,4,4] = Reshape(%g) {shape=[3, -1, 4]}
%y: f32[3,1,4,2], %h: f32[1,4,2], %c: f32[1,4,2], %gates: f32[3,1,4,8], %cells: f32[3,1,4,2] = Lstm(%s, %w, %u)
return %y: result)"),
      R"(%xt: i64[3,4] = Transpose(%x) {perm=[1, 0]}
%t: f32[3,4,4] = Gather(%e, %xt) {axis=0}
%g: f32[3,4,4] = Relu(%t)
%y: f32[3,1,4,2], %h: f32[1,4,2], %c: f32[1,4,2], %gates: f32[3,1,4,8], %cells: f32[3,1,4,2] = Lstm(%g, %w, %u)
return %y: result
)");
}

}  // namespace
}  // namespace batch_first_test_cc
}  // namespace orrery::transforms
