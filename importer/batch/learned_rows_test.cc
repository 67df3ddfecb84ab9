#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "importer/batch/at_six_test_util.h"

// Learned rows that are repeated for each sample, in files with a fixed batch.

namespace orrery::importer {
namespace learned_rows_test_cc {
namespace {

using testing::HasSubstr;

// A query of 2 heads, over x with the batch behind time: as nn.MultiheadAttention has it.
std::string Query(int64_t batch) {
  return absl::StrReplaceAll(R"(func @f (
  %x: f32[$b,3,8] data,
  %q: f32[1,1,8] parameter
) {
  %r: f32[$b,1,8] = Expand(%q) {shape=[$b, -1, -1]}
  %t: f32[1,$b,8] = Transpose(%r) {perm=[1, 0, 2]}
  %s: f32[1,$h,4] = Reshape(%t) {shape=[1, $h, 4]}
  %heads: f32[$h,1,4] = Transpose(%s) {perm=[1, 0, 2]}
  %u: f32[3,$b,8] = Transpose(%x) {perm=[1, 0, 2]}
  %v: f32[3,$h,4] = Reshape(%u) {shape=[3, $h, 4]}
  %k: f32[$h,4,3] = Transpose(%v) {perm=[1, 2, 0]}
  %y: f32[$h,1,3] = MatMul(%heads, %k)
  return %y: result
}
)",
                             {{"$b", absl::StrCat(batch)}, {"$h", absl::StrCat(2 * batch)}});
}

TEST(LearnedRows, AreFollowedIntoHeads) {
  EXPECT_THAT(AtSix(Query(2)), HasSubstr("%y: f32[12,1,3] = MatMul(%heads, %k)"));
  EXPECT_THAT(AtSix(Query(2)), HasSubstr("%s: f32[1,12,4] = Reshape(%t) {shape=[1, -1, 4]}"));
}

// In a file of one sample nothing repeats the query: it is where heads join the batch.
TEST(LearnedRows, AreRepeatedBeforeHeadsWhereTheFileHasOneSample) {
  const std::string six = AtSix(R"(func @f (
  %x: f32[1,3,8] data,
  %q: f32[5,1,8] parameter
) {
  %s: f32[5,2,4] = Reshape(%q) {shape=[5, 2, 4]}
  %heads: f32[2,5,4] = Transpose(%s) {perm=[1, 0, 2]}
  %u: f32[3,1,8] = Transpose(%x) {perm=[1, 0, 2]}
  %v: f32[3,2,4] = Reshape(%u) {shape=[3, 2, 4]}
  %k: f32[2,4,3] = Transpose(%v) {perm=[1, 2, 0]}
  %y: f32[2,5,3] = MatMul(%heads, %k)
  return %y: result
}
)");
  EXPECT_THAT(six, HasSubstr("%y: f32[12,5,3] = MatMul(%heads, %k)"));
  EXPECT_THAT(six, HasSubstr("f32[5,6,8] = Expand(%q)"));
  EXPECT_THAT(six, HasSubstr("%v: f32[3,12,4] = Reshape(%u) {shape=[3, -1, 4]}"));
}

// Masked patches of one sample: an Expand that keeps the batch of 1 as it is makes it.
TEST(LearnedRows, StandBesideThoseOfSamples) {
  EXPECT_THAT(AtSix(R"(func @f (
  %x: f32[1,3,8] data,
  %mask: f32[1,1,8] parameter
) {
  %m: f32[1,2,8] = Expand(%mask) {shape=[-1, 2, -1]}
  %y: f32[1,5,8] = Concat(%x, %m) {axis=1}
  return %y: result
}
)"),
              HasSubstr("%y: f32[6,5,8] = Concat(%x, %m)"));
}

// The batch stands in both dimensions of the logits, and in the one of the labels.
TEST(LearnedRows, StandBesideLogitsOfEachSampleForEach) {
  EXPECT_THAT(AtSix(R"(func @f (
  %x: f32[1,4] data,
  %z: f32[1,4] data
) {
  %labels: i64[1] = Constant() {values=[0]}
  %t: f32[4,1] = Transpose(%z) {perm=[1, 0]}
  %l: f32[1,1] = MatMul(%x, %t)
  %p: f32[1,1] = LogSoftmax(%l) {axis=1}
  %y: f32[1], %w: f32[1] = NegativeLikelihood(%p, %labels)
  return %y: result
}
)"),
              HasSubstr("%y: f32[6], %w: f32[6] = NegativeLikelihood(%p, "));
}

}  // namespace
}  // namespace learned_rows_test_cc
}  // namespace orrery::importer
