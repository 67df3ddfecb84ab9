#include "importer/batch/pick_rows.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(PickRows, OfOtherSamplesAreLeft) {
  for (const char* offsets : {"3, 0", "0, 2", "0, 0"}) {
    const std::string text = ImportText(ModelOf(Graph(offsets)));
    EXPECT_NE(text.find("%y: f32[2,4] = Gather(%flat, %at)"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace pick_rows_test_cc
}  // namespace orrery::importer
