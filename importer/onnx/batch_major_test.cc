#include "importer/onnx/batch_major.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "importer/load_model.h"
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

// Batch and shapes of the data of a file whose batch is fixed, made 8, and what is said of it.
std::string WithFixedBatch(const std::string& graph) {
  ImportNotes notes;
  const std::string path = WriteTestFile("m.onnx", ModelOf(graph).SerializeAsString());
  const auto function =
      LoadModel({.model = path, .batch_size = 8, .roles = {.parameters = "w.*"}, .notes = &notes});
  if (!function.ok()) return std::string(function.status().message());
  std::string text;
  for (const ir::Input& input : function->inputs()) {
    if (input.role != ir::InputRole::kData) continue;
    absl::StrAppend(&text, ir::ToString(function->type(input.value), function->mesh()), " ");
  }
  return absl::StrCat(text, absl::StrJoin(notes.warnings, "; "));
}

constexpr char kAttention[] = R"(
g ($shape x) => ($out y) <float[4,4] w = {}> {
  q = MatMul(x, w)
  k = Transpose <perm = [$keys]> (q)
  v = Transpose <perm = [$values]> (q)
  scores = MatMul(v, k)
  shares = Softmax <axis = -1> (scores)
  y = MatMul(shares, v)
})";

// Steps in time see each other, or are a dimension of a recurrent net: they are no samples.
TEST(BatchMajor, AFixedBatchBehindTimeIsFound) {
  const std::string told =
      "f32[8,3,4] was read with the batch in dimension 1 of 'x', of 2, as samples in dimension 0 "
      "of each would know of each other; to say which it is, export the model with a dynamic "
      "batch: torch.onnx.export(…, dynamic_axes={'x': {1: 'batch'}})";
  EXPECT_EQ(WithFixedBatch(absl::StrReplaceAll(kAttention, {{"$shape", "float[3,2,4]"},
                                                            {"$out", "float[2,3,4]"},
                                                            {"$keys", "1, 2, 0"},
                                                            {"$values", "1, 0, 2"}})),
            told);
  EXPECT_EQ(WithFixedBatch(R"(
g (float[3,2,4] x) => (float[3,1,2,5] y) <float[1,15,4] w = {}, float[1,15,5] r = {}> {
  y, h = GRU <hidden_size = 5> (x, w, r)
})"),
            told);
}

TEST(BatchMajor, AFixedBatchInFrontStays) {
  EXPECT_EQ(WithFixedBatch(absl::StrReplaceAll(kAttention, {{"$shape", "float[2,3,4]"},
                                                            {"$out", "float[2,3,4]"},
                                                            {"$keys", "0, 2, 1"},
                                                            {"$values", "0, 1, 2"}})),
            "f32[8,3,4] ");
  // Each sample against each, in features and in logits.
  EXPECT_EQ(WithFixedBatch(absl::StrReplaceAll(kAttention, {{"$shape", "float[2,4]"},
                                                            {"$out", "float[2,4]"},
                                                            {"$keys", "1, 0"},
                                                            {"$values", "0, 1"}})),
            "f32[8,4] ");
}

// A state of [layers, batch, features] beside data with the batch first.
std::string WithState(absl::string_view batch, absl::string_view layers) {
  return WithFixedBatch(absl::StrReplaceAll(R"(
g (float[$b,3,4] x, float[$l,$b,5] h0) => (float[3,1,$b,5] y)
<float[1,15,4] w = {}, float[1,15,5] r = {}> {
  steps = Transpose <perm = [1, 0, 2]> (x)
  one = Constant <value = int64[1] {1}> ()
  zero = Constant <value = int64[1] {0}> ()
  state = Slice(h0, zero, one, zero)
  y, h = GRU <hidden_size = 5> (steps, w, r, , , state)
})",
                                            {{"$b", batch}, {"$l", layers}}));
}

TEST(BatchMajor, EachInputHasAFixedBatchWhereItIsAsLarge) {
  const std::string text = WithState("2", "3");
  EXPECT_EQ(text.substr(0, text.find(" as ")),
            "f32[8,3,4] f32[8,3,5] was read with the batch in dimension 1 of 'h0', of 2,");
}

// Of a batch of 1 a state that all samples share would do as well.
TEST(BatchMajor, AStateOfOneSampleIsItsOwn) {
  const std::string text = WithState("1", "2");
  EXPECT_EQ(text.substr(0, text.find("; to say")),
            "f32[8,3,4] f32[8,2,5] was read with the batch in dimension 1 of 'h0', of 1, as "
            "dimension 0 of the first input has it");
}

}  // namespace
}  // namespace batch_major_test_cc
}  // namespace orrery::importer
