#include "importer/onnx/batch_major.h"

#include <gtest/gtest.h>

#include <string>

#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace batch_major_test_cc {
namespace {

// What is imported from `graph` with 8 samples, 3 steps.
std::string Imported(const std::string& graph) {
  return ImportText(ModelOf(graph), {.symbols = {}, .batch_size = 8});
}

TEST(BatchMajor, TheBatchBehindTimeIsMovedToTheFront) {
  EXPECT_EQ(Imported("g (float[3,batch,4] x) => (float[3,batch,4] y) { y = Relu(x) }"), R"(
func @m (
  %x: f32[8,3,4] data
) {
  %x.batch1: f32[3,8,4] = Transpose(%x) {perm=[1, 0, 2]}
  %y: f32[3,8,4] = Relu(%x.batch1)
  return %y: result
}
)");
  EXPECT_EQ(Imported("g (float[3,4,Batch_Size] x) => (float[3,4,N] y) { y = Relu(x) }"), R"(
func @m (
  %x: f32[8,3,4] data
) {
  %x.batch2: f32[3,4,8] = Transpose(%x) {perm=[1, 2, 0]}
  %y: f32[3,4,8] = Relu(%x.batch2)
  return %y: result
}
)");
}

// Dynamic time does not pass for the batch where another dimension says that it is.
TEST(BatchMajor, TimeMayBeDynamicToo) {
  EXPECT_EQ(
      ImportText(ModelOf("g (float[steps,batch] x) => (float[steps,batch] y) { y = Relu(x) }"),
                 {.symbols = {{"steps", 3}}, .batch_size = 8}),
      R"(
func @m (
  %x: f32[8,3] data
) {
  %x.batch1: f32[3,8] = Transpose(%x) {perm=[1, 0]}
  %y: f32[3,8] = Relu(%x.batch1)
  return %y: result
}
)");
}

TEST(BatchMajor, WhatHasItFirstOrSaysNothingStays) {
  EXPECT_EQ(
      Imported("g (float[batch,3] x, float[3,4] t) => (float[batch,4] y) { y = MatMul(x, t) }")
          .find("Transpose"),
      std::string::npos);
  EXPECT_EQ(Imported("g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }").find("Transpose"),
            std::string::npos);
}

// Branches read the moved input too.
TEST(BatchMajor, Branches) {
  onnx::ModelProto model = ModelOf(R"(
g (float[3,batch] x, bool c) => (float[3,batch] z) {
  y = Add(x, x)
  z = If <then_branch = t () => (float[3,batch] a) { a = Relu(x) },
          else_branch = e () => (float[3,batch] b) { b = Exp(x) }> (c)
})");
  PutBatchFirst(*model.mutable_graph());
  const onnx::NodeProto& choice = model.graph().node(2);
  ASSERT_EQ(choice.op_type(), "If");
  for (const onnx::AttributeProto& branch : choice.attribute()) {
    EXPECT_EQ(branch.g().node(0).input(0), "x.batch1");
  }
  EXPECT_EQ(model.graph().node(1).input(0), "x.batch1");
}

}  // namespace
}  // namespace batch_major_test_cc
}  // namespace orrery::importer
