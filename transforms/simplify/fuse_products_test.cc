#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "transforms/simplify/pass_test_util.h"

// Products and convolutions with what follows them, with one thing changed at a time.

namespace orrery::transforms {
namespace fuse_products_test_cc {
namespace {

constexpr char kBiased[] = R"(%x: f32[8,8] data, %w: f32[8,8] parameter, %b: f32[8] parameter
%m: f32[8,8] = MatMul(%x, %w)
%y: f32[8,8] = Add(%m, %b)
return %y: result)";

TEST(FuseLinear, TakesInTheBiasOnEitherSide) {
  const std::string linear = "%y: f32[8,8] = Linear(%x, %w, %b)\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-linear", kBiased), linear);
  EXPECT_EQ(After("fuse-linear", With(kBiased, {{"Add(%m, %b)", "Add(%b, %m)"}})), linear);
}

TEST(FuseLinear, LeavesWhatIsNoBiasOrNoProductWithAMatrix) {
  const std::vector<LineChanges> all = {
      {{"%b: f32[8] ", "%b: f32[1] "}},
      {{"%b: f32[8] ", "%b: f32[1,8] "}},
      {{"%b: f32[8] ", "%b: f32[] "}},
      {{"Add(%m, %b)", "Sub(%m, %b)"}},
      {{"MatMul(%x, %w)", "MatMul(%x, %w) {transpose_x=1}"}},
      {{"return ", "return %m: result, "}},
      {{"%w: f32[8,8]", "%w: f32[2,8,8]"},
       {"%m: f32[8,8]", "%m: f32[2,8,8]"},
       {"%y: f32[8,8]", "%y: f32[2,8,8]"}},
  };
  ExpectLeft("fuse-linear", kBiased, all);
}

TEST(FuseLinear, SeesThroughViewsOfRowsOnly) {
  const std::string lines = R"(%x: f32[4,6] data, %w: f32[6,4] parameter, %b: f32[LAST] parameter
%m: f32[4,4] = MatMul(%x, %w)
%v: f32[DIMS] = Reshape(%m) {shape=[DIMS]}
%y: f32[DIMS] = Add(%v, %b)
return %y: result)";
  const auto of = [&](const char* dims, const char* last) {
    return With(lines, {{"DIMS", dims}, {"LAST", last}});
  };
  EXPECT_EQ(After("fuse-linear", of("2,2,4", "4")), R"(%3: f32[4,4] = Linear(%x, %w, %b)
%y: f32[2,2,4] = Reshape(%3) {shape=[2, 2, 4]}
return %y: result
)");
  EXPECT_TRUE(Leaves("fuse-linear", of("8,2", "2")));
  EXPECT_TRUE(Leaves("fuse-linear", of("16", "16")));
  EXPECT_TRUE(Leaves("fuse-linear", With(of("2,2,4", "4"), {{"return ", "return %v: result, "}})));
}

TEST(FuseLinear, DoesOneActivation) {
  const std::string lines = R"(%x: f32[4,6] data, %w: f32[6,8] parameter
%m: f32[4,8] = MatMul(%x, %w)
%y: f32[4,8] = OP
return %y: result)";
  const auto after = [&](const char* op) {
    const std::string text = After("fuse-linear", With(lines, {{"OP", op}}));
    const size_t begin = text.find("activation=");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('}') - begin);
  };
  EXPECT_EQ(after("Relu(%m)"), "activation=\"relu\"");
  EXPECT_EQ(after("Silu(%m)"), "activation=\"silu\"");
  EXPECT_EQ(after("Gelu(%m)"), "activation=\"gelu\"");
  EXPECT_EQ(after("Gelu(%m) {approximate=\"none\"}"), "activation=\"gelu\"");
  EXPECT_EQ(after("Gelu(%m) {approximate=\"tanh\"}"), "activation=\"gelu_tanh\"");
  EXPECT_EQ(after("Gelu(%m) {approximate=\"sigmoid\"}"), "");  // no library does it
  EXPECT_EQ(after("Tanh(%m)"), "");
}

constexpr char kConv[] =
    R"(%x: f32[2,3,4,4] data, %w: f32[4,3,1,1] parameter, %b: f32[4,1,1] parameter
