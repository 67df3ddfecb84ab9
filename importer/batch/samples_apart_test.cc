#include "importer/batch/samples_apart.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "support/check.h"

namespace orrery::importer {
namespace samples_apart_test_cc {
namespace {

// Of a function of two samples x [2,3] with the body `ops`.
bool Apart(const std::string& ops) {
  const auto function =
      ir::ParseFunction(absl::StrCat("func @f (\n  %x: f32[2,3] data,\n  %w: f32[3,3] parameter\n",
                                     ") {\n", ops, "  return %y: result\n}\n"));
  ORRERY_CHECK(function.ok()) << function.status();
  return SamplesStayApart(*function);
}

TEST(SamplesApart, StayWhereEachIsComputedByItself) {
  EXPECT_TRUE(Apart("  %y: f32[2,3] = MatMul(%x, %w)\n"));
  EXPECT_TRUE(Apart("  %y: f32[2,3] = Softmax(%x) {axis=1}\n"));
}

TEST(SamplesApart, MaySumUpToOneNumber) {
  EXPECT_TRUE(Apart("  %y: f32[] = ReduceMean(%x) {axes=[0, 1]}\n"));
  EXPECT_FALSE(Apart("  %y: f32[3] = ReduceMean(%x) {axes=[0]}\n"));
}

TEST(SamplesApart, DoNotMeet) {
  EXPECT_FALSE(Apart("  %y: f32[2,3] = Softmax(%x) {axis=0}\n"));
  EXPECT_FALSE(
      Apart("  %t: f32[3,2] = Transpose(%x) {perm=[1, 0]}\n"
            "  %y: f32[2,2] = MatMul(%x, %t)\n"));
}

TEST(SamplesApart, AreNoneWithoutABatch) {
  EXPECT_FALSE(Apart("  %y: f32[2,3] = Reshape(%x) {shape=[2, 3]}\n"));
}

}  // namespace
}  // namespace samples_apart_test_cc
}  // namespace orrery::importer
