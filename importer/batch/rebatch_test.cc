#include "importer/batch/rebatch.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "importer/batch/rebind.h"
#include "importer/load_model.h"
#include "importer/onnx_test_util.h"
#include "ir/batch.h"
#include "ir/verifier.h"

namespace orrery::importer {
namespace rebatch_test_cc {
namespace {

ir::Function Parsed(const std::string& text) {
  auto function = ir::ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

std::string Text(const absl::StatusOr<ir::Function>& function) {
  if (function.ok()) {
    EXPECT_TRUE(ir::Verify(*function).ok()) << ir::Verify(*function);
  }
  return function.ok() ? absl::StrCat("\n", ir::Print(*function))
                       : std::string(function.status().message());
}

std::string Free(const std::string& text) { return Text(MakeBatchFree(Parsed(text))); }

// Heads of attention: batch 2, sequence 3, heads 4 of 5.
constexpr char kHeads[] = R"(
func @f (
  %x: f32[2,3,20] data
) {
  %h: f32[2,3,4,5] = Reshape(%x) {shape=[2, 3, -1, 5]}
  %t: f32[2,4,3,5] = Transpose(%h) {perm=[0, 2, 1, 3]}
  %u: f32[8,3,5] = Reshape(%t) {shape=[8, 3, 5]}
  %y: f32[6,20] = Reshape(%u) {shape=[6, 20]}
  return %y: result
}
)";

TEST(MakeBatchFree, ReshapesAtTheSamePlace) {
  EXPECT_EQ(Free(kHeads), R"(
func @f (
  %x: f32[2,3,20] data
) {
  %h: f32[2,3,4,5] = Reshape(%x) {shape=[-1, 3, 4, 5]}
  %t: f32[2,4,3,5] = Transpose(%h) {perm=[0, 2, 1, 3]}
  %u: f32[8,3,5] = Reshape(%t) {shape=[-1, 3, 5]}
  %y: f32[6,20] = Reshape(%u) {shape=[-1, 20]}
  return %y: result
}
)");
}

// Another batch and back is the same function, and free again what it was.
TEST(MakeBatchFree, IsFreeOnce) {
  const auto free = MakeBatchFree(Parsed(kHeads));
  ASSERT_TRUE(free.ok()) << free.status();
  for (const int64_t batch : {1, 3, 64}) {
    const auto other = WithBatch(*free, batch);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(ir::BatchOf(*other), batch);
    EXPECT_EQ(Text(MakeBatchFree(*other)), Text(other));
    EXPECT_EQ(Text(WithBatch(*other, 2)), Text(free));
  }
}

// A batch of 1 fits anywhere: the first dimension of size 1.
TEST(MakeBatchFree, BatchOfOne) {
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[1,6] data
) {
  %a: f32[1,1,6] = Reshape(%x) {shape=[1, 1, 6]}
  %b: f32[6] = Reshape(%a) {shape=[6]}
  return %b: result
}
)"),
            R"(
func @f (
  %x: f32[1,6] data
) {
  %a: f32[1,1,6] = Reshape(%x) {shape=[-1, 1, 6]}
  %b: f32[6] = Reshape(%a) {shape=[-1]}
  return %b: result
}
)");
}

// An exact position comes before one that has more than the batch in it.
TEST(MakeBatchFree, BatchOfOneBehindAnotherDimension) {
  const std::string text = Free(R"(
func @f (
  %x: f32[1,3,4] data
) {
  %t: f32[3,1,4] = Transpose(%x) {perm=[1, 0, 2]}
  %y: f32[3,1,2,2] = Reshape(%t) {shape=[3, 1, 2, 2]}
  return %y: result
}
)");
  EXPECT_NE(text.find("Reshape(%t) {shape=[3, -1, 2, 2]}"), std::string::npos) << text;
}

// Tokens of a class in front of the patches: the Expand makes the batch.
TEST(MakeBatchFree, ExpandMakesTheBatch) {
  const std::string text = Free(R"(
func @f (
  %x: f32[2,3,4] data,
  %token: f32[1,1,4] parameter
) {
  %e: f32[2,1,4] = Expand(%token) {shape=[2, -1, -1]}
  %y: f32[2,4,4] = Concat(%e, %x) {axis=1}
  return %y: result
}
)");
  EXPECT_EQ(text, R"(
func @f (
  %x: f32[2,3,4] data,
  %token: f32[1,1,4] parameter
) {
  %e: f32[2,1,4] = Expand(%token) {batch_dim=0, shape=[2, -1, -1]}
  %y: f32[2,4,4] = Concat(%e, %x) {axis=1}
  return %y: result
}
)");
  EXPECT_EQ(Text(WithBatch(Parsed(text), 6)), R"(
func @f (
  %x: f32[6,3,4] data,
  %token: f32[1,1,4] parameter
) {
  %e: f32[6,1,4] = Expand(%token) {batch_dim=0, shape=[6, -1, -1]}
  %y: f32[6,4,4] = Concat(%e, %x) {axis=1}
  return %y: result
}
)");
}

