#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "transforms/simplify/pass_test_util.h"

// Attention written out, with one thing changed at a time; and its rows packed.

namespace orrery::transforms {
namespace fuse_attention_test_cc {
namespace {

constexpr char kHeads[] = R"(%q: f32[2,3,4,4] data, %k: f32[2,3,4,4] data, %v: f32[2,3,4,4] data
%s: f32[2,3,4,4] = MatMul(%q, %k) {transpose_w=1}
%p: f32[2,3,4,4] = Softmax(%s) {axis=3}
%y: f32[2,3,4,4] = MatMul(%p, %v)
return %y: result)";

std::string Fused(const std::string& attributes) {
  return absl::StrCat("%y: f32[2,3,4,4], %4: f32[2,3,4,4] = Attention(%q, %k, %v) {", attributes,
                      "}\nreturn %y: result\n");
}

TEST(FuseAttention, TakesTheTwoProductsAndTheSoftmax) {
  EXPECT_EQ(After("fuse-attention", kHeads), Fused("heads=3, kv_heads=3, scale=1.0"));
  const std::string after = After("fuse-attention{flash=1}", kHeads);
  EXPECT_EQ(after,
            "%y: f32[2,3,4,4], %4: f32[2,3,4] = Attention(%q, %k, %v) "
            "{flash=1, heads=3, kv_heads=3, scale=1.0}\nreturn %y: result\n");
}

TEST(FuseAttention, SeesThroughWhatTheKernelDoesByItself) {
  const std::vector<std::string> between = {
      "%t: f64[2,3,4,4] = Cast(%s) {to=\"f64\"}\n%u: f32[2,3,4,4] = Cast(%t) {to=\"f32\"}\n",
      "%low: f32[] = Constant() {values=[-1e9]}\n%u: f32[2,3,4,4] = Max(%s, %low)\n",
      "%low: f32[] = Constant() {values=[-1e9]}\n%u: f32[2,3,4,4] = Max(%low, %s)\n",
      "%t: f32[6,4,4] = Reshape(%s) {shape=[-1, 4, 4]}\n"
      "%u: f32[2,3,4,4] = Reshape(%t) {shape=[-1, 3, 4, 4]}\n"};
  for (const std::string& ops : between) {
    EXPECT_EQ(After("fuse-attention",
                    With(kHeads, {{"%p: f32", ops + "%p: f32"}, {"Softmax(%s)", "Softmax(%u)"}})),
              Fused("heads=3, kv_heads=3, scale=1.0"))
        << ops;
  }
  ExpectLeft(
      "fuse-attention", kHeads,
      {{{"%p: f32",
         "%low: f32[] = Constant() {values=[-9999.0]}\n"
         "%u: f32[2,3,4,4] = Max(%s, %low)\n%p: f32"},
        {"Softmax(%s)", "Softmax(%u)"}},
       {{"%p: f32", "%u: f32[2,3,4,4] = Abs(%s)\n%p: f32"}, {"Softmax(%s)", "Softmax(%u)"}}});
}

TEST(FuseAttention, TakesDropoutOfTheProbabilities) {
  const LineChanges drops = {
      {"%y: f32[2,3,4,4] = MatMul(%p",
       "%d: f32[2,3,4,4], %m: bool[2,3,4,4] = Dropout(%p) {ratio=0.5, seed=7}\n"
       "%y: f32[2,3,4,4] = MatMul(%d"}};
  EXPECT_EQ(After("fuse-attention", With(kHeads, drops)),
            "%y: f32[2,3,4,4], %4: f32[2,3,4,4], %5: bool[2,3,4,4], %6: f32[2,3,4,4] = "
            "Attention(%q, %k, %v) {dropout=0.5, heads=3, kv_heads=3, scale=1.0, seed=7}\n"
            "return %y: result\n");
  // Not where somebody asks which of them stayed, nor where none does.
  const std::string dropped = With(kHeads, drops);
  ExpectLeft(
      "fuse-attention", dropped,
      {{{"return %y: result", "return %y: result, %m: result"}}, {{"ratio=0.5", "ratio=1.0"}}});
}

TEST(FuseAttention, TakesScalesOfQueriesKeysAndLogitsTogether) {
  const std::string lines = With(kHeads, {{"%s: f32",
                                           "%a: f32[2,3,4,4] = Scale(%q) {factor=0.5}\n"
                                           "%b: f32[2,3,4,4] = Scale(%k) {factor=3.0}\n"
                                           "%c: f32"},
                                          {"MatMul(%q, %k)", "MatMul(%a, %b)"},
                                          {"%p: f32",
                                           "%s: f32[2,3,4,4] = Scale(%c) "
                                           "{factor=0.25}\n%p: f32"}});
  EXPECT_EQ(After("fuse-attention", lines), Fused("heads=3, kv_heads=3, scale=0.375"));
}

TEST(FuseAttention, LeavesWhatIsSomethingElse) {
  ExpectLeft("fuse-attention", kHeads,
             {{{"MatMul(%p, %v)", "MatMul(%p, %v) {transpose_w=1}"}},
              {{"{transpose_w=1}", "{transpose_w=1, transpose_x=1}"}},
              {{"{axis=3}", "{axis=2}"}},
              {{"Softmax(%s)", "LogSoftmax(%s)"}},
              {{"%v: f32[2,3,4,4]", "%v: f32[2,1,4,4]"}},
              {{"%v: f32[2,3,4,4]", "%v: f32[1,3,4,4]"}},
              {{"%k: f32[2,3,4,4]", "%k: f32[2,1,4,4]"}},
              {{"%k: f32[2,3,4,4]", "%k: f32[1,3,4,4]"}},
              {{"%k: f32[2,3,4,4]", "%k: f32[3,4,4]"}},
              {{"%q: f32[2,3,4,4]", "%q: f32[2,1,4,4]"}},
              {{"[2,3,4,4]", "[4,4]"}, {"{axis=3}", "{axis=1}"}},
              {{"[2,3,4,4]", "[1,2,3,4,4]"}, {"{axis=3}", "{axis=4}"}},
              {{"return ", "return %s: result, "}},
              {{"return ", "return %p: result, "}}});
}

TEST(FuseAttention, SeesThroughTheGuardAgainstRowsThatAreHidden) {
  const std::string guard = R"(%zero: f32[] = Constant() {values=[0.0]}
%n: bool[2,3,4,4] = IsNaN(%p)
%g: f32[2,3,4,4] = Where(%n, %zero, %p)
%y: f32)";
  const std::string lines =
      With(kHeads, {{"%y: f32", guard}, {"MatMul(%p, %v)", "MatMul(%g, %v)"}});
  EXPECT_EQ(After("fuse-attention", lines), Fused("heads=3, kv_heads=3, scale=1.0"));
  ExpectLeft("fuse-attention", lines,
             {{{"[0.0]", "[1.0]"}},
              {{"Where(%n, %zero, %p)", "Where(%n, %p, %zero)"}},
              {{"IsNaN(%p)", "IsNaN(%s)"}},
              {{"return ", "return %p: result, "}},
              {{"return ", "return %n: result, "}},
              {{"return ", "return %g: result, "}}});
}

TEST(FuseAttention, TakesMasksOfTheSoftmaxKernel) {
  EXPECT_EQ(
      After("fuse-attention",
            With(kHeads, {{"Softmax(%s) {axis=3}", "MaskedSoftmax(%s) {axis=3, scale=0.5}"}})),
      Fused("heads=3, kv_heads=3, scale=0.5"));
  EXPECT_EQ(
      After("fuse-attention",
            With(kHeads, {{"Softmax(%s) {axis=3}", "MaskedSoftmax(%s, %m) {axis=3, causal=1}"},
                          {"%v: f32[2,3,4,4] data", "%v: f32[2,3,4,4] data, %m: f32[4,4] data"}})),
      "%y: f32[2,3,4,4], %5: f32[2,3,4,4] = Attention(%q, %k, %v, %m) "
      "{causal=1, heads=3, kv_heads=3, scale=1.0}\nreturn %y: result\n");
  EXPECT_TRUE(Leaves("fuse-attention",
                     With(kHeads, {{"Softmax(%s) {axis=3}", "MaskedSoftmax(%s) {axis=2}"}})));
}

// Heads of keys and values that are repeated are read once; those in between are not.
TEST(FuseAttention, ReadsRepeatedHeadsOnce) {
  const std::string lines = R"(%q: f32[2,4,3,5] data, %k: f32[2,2,3,5] data, %v: f32[2,2,3,5] data
%k5: f32[2,2,1,3,5] = Unsqueeze(%k) {axes=[2]}
%ke: f32[2,2,2,3,5] = Expand(%k5) {shape=[-1, 2, 2, 3, 5]}
%kr: f32[2,4,3,5] = Reshape(%ke) {shape=[-1, 4, 3, 5]}
%v5: f32[2,2,1,3,5] = Unsqueeze(%v) {axes=[2]}
%ve: f32[2,2,2,3,5] = Expand(%v5) {shape=[-1, 2, 2, 3, 5]}
%vr: f32[2,4,3,5] = Reshape(%ve) {shape=[-1, 4, 3, 5]}
%s: f32[2,4,3,3] = MatMul(%q, %kr) {transpose_w=1}
%p: f32[2,4,3,3] = Softmax(%s) {axis=3}
%y: f32[2,4,3,5] = MatMul(%p, %vr)
return %y: result)";
  const std::string grouped =
      "%y: f32[2,4,3,5], %4: f32[2,4,3,3] = Attention(%q, %k, %v) "
      "{heads=4, kv_heads=2, scale=1.0}\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-attention", lines), grouped);
  EXPECT_EQ(
      After("fuse-attention",
            With(lines, {{"Unsqueeze(%k) {axes=[2]}", "Reshape(%k) {shape=[-1, 2, 1, 3, 5]}"}})),
      grouped);
  // Repeated in another order: heads 0 1 0 1 are not groups.
  const std::string turned =
      With(lines, {{"[2,2,1,3,5]", "[2,1,2,3,5]"}, {"axes=[2]", "axes=[1]"}});
  EXPECT_TRUE(absl::StrContains(After("fuse-attention", turned),
                                "Attention(%q, %kr, %vr) {heads=4, kv_heads=4, scale=1.0}"));
  // What is repeated is not what the view is of.
  const std::string other =
      With(lines, {{"%k: f32[2,2,3,5]", "%k: f32[2,2,5,3]"},
                   {"Unsqueeze(%k) {axes=[2]}", "Reshape(%k) {shape=[-1, 2, 1, 3, 5]}"}});
  EXPECT_TRUE(absl::StrContains(After("fuse-attention", other),
                                "Attention(%q, %kr, %vr) {heads=4, kv_heads=4, scale=1.0}"));
}