%c: f32[2,4,4,4] = Conv(%x, %w)
%y: f32[2,4,4,4] = Add(%c, %b)
return %y: result)";

TEST(FuseConvolution, AddsABiasByChannels) {
  const std::string biased =
      "%3: f32[4] = Reshape(%b) {shape=[4]}\n%y: f32[2,4,4,4] = Conv(%x, %w, %3)\n"
      "return %y: result\n";
  EXPECT_EQ(After("fuse-convolution", kConv), biased);
  EXPECT_EQ(After("fuse-convolution", With(kConv, {{"Add(%c, %b)", "Add(%b, %c)"}})), biased);
  EXPECT_EQ(After("fuse-convolution", With(kConv, {{"%b: f32[4,1,1]", "%b: f32[1,4,1,1]"}})),
            biased);
  for (const char* dims : {"4,1", "1,4,1", "4,4,1", "4,1,4", "1,1,1", "2,4,1,1", "1,4,4,1", "4"}) {
    EXPECT_TRUE(Leaves("fuse-convolution",
                       With(kConv, {{"%b: f32[4,1,1]", absl::StrCat("%b: f32[", dims, "]")}})))
        << dims;
  }
  EXPECT_TRUE(Leaves("fuse-convolution", With(kConv, {{"return ", "return %c: result, "}})));
  EXPECT_TRUE(Leaves("fuse-convolution", With(kConv, {{"Add(%c, %b)", "Sub(%c, %b)"}})));
  // The sum has more dimensions than the maps.
  EXPECT_TRUE(Leaves("fuse-convolution", With(kConv, {{"%x: f32[2,", "%x: f32[1,"},
                                                      {"%c: f32[2,", "%c: f32[1,"},
                                                      {"%b: f32[4,1,1]", "%b: f32[2,4,1,1]"}})));
}

TEST(FuseConvolution, CutsOffAt6OrNotAtAll) {
  const std::string lines =
      With(kConv, {{"Add(%c, %b)", "ACT"}, {", %b: f32[4,1,1] parameter", ""}});
  const auto after = [&](const char* op) {
    return After("fuse-convolution", With(lines, {{"ACT", op}}));
  };
  const auto fused = [](absl::string_view name) {
    return absl::StrCat("%y: f32[2,4,4,4] = Conv(%x, %w) {activation=\"", name,
                        "\"}\nreturn %y: result\n");
  };
  EXPECT_EQ(after("Relu(%c)"), fused("relu"));
  EXPECT_EQ(after("Clip(%c) {max=6.0, min=0.0}"), fused("relu6"));
  for (const char* op : {"Clip(%c) {max=5.0, min=0.0}", "Clip(%c) {max=6.0, min=-1.0}",
                         "Clip(%c) {max=6.0}", "Clip(%c) {min=0.0}", "Silu(%c)"}) {
    EXPECT_TRUE(Leaves("fuse-convolution", With(lines, {{"ACT", op}}))) << op;
  }
}

constexpr char kBatchNorm[] = R"(%x: f32[2,3,4] data, %z: f32[2,3,4] data, %p: f32[3] parameter
%v: f32[3] = Exp(%p)
%n: f32[2,3,4], %m: f32[3], %r: f32[3], %rm: f32[3], %rv: f32[3] = BatchNorm(%x, %p, %p, %p, %v) {training=1}
%y: f32[2,3,4] = Add(%n, %z)
return %y: result, %rm: result)";

TEST(FuseConvolution, NormsAddABranchAndReturnTheirStatistics) {
  const std::string fused =
      "%v: f32[3] = Exp(%p)\n"
      "%y: f32[2,3,4], %5: f32[3], %6: f32[3], %rm: f32[3], %8: f32[3] = "
      "BatchNorm(%x, %p, %p, %p, %v, %z) {training=1}\nreturn %y: result, %rm: result\n";
  EXPECT_EQ(After("fuse-convolution", kBatchNorm), fused);
  EXPECT_EQ(After("fuse-convolution", With(kBatchNorm, {{"Add(%n, %z)", "Add(%z, %n)"}})), fused);
  // A branch that needs the statistics, one of another type, and a norm that is wanted before.
  const std::vector<LineChanges> all = {
      {{"%y: f32",
        "%q: f32[3,1] = Reshape(%rm) {shape=[3, 1]}\n%t: f32[2,3,4] = Mul(%z, %q)\n%y: f32"},
       {"Add(%n, %z)", "Add(%n, %t)"}},
      {{"%z: f32[2,3,4]", "%z: f32[3,4]"}},
      {{"return ", "return %n: result, "}},
  };
  ExpectLeft("fuse-convolution", kBatchNorm, all);
}

