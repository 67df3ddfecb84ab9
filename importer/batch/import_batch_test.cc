#include <gtest/gtest.h>

#include <string>

#include "importer/batch/rebatch.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace import_batch_test_cc {
namespace {

// What is made of the batch alone must be told from what happens to have its size.
TEST(ImportOnnx, DynamicBatchOfAnySize) {
  const auto text = [](int64_t batch) {
    return ImportText(ModelOf(R"(
g (float[batch,3] x) => (float[batch,3] y) <float[3,3] w = {}> {
  h = MatMul(x, w)
  s = Shape(x)
  c = ConstantOfShape <value = float[1] {0.5}> (s)
  y = Add(h, c)
})"),
                      {.symbols = {{"batch", batch}}});
  };
  EXPECT_EQ(text(3), R"(
func @m (
  %x: f32[3,3] data,
  %w: f32[3,3] parameter
) {
  %h: f32[3,3] = MatMul(%x, %w)
  %3: f32[1,3] = Constant() {fill=0.5}
  %4: f32[3,3] = Expand(%3) {batch_dim=0, shape=[3, -1]}
  %y: f32[3,3] = Add(%h, %4)
  return %y: result
}
)");
}

// Where the batch is computed with, it is the one that was asked for; a share of it follows it.
TEST(ImportOnnx, DynamicBatchThatIsANumber) {
  const auto import = [](const std::string& op) {
    return ImportText(ModelOf(absl::StrReplaceAll(R"(
g (float[batch,3] x) => (float[batch,3] y) {
  s = Shape<end = 1>(x)
  n = Cast<to = 1>(s)
  y = $op(x, n)
})",
                                                  {{"$op", op}}),
                              15),
                      {.symbols = {{"batch", 4}}});
  };
  EXPECT_EQ(import("Mul"), R"(
func @m (
  %x: f32[4,3] data
) {
  %n: f32[1] = Constant() {values=[4.0]}
  %y: f32[4,3] = Mul(%x, %n)
  return %y: result
}
)");
  EXPECT_EQ(import("Div"), R"(
func @m (
  %x: f32[4,3] data
) {
  %y: f32[4,3] = Scale(%x) {factor=0.25, over_batch=1}
  return %y: result
}
)");
}

}  // namespace
}  // namespace import_batch_test_cc
}  // namespace orrery::importer
