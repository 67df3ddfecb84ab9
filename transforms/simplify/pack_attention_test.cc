#include <gtest/gtest.h>

#include <string>

#include "transforms/simplify/pass_test_util.h"

// Attention of matrices whose batch comes second, and of parts of one packed product.

namespace orrery::transforms {
namespace pack_attention_test_cc {
namespace {

// 2 samples, 3 rows, 2 heads of width 2.
constexpr char kBatchSecond[] = R"(%q: f32[2,3,4] data, %k: f32[2,3,4] data, %v: f32[2,3,4] data
%qt: f32[3,2,4] = Transpose(%q) {perm=[1, 0, 2]}
%kt: f32[3,2,4] = Transpose(%k) {perm=[1, 0, 2]}
%vt: f32[3,2,4] = Transpose(%v) {perm=[1, 0, 2]}
%q3: f32[3,4,2] = Reshape(%qt) {shape=[3, -1, 2]}
%k3: f32[3,4,2] = Reshape(%kt) {shape=[3, -1, 2]}
%v3: f32[3,4,2] = Reshape(%vt) {shape=[3, -1, 2]}
%qm: f32[4,3,2] = Transpose(%q3) {perm=[1, 0, 2]}
%km: f32[4,3,2] = Transpose(%k3) {perm=[1, 0, 2]}
%vm: f32[4,3,2] = Transpose(%v3) {perm=[1, 0, 2]}
%q4: f32[4,1,3,2] = Unsqueeze(%qm) {axes=[1]}
%k4: f32[4,1,3,2] = Unsqueeze(%km) {axes=[1]}
%v4: f32[4,1,3,2] = Unsqueeze(%vm) {axes=[1]}
%a: f32[4,1,3,2], %p: f32[4,1,3,3] = Attention(%q4, %k4, %v4) {heads=1, kv_heads=1, scale=0.5}
%am: f32[4,3,2] = Squeeze(%a) {axes=[1]}
%at: f32[3,4,2] = Transpose(%am) {perm=[1, 0, 2]}
%y: f32[6,4] = Reshape(%at) {shape=[-1, 4]}
return %y: result)";

TEST(PackAttention, OfMatricesReadsRowsOfAllHeads) {
  const std::string attention =
      "%3: f32[2,3,4], %4: f32[2,2,3,3] = Attention(%q, %k, %v) "
      "{heads=2, kv_heads=2, scale=0.5}\n";
  EXPECT_EQ(After("pack-attention", kBatchSecond),
            attention + R"(%5: f32[3,2,4] = Transpose(%3) {perm=[1, 0, 2]}
%y: f32[6,4] = Reshape(%5) {shape=[-1, 4]}
return %y: result
)");
  // Where these are the rows, no view is needed.
  EXPECT_EQ(After("pack-attention", With(kBatchSecond, {{"%y: f32[6,4]", "%y: f32[3,2,4]"},
                                                        {"shape=[-1, 4]", "shape=[3, -1, 4]"}})),
            attention + "%y: f32[3,2,4] = Transpose(%3) {perm=[1, 0, 2]}\nreturn %y: result\n");
  // Seen by heads.
  EXPECT_EQ(
      After("pack-attention",
            With(kBatchSecond, {{"Unsqueeze", "Reshape"},
                                {"f32[4,1,3,", "f32[2,2,3,"},
                                {"{axes=[1]}\n%k4", "{shape=[-1, 2, 3, 2]}\n%k4"},
                                {"{axes=[1]}\n%v4", "{shape=[-1, 2, 3, 2]}\n%v4"},
                                {"{axes=[1]}\n%a:", "{shape=[-1, 2, 3, 2]}\n%a:"},
                                {"heads=1, kv_heads=1", "heads=2, kv_heads=2"},
                                {"Squeeze(%a) {axes=[1]}", "Reshape(%a) {shape=[-1, 3, 2]}"}})),
      After("pack-attention", kBatchSecond));
}

TEST(PackAttention, OfMatricesLeavesWhatIsNotSuchRows) {
  ExpectLeft("pack-attention", kBatchSecond,
             {{{"return ", "return %p: result, "}},
              {{"return ", "return %a: result, "}},
              {{"return ", "return %am: result, "}},
              {{"return ", "return %at: result, "}},
              {{"return ", "return %k4: result, "}},
              {{"%v3: f32[3,4,2] = Reshape(%vt) {shape=[3, -1, 2]}", "%v3: f32[3,4,2] = Abs(%u)"},
               {"%vt: f32[3,2,4] = Transpose(%v) {perm=[1, 0, 2]}\n", ""},
               {"%v: f32[2,3,4]", "%u: f32[3,4,2]"}},
              {{"%vt: f32[3,2,4] = Transpose(%v) {perm=[1, 0, 2]}", "%vt: f32[3,2,4] = Abs(%v)"},
               {"%v: f32[2,3,4]", "%v: f32[3,2,4]"}},
              {{"%vm: f32[4,3,2] = Transpose(%v3) {perm=[1, 0, 2]}",
                "%vm: f32[4,3,2] = Reshape(%v3) {shape=[-1, 3, 2]}"}}});
}

// Masks by sample and head are seen by both; one for all stays.
TEST(PackAttention, OfMatricesPartsTheirMask) {
  const std::string lines =
      With(kBatchSecond, {{"%v: f32[2,3,4] data", "%v: f32[2,3,4] data, %m: f32[N,1,3,3] data"},
                          {"(%q4, %k4, %v4)", "(%q4, %k4, %v4, %m)"}});
  EXPECT_TRUE(absl::StrContains(After("pack-attention", With(lines, {{"[N,", "[1,"}})),
                                "= Attention(%q, %k, %v, %m) {heads=2,"));
  const std::string after = After("pack-attention", With(lines, {{"[N,", "[4,"}}));
  EXPECT_TRUE(absl::StartsWith(after, "%4: f32[2,2,3,3] = Reshape(%m) {shape=[-1, 2, 3, 3]}\n"))
      << after;
  EXPECT_TRUE(absl::StrContains(after, "= Attention(%q, %k, %v, %4) {heads=2,")) << after;
}

constexpr char kPacked[] = R"(%x: f32[2,3,12] data
%x5: f32[2,3,3,2,2] = Reshape(%x) {shape=[-1, 3, 3, 2, 2]}
%xt: f32[3,2,2,3,2] = Transpose(%x5) {perm=[2, 0, 3, 1, 4]}
%q5: f32[1,2,2,3,2], %k5: f32[1,2,2,3,2], %v5: f32[1,2,2,3,2] = Split(%xt) {axis=0, sizes=[1, 1, 1]}
%q: f32[2,2,3,2] = Squeeze(%q5) {axes=[0]}
%k: f32[2,2,3,2] = Squeeze(%k5) {axes=[0]}
%v: f32[2,2,3,2] = Squeeze(%v5) {axes=[0]}
%a: f32[2,2,3,2], %p: f32[2,2,3,3] = Attention(%q, %k, %v) {heads=2, kv_heads=2, scale=0.5}
%t: f32[2,3,2,2] = Transpose(%a) {perm=[0, 2, 1, 3]}
%y: f32[2,3,4] = Reshape(%t) {shape=[-1, 3, 4]}
return %y: result)";

// Each part from a split of its own, which merge-common makes one.
TEST(PackAttention, OfOnePackedProductReadsItsColumns) {
  EXPECT_EQ(After("pack-attention,merge-common", kPacked),
            R"(%1: f32[2,3,4], %2: f32[2,3,4], %3: f32[2,3,4] = Split(%x) {axis=2, sizes=[4, 4, 4]}
%y: f32[2,3,4], %5: f32[2,2,3,3] = Attention(%1, %2, %3) {heads=2, kv_heads=2, scale=0.5}
return %y: result
)");
  // Keys and values changed over are read from their columns.
  EXPECT_TRUE(absl::StrContains(
      After("pack-attention,merge-common", With(kPacked, {{"(%q, %k, %v)", "(%v, %k, %q)"}})),
      "Attention(%3, %2, %1)"));
  ExpectLeft("pack-attention", kPacked,
             {{{"f32[2,3,3,2,2]", "f32[3,3,2,2,2]"},
               {"shape=[-1, 3, 3, 2, 2]", "shape=[3, 3, 2, 2, 2]"},
               {"perm=[2, 0, 3, 1, 4]", "perm=[0, 2, 3, 1, 4]"}}});
}

}  // namespace
}  // namespace pack_attention_test_cc
}  // namespace orrery::transforms
