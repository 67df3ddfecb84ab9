#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "importer/batch/at_six_test_util.h"
#include "importer/batch/batch_in_shape.h"

// Views of samples that are encoded together, and shapes in which several dimensions may be the
// batch.

namespace orrery::importer {
namespace batch_views_test_cc {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// Two views of each of `batch` samples, encoded at once and taken apart by `part`.
std::string Siamese(int64_t batch, const std::string& part) {
  return absl::StrReplaceAll(absl::StrCat(R"(func @f (
  %a: f32[$b,4] data,
  %b: f32[$b,4] data
) {
  %both: f32[$2,4] = Concat(%a, %b) {axis=0}
  %z: f32[$2,4] = Tanh(%both)
)",
                                          part, R"(  %d: f32[$b,4] = Sub(%p, %q)
  return %d: result
}
)"),
                             {{"$b", absl::StrCat(batch)}, {"$2", absl::StrCat(2 * batch)}});
}

constexpr char kSlices[] =
    R"(  %p: f32[$b,4] = Slice(%z) {axes=[0], ends=[$b], starts=[0], steps=[1]}
  %q: f32[$b,4] = Slice(%z) {axes=[0], ends=[$2], starts=[$b], steps=[1]}
)";
constexpr char kSplit[] = "  %p: f32[$b,4], %q: f32[$b,4] = Split(%z) {axis=0, sizes=[$b, $b]}\n";

TEST(BatchViews, StandTogetherSampleBySample) {
  for (const int64_t batch : {1, 2, 5}) {
    const std::string six = AtSix(Siamese(batch, kSlices));
    EXPECT_THAT(six, HasSubstr("f32[6,1,4] = Reshape(%b) {shape=[-1, 1, 4]}"));
    EXPECT_THAT(six, ContainsRegex("f32.6,2,4. = Concat.*axis=1"));
    EXPECT_THAT(six, HasSubstr("f32[6,2,4] = Reshape(%z) {shape=[-1, 2, 4]}"));
    EXPECT_THAT(six, HasSubstr("{axes=[1], ends=[2], starts=[1], steps=[1]}"));
  }
}

// A result that is all views has them as the file has: one behind another.
TEST(BatchViews, StandAsInTheFileWhereSomebodySees) {
  const std::string seen = absl::StrReplaceAll(
      Siamese(2, kSlices), {{"  return %d: result", "  return %d: result, %z: result"}});
  EXPECT_THAT(AtSix(seen), ContainsRegex("f32.2,6,4. = Concat.*axis=0"));
  EXPECT_THAT(AtSix(seen), HasSubstr("%both: f32[12,4] = Reshape(%4) {shape=[-1, 4]}"));
  EXPECT_THAT(AtSix(seen), HasSubstr("{axes=[0], ends=[2], starts=[1], steps=[1]}"));
}

TEST(BatchViews, AreSplit) {
  EXPECT_THAT(AtSix(Siamese(2, kSplit)), ContainsRegex("f32.6,1,4. = Split.*axis=1, sizes=.1, 1."));
}

TEST(BatchViews, PartsOfAViewAreNone) {
  EXPECT_THAT(
      AtSix(Siamese(2, R"(  %p: f32[2,4] = Slice(%z) {axes=[0], ends=[3], starts=[1], steps=[1]}
  %q: f32[2,4] = Slice(%z) {axes=[0], ends=[4], starts=[2], steps=[1]}
)")),
      HasSubstr("it takes part of the batch"));
}

// CLIP's attention pooling of one sample: the query, x[:1] of time, is as short as the batch.
TEST(BatchInReshapes, AQueryOfOneInAFileOfOneSample) {
  const std::string six = AtSix(R"(func @f (
  %x: f32[1,3,8] data,
  %w: f32[8,8] parameter
) {
  %t: f32[3,1,8] = Transpose(%x) {perm=[1, 0, 2]}
  %q: f32[1,1,8] = Slice(%t) {axes=[0], ends=[1], starts=[0], steps=[1]}
  %qs: f32[1,2,4] = Reshape(%q) {shape=[1, 2, 4]}
  %qh: f32[2,1,4] = Transpose(%qs) {perm=[1, 0, 2]}
  %ks: f32[3,2,4] = Reshape(%t) {shape=[3, 2, 4]}
  %kh: f32[2,4,3] = Transpose(%ks) {perm=[1, 2, 0]}
  %vh: f32[2,3,4] = Transpose(%ks) {perm=[1, 0, 2]}
  %l: f32[2,1,3] = MatMul(%qh, %kh)
  %o: f32[2,1,4] = MatMul(%l, %vh)
  %ot: f32[1,2,4] = Transpose(%o) {perm=[1, 0, 2]}
  %rows: f32[1,8] = Reshape(%ot) {shape=[1, 8]}
  %m: f32[1,8] = MatMul(%rows, %w)
  %back: f32[1,1,8] = Reshape(%m) {shape=[1, 1, 8]}
  %y: f32[1,8] = Squeeze(%back) {axes=[0]}
  return %y: result
}
)");
  EXPECT_THAT(six, HasSubstr("%qs: f32[1,12,4] = Reshape(%q) {shape=[1, -1, 4]}"));
  EXPECT_THAT(six, HasSubstr("%back: f32[1,6,8] = Reshape(%m) {shape=[1, -1, 8]}"));
  EXPECT_THAT(six, HasSubstr("return %y: result"));
}

// A learned query of one, too: it is repeated where it has no heads yet.
TEST(BatchInReshapes, ALearnedQueryOfOneInAFileOfOneSample) {
  const std::string six = AtSix(R"(func @f (
  %x: f32[1,3,8] data,
  %q: f32[1,1,8] parameter
) {
  %t: f32[3,1,8] = Transpose(%x) {perm=[1, 0, 2]}
  %qs: f32[1,2,4] = Reshape(%q) {shape=[1, 2, 4]}
  %qh: f32[2,1,4] = Transpose(%qs) {perm=[1, 0, 2]}
  %ks: f32[3,2,4] = Reshape(%t) {shape=[3, 2, 4]}
  %kh: f32[2,4,3] = Transpose(%ks) {perm=[1, 2, 0]}
  %l: f32[2,1,3] = MatMul(%qh, %kh)
  %y: f32[1,2,3] = Transpose(%l) {perm=[1, 0, 2]}
  return %y: result
}
)");
  EXPECT_THAT(six, HasSubstr("%ks: f32[3,12,4] = Reshape(%t) {shape=[3, -1, 4]}"));
  EXPECT_THAT(six, HasSubstr("f32[1,6,8] = Expand(%q)"));
}

TEST(BatchInShape, PrefersWhatStaysThenWhatIsTheBatch) {
  const auto first = [](const ir::Dims& dims, int64_t after, const ShapeSearch& search) {
    return BatchInShape(dims, 1, after, search)[0].dim;
  };
  EXPECT_EQ(first({1, 1, 8}, 8, {}), 0);
  EXPECT_EQ(first({1, 1, 8}, 8, {.first = 1}), 1);
  EXPECT_EQ(first({1, 4, 4}, 16, {}), 0);
  EXPECT_EQ(first({1, 4, 4}, 16, {.first = 1}), 1);
  EXPECT_EQ(BatchInShape({2, 4, 4}, 2, 16, {.outside = true})[0].dim, 1);
  EXPECT_EQ(BatchInShape({2, 4, 4}, 2, 16, {.outside = true, .same = 0})[0].dim, 0);
  EXPECT_TRUE(BatchInShape({3, 5}, 1, 4).empty());
}

}  // namespace
}  // namespace batch_views_test_cc
}  // namespace orrery::importer