// A second branch stays.
TEST(FuseConvolution, NormsAddOneBranch) {
  const std::string lines = With(kBatchNorm, {{"return ", "%u: f32[2,3,4] = Add(%y, %x)\nreturn "},
                                              {"%y: result", "%u: result"}});
  EXPECT_TRUE(absl::StrContains(After("fuse-convolution", lines),
                                "%v, %z) {training=1}\n%u: f32[2,3,4] = Add(%y, %x)\n"));
}

constexpr char kPair[] =
    R"(%x: f32[4,6] data, %v: f32[6,8] parameter, %w: f32[6,8] parameter, %b: f32[8] parameter
%p: f32[4,8] = MatMul(%x, %v)
%q: f32[4,8] = Linear(%x, %w, %b)
%y: f32[4,8] = Mul(%p, %q)
return %y: result)";

TEST(FuseQkv, JoinsProductsWhoseResultsMeet) {
  EXPECT_EQ(After("fuse-qkv", kPair), R"(%4: f32[8] = Constant() {fill=0.0}
%p: f32[4,8], %q: f32[4,8] = LinearGroup(%x, %v, %w, %4, %b) {count=2}
%y: f32[4,8] = Mul(%p, %q)
return %y: result
)");
  const std::string plain =
      With(kPair, {{"Linear(%x, %w, %b)", "MatMul(%x, %w)"}, {", %b: f32[8] parameter", ""}});
  EXPECT_EQ(After("fuse-qkv", plain),
            R"(%p: f32[4,8], %q: f32[4,8] = LinearGroup(%x, %v, %w) {count=2}
%y: f32[4,8] = Mul(%p, %q)
return %y: result
)");
}

TEST(FuseQkv, LeavesWhatDoesNotReadOneValueAlike) {
  const std::vector<LineChanges> all = {
      {{"%y: f32[4,8] = Mul(%p, %q)\n", ""}, {"%y: result", "%p: result, %q: result"}},
      {{"MatMul(%x, %v)", "MatMul(%x, %v) {transpose_w=1}"}, {"%v: f32[6,8]", "%v: f32[8,6]"}},
      {{"Linear(%x, %w, %b)", "Linear(%x, %w, %b) {activation=\"relu\"}"}},
      {{"Linear(%x, %w, %b)", "Linear(%z, %w, %b)"},
       {"%x: f32[4,6] data", "%x: f32[4,6] data, %z: f32[4,6] data"}},
      {{"MatMul(%x, %v)", "MatMul(%x, %v) {transpose_x=1}"},
       {"%x: f32[4,6]", "%x: f32[6,6]"},
       {"[4,8]", "[6,8]"}},
  };
  ExpectLeft("fuse-qkv", kPair, all);
}