// With a batch of 1 nobody wrote an Expand.
TEST(MakeBatchFree, ExpandsWhatHasSizeOne) {
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[1,3,4] data,
  %token: f32[1,1,4] parameter
) {
  %y: f32[1,4,4] = Concat(%token, %x) {axis=1}
  return %y: result
}
)"),
            R"(
func @f (
  %x: f32[1,3,4] data,
  %token: f32[1,1,4] parameter
) {
  %2: f32[1,1,4] = Expand(%token) {batch_dim=0, shape=[1, -1, -1]}
  %y: f32[1,4,4] = Concat(%2, %x) {axis=1}
  return %y: result
}
)");
}

TEST(MakeBatchFree, ConstantsOfEqualRows) {
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[2,3] data
) {
  %c: f32[2,3] = Constant() {values=[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]}
  %d: f32[2,1] = Constant() {fill=5.0}
  %a: f32[2,3] = Add(%x, %c)
  %y: f32[2,3] = Mul(%a, %d)
  return %y: result
}
)"),
            R"(
func @f (
  %x: f32[2,3] data
) {
  %1: f32[1,3] = Constant() {values=[1.0, 2.0, 3.0]}
  %2: f32[2,3] = Expand(%1) {batch_dim=0, shape=[2, -1]}
  %a: f32[2,3] = Add(%x, %2)
  %4: f32[1,1] = Constant() {fill=5.0}
  %5: f32[2,1] = Expand(%4) {batch_dim=0, shape=[2, -1]}
  %y: f32[2,3] = Mul(%a, %5)
  return %y: result
}
)");
}

TEST(MakeBatchFree, ConstantsOfOtherRows) {
  EXPECT_EQ(
      Free(R"(
func @f (
  %x: f32[2,2] data
) {
  %c: f32[2,2] = Constant() {values=[1.0, 2.0, 3.0, 4.0]}
  %y: f32[2,2] = Add(%x, %c)
  return %y: result
}
)"),
      "f: Add 'y' cannot follow the batch: it reads a constant that differs from sample to sample");
}

TEST(MakeBatchFree, SliceOfTheWholeBatch) {
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[2,3] data
) {
  %a: f32[2,3] = Slice(%x) {axes=[0], ends=[2], starts=[0], steps=[1]}
  %b: f32[2,2] = Slice(%a) {axes=[0, 1], ends=[2, 2], starts=[0, 0], steps=[1, 1]}
  %y: f32[2,2] = Relu(%b)
  return %y: result
}
)"),
            R"(
func @f (
  %x: f32[2,3] data
) {
  %b: f32[2,2] = Slice(%x) {axes=[1], ends=[2], starts=[0], steps=[1]}
  %y: f32[2,2] = Relu(%b)
  return %y: result
}
)");
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[4,3] data
) {
  %y: f32[2,3] = Slice(%x) {axes=[0], ends=[2], starts=[0], steps=[1]}
  return %y: result
}
)"),
            "f: Slice 'y' cannot follow the batch: it takes part of the batch");
}

// `ops` make %y of %x: f32[2,6].
std::string Refused(const std::string& ops) {
  return Free(absl::StrCat("func @f (%x: f32[2,6] data) {\n", ops, "\n return %y: result\n}\n"));
}

TEST(MakeBatchFree, WhatDoesNotGrowWithTheBatch) {
  EXPECT_EQ(Refused("%i: i64[2] = Constant() {values=[1, 0]}\n"
                    "%y: f32[2,6] = Gather(%x, %i) {axis=0}"),
            "f: Gather 'y' cannot follow the batch: it takes samples out of the batch");
  EXPECT_EQ(Refused("%c: f32[1,6] = Constant() {fill=1.0}\n"
                    "%y: f32[3,6] = Concat(%x, %c) {axis=0}"),
            "f: Concat 'y' cannot follow the batch: dimension 0 of its result, of 3, does not grow "
            "with the batch");
  EXPECT_EQ(Refused("%y: f32[4,6] = Tile(%x) {axes=[0], repeats=[2]}"),
            "f: Tile 'y' cannot follow the batch: its result has the samples in another order");
  EXPECT_EQ(Refused("%h: f32[4,3] = Reshape(%x) {shape=[4, 3]}\n"
                    "%g: f32[2,3] = Slice(%x) {axes=[1], ends=[3], starts=[0], steps=[1]}\n"
                    "%y: f32[6,3] = Concat(%h, %g) {axis=0}"),
            "f: Concat 'y' cannot follow the batch: its result has the samples in another order");
}

