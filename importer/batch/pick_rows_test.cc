#include "importer/batch/pick_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "importer/load_model.h"
#include "importer/onnx_test_util.h"
#include "ir/batch.h"

namespace orrery::importer {
namespace pick_rows_test_cc {
namespace {

// x[arange(batch), ids], as PyTorch exports it for a batch of 2; rows of 3.
std::string Graph(const std::string& offsets) {
  return absl::StrCat(R"(
g (float[2,3,4] x, int64[2] ids) => (float[2,4] y) {
  shape = Constant <value = int64[2] {-1, 4}> ()
  flat = Reshape(x, shape)
  offsets = Constant <value = int64[2] {)",
                      offsets, R"(}> ()
  at = Add(ids, offsets)
  y = Gather <axis = 0> (flat, at)
})");
}

TEST(PickRows, OfEachSampleFollowTheBatch) {
  const std::string path = WriteTestFile("m.onnx", ModelOf(Graph("0, 3")).SerializeAsString());
  const auto function = LoadModel({.model = path, .batch_size = 5});
  EXPECT_EQ(TextOf(function), R"(
func @m (
  %x: f32[5,3,4] data,
  %ids: i64[5] data
) {
  %2: i64[5,1] = Unsqueeze(%ids) {axes=[1]}
  %y: f32[5,4] = GatherND(%x, %2) {batch_dims=1}
  return %y: result
}
)");
}

// Several a sample, flattened: the masked positions of a language model.
TEST(PickRows, OfSeveralRowsASample) {
  const std::string graph = R"(
g (float[2,3,4] x, int64[2,5] ids) => (float[10,4] y) {
  shape = Constant <value = int64[2] {-1, 4}> ()
  flat = Reshape(x, shape)
  offsets = Constant <value = int64[2,1] {0, 3}> ()
  at = Add(ids, offsets)
  all = Constant <value = int64[1] {-1}> ()
  rows = Reshape(at, all)
  y = Gather <axis = 0> (flat, rows)
})";
  const std::string path = WriteTestFile("m.onnx", ModelOf(graph).SerializeAsString());
  const auto function = LoadModel({.model = path, .batch_size = 6});
  EXPECT_EQ(TextOf(function), R"(
func @m (
  %x: f32[6,3,4] data,
  %ids: i64[6,5] data
) {
  %2: i64[6,5,1] = Unsqueeze(%ids) {axes=[2]}
  %3: f32[6,5,4] = GatherND(%x, %2) {batch_dims=1}
  %y: f32[30,4] = Reshape(%3) {shape=[-1, 4]}
  return %y: result
}
)");
}

TEST(PickRows, OfOtherSamplesAreLeft) {
  for (const char* offsets : {"3, 0", "0, 2", "0, 0"}) {
    const std::string text = ImportText(ModelOf(Graph(offsets)));
    EXPECT_NE(text.find("%y: f32[2,4] = Gather(%flat, %at)"), std::string::npos) << text;
  }
}

// x[arange(batch)], with the range counted as PyTorch does it for a diagonal.
TEST(PickRows, OfOneselfAreThose) {
  const std::string graph = R"(
g (float[batch,4] x) => (float[batch,4] y) {
  shape = Shape(x)
  zero = Constant <value = int64[1] {0}> ()
  size = Gather(shape, zero)
  ones = ConstantOfShape <value = int64[1] {1}> (size)
  axis = Constant <value = int64 {0}> ()
  counted = CumSum(ones, axis)
  minus = Constant <value = int64[1] {$0}> ()
  at = Add(counted, minus)
  y = Gather <axis = 0> (x, at)
})";
  const auto import = [&](const std::string& first) {
    return ImportText(ModelOf(absl::StrReplaceAll(graph, {{"$0", first}})),
                      {.symbols = {{"batch", 3}}});
  };
  EXPECT_EQ(import("-1"), R"(
func @m (
  %x: f32[3,4] data
) {
  %y: f32[3,4] = Identity(%x)
  return %y: result
}
)");
  EXPECT_NE(import("-2").find("Gather(%x"), std::string::npos);
}

}  // namespace
}  // namespace pick_rows_test_cc
}  // namespace orrery::importer