// The second weight is made after the first product: nothing can stand for both at its place.
TEST(FuseQkv, LeavesAWeightThatIsNotThereYet) {
  EXPECT_TRUE(Leaves("fuse-qkv", R"(%x: f32[6,6] data, %v: f32[6,6] parameter
%p: f32[6,6] = MatMul(%x, %v)
%w: f32[6,6] = Abs(%v)
%q: f32[6,6] = MatMul(%x, %w)
%y: f32[6,6] = Mul(%p, %q)
return %y: result)"));
  // Another product ends what a product is made for: these meet behind one.
  EXPECT_TRUE(
      Leaves("fuse-qkv", R"(%x: f32[6,6] data, %v: f32[6,6] parameter, %w: f32[6,6] parameter
%p: f32[6,6] = MatMul(%x, %v)
%q: f32[6,6] = MatMul(%x, %w)
%r: f32[6,6] = MatMul(%q, %v)
%y: f32[6,6] = Mul(%p, %r)
return %y: result)"));
}

// A product of activations does not end it: queries and keys meet there.
TEST(FuseQkv, GoesOnThroughProductsOfActivations) {
  const std::string lines = R"(%x: f32[2,6,6] data, %v: f32[6,6] parameter, %w: f32[6,6] parameter
%p: f32[2,6,6] = MatMul(%x, %v)
%q: f32[2,6,6] = MatMul(%x, %w)
%r: f32[2,6,6] = MatMul(%q, %x)
%y: f32[2,6,6] = Mul(%p, %r)
return %y: result)";
  EXPECT_FALSE(Leaves("fuse-qkv", lines));
}

constexpr char kPacked[] = R"(%x: f32[6,4] data, %w: f32[4,6] parameter, %b: f32[6] parameter
%m: f32[6,6] = Linear(%x, %w, %b)
%p: f32[6,2], %q: f32[6,4] = Split(%m) {axis=1, sizes=[2, 4]}
return %p: result, %q: result)";

TEST(UnpackWeights, PartsTheColumnsOfEachWeight) {
  ir::Function function = ParseLines(kPacked);
  EXPECT_TRUE(Changes("unpack-weights", function));
  EXPECT_EQ(ir::Print(function), R"(func @f (
  %x: f32[6,4] data,
  %w.0: f32[4,2] parameter,
  %w.1: f32[4,4] parameter,
  %b.0: f32[2] parameter,
  %b.1: f32[4] parameter
) {
  %p: f32[6,2], %q: f32[6,4] = LinearGroup(%x, %w.0, %w.1, %b.0, %b.1) {count=2}
  return %p: result, %q: result
}
)");
}