TEST(MakeBatchFree, TwoDimensionsOfTheBatch) {
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[4,8] data
) {
  %t: f32[8,4] = Transpose(%x)
  %y: f32[4,4] = MatMul(%x, %t)
  return %y: result
}
)"),
            R"(
func @f (
  %x: f32[4,8] data
) {
  %t: f32[8,4] = Transpose(%x)
  %y: f32[4,4] = MatMul(%x, %t)
  return %y: result
}
)");
  // But not in one that is more than the batch, and what takes dimensions together is at a loss.
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[4,8] data
) {
  %w: f32[8,8] = Concat(%x, %x) {axis=0}
  %t: f32[8,8] = Transpose(%w)
  %y: f32[4,8] = MatMul(%x, %t)
  return %y: result
}
)"),
            "f: MatMul 'y' cannot follow the batch: its result has the batch in two dimensions");
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[4,8] data
) {
  %t: f32[8,4] = Transpose(%x)
  %y: f32[4,4] = MatMul(%x, %t)
  %z: f32[16] = Reshape(%y) {shape=[16]}
  return %z: result
}
)"),
            "f: Reshape 'z' cannot follow the batch: it reads a value that has the batch in two "
            "dimensions");
}

// A batch of 1 fits anywhere: heads are taken together with it from the outside, and time before
// it.
TEST(MakeBatchFree, ABatchOfOneWithHeads) {
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[1,5,6] data
) {
  %t: f32[5,1,6] = Transpose(%x) {perm=[1, 0, 2]}
  %h: f32[5,3,2] = Reshape(%t) {shape=[5, 3, 2]}
  %r: f32[5,6] = Reshape(%h) {shape=[5, 6]}
  %y: f32[5,1,6] = Reshape(%r) {shape=[5, 1, 6]}
  return %y: result
}
)"),
            R"(
func @f (
  %x: f32[1,5,6] data
) {
  %t: f32[5,1,6] = Transpose(%x) {perm=[1, 0, 2]}
  %h: f32[5,3,2] = Reshape(%t) {shape=[5, -1, 2]}
  %r: f32[5,6] = Reshape(%h) {shape=[-1, 6]}
  %y: f32[5,1,6] = Reshape(%r) {shape=[5, -1, 6]}
  return %y: result
}
)");
}

TEST(MakeBatchFree, SamplesOneAfterTheOther) {
  EXPECT_EQ(Free(R"(
func @f (
  %x: f32[2,3] data
) {
  %c: f32[4,3] = Concat(%x, %x) {axis=0}
  %y: f32[2,2,3] = Reshape(%c) {shape=[2, 2, 3]}
  return %y: result
}
)"),
            R"(
func @f (
  %x: f32[2,3] data
) {
  %1: f32[1,2,3] = Reshape(%x) {shape=[1, -1, 3]}
  %2: f32[1,2,3] = Reshape(%x) {shape=[1, -1, 3]}
  %3: f32[2,2,3] = Concat(%1, %2) {axis=0}
  %c: f32[4,3] = Reshape(%3) {shape=[-1, 3]}
  %y: f32[2,2,3] = Reshape(%c) {shape=[2, -1, 3]}
  return %y: result
}
)");
}

// Nothing joins the queries with the samples, but the output is as large as the batch.
TEST(MakeBatchFree, OutputsThatReadNoSample) {
  constexpr char kQueries[] = R"(
func @f (
  %x: f32[2,3] data,
  %query: f32[1,4] parameter
) {
  %e: f32[2,4] = Expand(%query) {$0shape=[2, -1]}
  %y: f32[2,4] = Relu(%e)
  %z: f32[2,3] = Relu(%x)
  return %y: result, %z: result
}
)";
  EXPECT_EQ(Free(absl::StrReplaceAll(kQueries, {{"$0", ""}})),
            absl::StrReplaceAll(kQueries, {{"$0", "batch_dim=0, "}}));
  EXPECT_EQ(
      Free(R"(
func @f (
  %x: f32[2,3] data,
  %query: f32[2,4] parameter
) {
  %y: f32[2,4] = Relu(%query)
  %z: f32[2,3] = Relu(%x)
  return %y: result, %z: result
}
)"),
      "f: Relu 'y' cannot follow the batch: this output has as many rows, 2, but none of them "
      "comes from a sample");
}

}  // namespace
}  // namespace rebatch_test_cc
}  // namespace orrery::importer