// Behind the view of heads or its transpose attention finds it.
TEST(FuseAttention, PutsScalesBehindMovesOfHeads) {
  const std::string lines = R"(%x: f32[4,6] data
%s: f32[4,6] = Scale(%x) {factor=0.5}
%y: f32[DIMS] = Reshape(%s) {shape=[DIMS]}
return %y: result)";
  for (const char* dims : {"2,2,6", "2,2,3,2"}) {
    EXPECT_EQ(After("fuse-attention", With(lines, {{"DIMS", dims}})),
              With("%1: f32[DIMS] = Reshape(%x) {shape=[SHAPE]}\n"
                   "%y: f32[DIMS] = Scale(%1) {factor=0.5}\nreturn %y: result\n",
                   {{"DIMS", dims}, {"SHAPE", absl::StrReplaceAll(dims, {{",", ", "}})}}));
  }
  for (const char* dims : {"3,8", "2,2,3,2,1"}) {
    EXPECT_TRUE(Leaves("fuse-attention", With(lines, {{"DIMS", dims}}))) << dims;
  }
  EXPECT_EQ(After("fuse-attention", R"(%x: f32[2,3,4] data
%s: f32[2,3,4] = Scale(%x) {factor=0.5}
%y: f32[3,2,4] = Transpose(%s) {perm=[1, 0, 2]}
return %y: result)"),
            "%1: f32[3,2,4] = Transpose(%x) {perm=[1, 0, 2]}\n"
            "%y: f32[3,2,4] = Scale(%1) {factor=0.5}\nreturn %y: result\n");
}

