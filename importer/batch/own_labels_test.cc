#include <gtest/gtest.h>

#include <string>

#include "importer/batch/at_six_test_util.h"

// Labels of a loss that holds each sample against each, of which the file has as many as its batch.

namespace orrery::importer {
namespace own_labels_test_cc {
namespace {

std::string Contrasting(const std::string& labels) {
  return AtSix(R"(func @f (
  %x: f32[2,4] data,
  %y: f32[2,4] data
) {
  %logits: f32[2,2] = MatMul(%x, %y) {transpose_w=1}
  %labels: i64[2] = Constant() {values=)" +
               labels + R"(}
  %each: f32[2], %weights: f32[2] = NegativeLikelihood(%logits, %labels)
  return %each: result
}
)");
}

TEST(OwnLabels, AreTheNumbersOfSamples) {
  EXPECT_EQ(Contrasting("[0, 1]"), R"(func @f (
  %x: f32[6,4] data,
  %y: f32[6,4] data
) {
  %logits: f32[6,6] = MatMul(%x, %y) {transpose_w=1}
  %3: i64[1] = Constant() {fill=1}
  %4: i64[6] = Expand(%3) {batch_dim=0, shape=[6]}
  %5: i64[6] = CumSum(%4) {axis=0, exclusive=1}
  %each: f32[6], %weights: f32[6] = NegativeLikelihood(%logits, %5)
  return %each: result
}
)");
}

// Which sample each would name in another batch, nobody knows.
TEST(OwnLabels, OthersAreNotFollowed) {
  EXPECT_EQ(
      Contrasting("[1, 0]"),
      "f: NegativeLikelihood 'each' cannot follow the batch: it reads a constant that differs "
      "from sample to sample");
}

}  // namespace
}  // namespace own_labels_test_cc
}  // namespace orrery::importer