TEST(UnpackWeights, LeavesWhatIsNotPartedByColumnsAlone) {
  const std::vector<LineChanges> all = {
      {{"%p: f32[6,2], %q: f32[6,4]", "%p: f32[2,6], %q: f32[4,6]"}, {"axis=1", "axis=0"}},
      {{"return ", "return %m: result, "}},
      {{"return ", "return %b: result, "}},
      {{"%w: f32[4,6] parameter", "%w: f32[4,6] buffer"}},
      {{"%b: f32[6] parameter", "%b: f32[6] data"}},
      {{"Linear(%x, %w, %b)", "Linear(%x, %w, %b) {activation=\"relu\"}"}},
      {{"Linear(%x, %w, %b)", "Add(%z, %b)"},
       {"%x: f32[6,4] data, %w: f32[4,6] parameter", "%z: f32[6,6] data"}},
      {{"Linear(%x, %w, %b)", "MatMul(%x, %w) {transpose_x=1}"},
       {", %b: f32[6] parameter", ""},
       {"%x: f32[6,4]", "%x: f32[4,6]"}},
      {{"Split(%m)", "Split(%v)"}, {"%p: f32", "%v: f32[6,6] = Abs(%m)\n%p: f32"}},
  };
  ExpectLeft("unpack-weights", kPacked, all);
  EXPECT_TRUE(Leaves("unpack-weights", R"(%x: f32[6,4] data, %w: f32[4,6] parameter
%m: f32[6,6] = MatMul(%x, %w)
%v: f32[9,4] = Reshape(%m) {shape=[9, 4]}
%p: f32[9,2], %q: f32[9,2] = Split(%v) {axis=1, sizes=[2, 2]}
return %p: result, %q: result)"));
  EXPECT_TRUE(Leaves("unpack-weights", R"(%x: f32[2,6,4] data, %w: f32[2,4,6] parameter
%m: f32[2,6,6] = MatMul(%x, %w)
%p: f32[2,6,2], %q: f32[2,6,4] = Split(%m) {axis=2, sizes=[2, 4]}
return %p: result, %q: result)"));
}

constexpr char kMoved[] = R"(%x: f32[2,3,4] data, %w: f32[4,5] parameter
%t: f32[3,2,4] = Transpose(%x) {perm=[1, 0, 2]}
%y: f32[3,2,5] = MatMul(%t, %w)
return %y: result)";

TEST(SinkMoves, RowsAreMovedBehindTheProduct) {
  EXPECT_EQ(After("sink-moves", kMoved), R"(%2: f32[2,3,5] = MatMul(%x, %w)
%y: f32[3,2,5] = Transpose(%2) {perm=[1, 0, 2]}
return %y: result
)");
  EXPECT_EQ(After("sink-moves", With(kMoved, {{"%t: f32[3,2,4] = Transpose(%x) {perm=[1, 0, 2]}",
                                               "%t: f32[6,4] = Reshape(%x) {shape=[-1, 4]}"},
                                              {"%y: f32[3,2,5]", "%y: f32[6,5]"}})),
            "%2: f32[2,3,5] = MatMul(%x, %w)\n%y: f32[6,5] = Reshape(%2) {shape=[-1, 5]}\n"
            "return %y: result\n");
}

TEST(SinkMoves, LeavesWhatTakesRowsApart) {
  const std::vector<LineChanges> all = {
      {{"return ", "return %t: result, "}},
      {{"%t: f32[3,2,4] = Transpose(%x) {perm=[1, 0, 2]}",
        "%t: f32[3,4,2] = Transpose(%x) {perm=[1, 2, 0]}"},
       {"%w: f32[4,5]", "%w: f32[2,5]"},
       {"%y: f32[3,2,5]", "%y: f32[3,4,5]"}},
      {{"%t: f32[3,2,4] = Transpose(%x) {perm=[1, 0, 2]}",
        "%t: f32[4,6] = Reshape(%x) {shape=[4, 6]}"},
       {"%w: f32[4,5]", "%w: f32[6,5]"},
       {"%y: f32[3,2,5]", "%y: f32[4,5]"}},
      {{"%w: f32[4,5]", "%w: f32[3,4,5]"}},
      {{"MatMul(%t, %w)", "MatMul(%t, %w) {transpose_x=1}"},
       {"%w: f32[4,5]", "%w: f32[2,5]"},
       {"%y: f32[3,2,5]", "%y: f32[3,4,5]"}},
      {{"MatMul(%t, %w)", "Add(%t, %u)"},
       {"%w: f32[4,5]", "%u: f32[2,4]"},
       {"%y: f32[3,2,5]", "%y: f32[3,2,4]"}},
  };
  ExpectLeft("sink-moves", kMoved, all);
  EXPECT_TRUE(Leaves("sink-moves", R"(%x: f32[2,3,4] data
%t: f32[3,2,4] = Transpose(%x) {perm=[1, 0, 2]}
%y: f32[1,2,4], %z: f32[2,2,4] = Split(%t) {axis=0, sizes=[1, 2]}
return %y: result, %z: result)"));
}

// One part of the columns that nobody wants is not moved; the split is by columns of fewer rows.
// As many columns as there are samples would stand in the shape behind the product.
TEST(SinkMoves, LeavesEachSampleForEach) {
  EXPECT_TRUE(Leaves("sink-moves", R"(%x: f32[2,4] data, %z: f32[2,4] data
%u: f32[1,2,4] = Reshape(%x) {shape=[1, -1, 4]}
%v: f32[2,4] = Reshape(%u) {shape=[-1, 4]}
%e: f32[2,4] = Exp(%z)
%t: f32[4,2] = Transpose(%e) {perm=[1, 0]}
%y: f32[2,2] = MatMul(%v, %t)
return %y: result)"));
}

TEST(SinkMoves, SplitsColumnsBeforeTheMove) {
  EXPECT_EQ(After("sink-moves", R"(%x: f32[6,4] data
%t: f32[2,3,4] = Reshape(%x) {shape=[-1, 3, 4]}
%y: f32[2,3,1], %z: f32[2,3,3] = Split(%t) {axis=2, sizes=[1, 3]}
return %z: result)"),
            R"(%1: f32[6,1], %2: f32[6,3] = Split(%x) {axis=1, sizes=[1, 3]}
%z: f32[2,3,3] = Reshape(%2) {shape=[-1, 3, 3]}
return %z: result
)");
}

}  // namespace
}  // namespace fuse_products_test_cc
}  // namespace orrery::transforms