constexpr char kByHeads[] = R"(%q: f32[2,3,8] data, %k: f32[2,5,8] data, %v: f32[2,5,8] data
%q4: f32[2,3,2,4] = Reshape(%q) {shape=[-1, 3, 2, 4]}
%k4: f32[2,5,2,4] = Reshape(%k) {shape=[-1, 5, 2, 4]}
%v4: f32[2,5,2,4] = Reshape(%v) {shape=[-1, 5, 2, 4]}
%qt: f32[2,2,3,4] = Transpose(%q4) {perm=[0, 2, 1, 3]}
%kt: f32[2,2,5,4] = Transpose(%k4) {perm=[0, 2, 1, 3]}
%vt: f32[2,2,5,4] = Transpose(%v4) {perm=[0, 2, 1, 3]}
%a: f32[2,2,3,4], %p: f32[2,2,3,5] = Attention(%qt, %kt, %vt) {heads=2, kv_heads=2, scale=0.5}
%t: f32[2,3,2,4] = Transpose(%a) {perm=[0, 2, 1, 3]}
%y: f32[2,3,8] = Reshape(%t) {shape=[-1, 3, 8]}
return %y: result)";

TEST(PackAttention, ReadsAndWritesRows) {
  EXPECT_EQ(After("pack-attention", kByHeads),
            "%y: f32[2,3,8], %4: f32[2,2,3,5] = Attention(%q, %k, %v) "
            "{heads=2, kv_heads=2, scale=0.5}\nreturn %y: result\n");
  // To rows that are matrices, by one view more.
  EXPECT_EQ(
      After("pack-attention", With(kByHeads, {{"%y: f32[2,3,8] = Reshape(%t) {shape=[-1, 3, 8]}",
                                               "%y: f32[6,8] = Reshape(%t) {shape=[-1, 8]}"}})),
      "%3: f32[2,3,8], %4: f32[2,2,3,5] = Attention(%q, %k, %v) "
      "{heads=2, kv_heads=2, scale=0.5}\n%y: f32[6,8] = Reshape(%3) {shape=[-1, 8]}\n"
      "return %y: result\n");
  // Queries alone are rows where keys are not.
  EXPECT_EQ(
      After("pack-attention", R"(%q: f32[2,3,2,4] data, %k: f32[2,2,5,4] data, %v: f32[2,2,5,4] data
%qt: f32[2,2,3,4] = Transpose(%q) {perm=[0, 2, 1, 3]}
%a: f32[2,2,3,4], %p: f32[2,2,3,5] = Attention(%qt, %k, %v) {heads=2, kv_heads=2, scale=0.5}
%t: f32[2,3,2,4] = Transpose(%a) {perm=[0, 2, 1, 3]}
%y: f32[2,3,8] = Reshape(%t) {shape=[-1, 3, 8]}
return %y: result)"),
      R"(%3: f32[2,3,8] = Reshape(%q) {shape=[-1, 3, 8]}
%y: f32[2,3,8], %5: f32[2,2,3,5] = Attention(%3, %k, %v) {heads=2, kv_heads=2, scale=0.5}
return %y: result
)");
}

TEST(PackAttention, LeavesWhatIsNotRows) {
  ExpectLeft("pack-attention", kByHeads,
             {{{"return ", "return %p: result, "}},
              {{"return ", "return %a: result, "}},
              {{"return ", "return %t: result, "}},
              {{"%q: f32[2,3,8]", "%q: f32[2,4,6]"},
               {"%q4: f32[2,3,2,4] = Reshape(%q) {shape=[-1, 3, 2, 4]}",
                "%q4: f32[2,4,2,3] = Reshape(%q) {shape=[-1, 4, 2, 3]}"},
               {"Transpose(%q4) {perm=[0, 2, 1, 3]}", "Transpose(%q4) {perm=[0, 2, 3, 1]}"}}});
}

TEST(PackAttention, ReadsAMaskOnce) {
  EXPECT_EQ(
      After("pack-attention", R"(%q: f32[2,2,3,4] data, %m: f32[1,1,3,3] data
%e: f32[2,2,3,3] = Expand(%m) {shape=[2, 2, 3, 3]}
%y: f32[2,2,3,4], %p: f32[2,2,3,3] = Attention(%q, %q, %q, %e) {heads=2, kv_heads=2, scale=0.5}
return %y: result, %p: result)"),
      R"(%y: f32[2,2,3,4], %p: f32[2,2,3,3] = Attention(%q, %q, %q, %m) {heads=2, kv_heads=2, scale=0.5}
return %y: result, %p: result
)");
}

TEST(PackAttention, AppendsRowsToACacheByHeads) {
  const std::string lines = R"(%past: f32[2,3,5,4] data, %new: f32[2,3,3,4] data
%t: f32[2,3,3,4] = Transpose(%new) {perm=[0, 2, 1, 3]}
%y: DIMS = Concat(%past, %t) {axis=AXIS}
return %y: result)";
  EXPECT_EQ(After("pack-attention", With(lines, {{"DIMS", "f32[2,3,8,4]"}, {"AXIS", "2"}})),
            R"(%2: f32[2,3,12] = Reshape(%new) {shape=[-1, 3, 12]}
%y: f32[2,3,8,4] = AppendRows(%past, %2)
return %y: result
)");
  EXPECT_TRUE(Leaves("pack-attention", With(lines, {{"%past: f32[2,3,5,4]", "%past: f32[2,5,3,4]"},
                                                    {"DIMS", "f32[2,8,3,4]"},
                                                    {"AXIS", "1"}})));
  EXPECT_TRUE(Leaves("pack-attention", With(lines, {{"perm=[0, 2, 1, 3]", "perm=[0, 1, 2, 3]"},
                                                    {"DIMS", "f32[2,3,8,4]"},
                                                    {"AXIS", "2"}})));
  EXPECT_TRUE(Leaves(
      "pack-attention",
      With(lines, {{"DIMS", "f32[2,3,11,4]"}, {"(%past, %t)", "(%past, %t, %t)"}, {"AXIS", "2"}})));
}

}  // namespace
}  // namespace fuse_attention_test_cc
}  // namespace orrery::transforms
