#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "transforms/simplify/pass_test_util.h"

// Layer, RMS and group norms written out, with one thing changed at a time. All in all they are in
// tests/cli/opt/fuse_*_norm*.orr.

namespace orrery::transforms {
namespace fuse_norms_test_cc {
namespace {

constexpr char kLayerNorm[] = R"(%x: f32[4,6] data, %z: f32[4,6] data
%eps: f32[] = Constant() {values=[0.25]}
%m: f32[4,1] = ReduceMean(%x) {axes=[1], keepdims=1}
%d: f32[4,6] = Sub(%x, %m)
%s: f32[4,6] = Mul(%d, %d)
%v: f32[4,1] = ReduceMean(%s) {axes=[1], keepdims=1}
%e: f32[4,1] = Add(%v, %eps)
%r: f32[4,1] = Sqrt(%e)
%n: f32[4,6] = Div(%d, %r)
%y: f32[4,6] = Sub(%n, %z)
return %y: result)";

TEST(FuseLayerNorm, TakesTheMeanAndTheRootTogether) {
  EXPECT_EQ(After("fuse-layer-norm", kLayerNorm), R"(%2: f32[6] = Constant() {fill=1.0}
%n: f32[4,6], %4: f32[4,1], %5: f32[4,1] = LayerNorm(%x, %2) {axis=1, epsilon=0.25}
%y: f32[4,6] = Sub(%n, %z)
return %y: result
)");
}

TEST(FuseLayerNorm, KnowsTheReciprocalOfTheRootInAllForms) {
  const std::string root = "%r: f32[4,1] = Sqrt(%e)\n%n: f32[4,6] = Div(%d, %r)";
  const std::string one = "%one: f32[] = Constant() {values=[1.0]}\n";
  for (const std::string& other : std::vector<std::string>{
           "%r: f32[4,1] = Rsqrt(%e)\n%n: f32[4,6] = Mul(%r, %d)",
           "%q: f32[4,1] = Sqrt(%e)\n%r: f32[4,1] = Reciprocal(%q)\n%n: f32[4,6] = Mul(%d, %r)",
           one + "%q: f32[4,1] = Sqrt(%e)\n%r: f32[4,1] = Div(%one, %q)\n"
                 "%n: f32[4,6] = Mul(%d, %r)"}) {
    EXPECT_EQ(After("fuse-layer-norm", With(kLayerNorm, {{root, other}})),
              After("fuse-layer-norm", kLayerNorm))
        << other;
  }
  EXPECT_TRUE(
      Leaves("fuse-layer-norm", With(kLayerNorm, {{root,
                                                   "%two: f32[] = Constant() {values=[2.0]}\n"
                                                   "%q: f32[4,1] = Sqrt(%e)\n"
                                                   "%r: f32[4,1] = Div(%two, %q)\n"
                                                   "%n: f32[4,6] = Mul(%d, %r)"}})));
}

TEST(FuseLayerNorm, LeavesWhatIsSomethingElse) {
  const std::vector<LineChanges> all = {
      {{"Sub(%x, %m)", "Sub(%z, %m)"}},             // not the mean of what it is taken from
      {{"Sub(%x, %m)", "Add(%x, %m)"}},             // a sum
      {{"Mul(%d, %d)", "Mul(%d, %x)"}},             // no square
      {{"Mul(%d, %d)", "Scale(%d) {factor=2.0}"}},  // one factor
      {{"Div(%d, %r)", "Div(%x, %r)"}},             // not centered
      {{"Div(%d, %r)", "Div(%d, %e)"}, {"return ", "return %r: result, "}},
      {{"Add(%v, %eps)", "Mul(%v, %eps)"}},
      {{"Sqrt(%e)", "Exp(%e)"}},
      {{"return ", "return %m: result, "}},
      {{"return ", "return %s: result, "}},
      {{"return ", "return %v: result, "}},
      {{"return ", "return %e: result, "}},
      {{"return ", "return %r: result, "}},
      {{"return ", "return %d: result, "}},
  };
  ExpectLeft("fuse-layer-norm", kLayerNorm, all);
}

TEST(FuseLayerNorm, WantsTheMeanOverTheLastDimensions) {
  const std::string lines = R"(%x: f32[4,4,4] data
%eps: f32[] = Constant() {values=[0.25]}
%m: DIMS = ReduceMean(%x) {axes=[AXES], keepdims=1}
%d: f32[4,4,4] = Sub(%x, %m)
%s: f32[4,4,4] = Mul(%d, %d)
%v: DIMS = ReduceMean(%s) {axes=[AXES], keepdims=1}
%e: DIMS = Add(%v, %eps)
%r: DIMS = Sqrt(%e)
%y: f32[4,4,4] = Div(%d, %r)
return %y: result)";
  const auto of = [&](const char* dims, const char* axes) {
    return With(lines, {{"DIMS", dims}, {"AXES", axes}});
  };
  EXPECT_EQ(After("fuse-layer-norm", of("f32[1,1,1]", "0, 2, 1")),
            "%1: f32[4,4,4] = Constant() {fill=1.0}\n%y: f32[4,4,4], %3: f32[1,1,1], "
            "%4: f32[1,1,1] = LayerNorm(%x, %1) {axis=0, epsilon=0.25}\nreturn %y: result\n");
  EXPECT_FALSE(Leaves("fuse-layer-norm", of("f32[4,4,1]", "2")));
  EXPECT_TRUE(Leaves("fuse-layer-norm", of("f32[4,1,4]", "1")));
  EXPECT_TRUE(Leaves("fuse-layer-norm", of("f32[1,4,1]", "0, 2")));
  EXPECT_TRUE(Leaves("fuse-layer-norm", of("f32[1,1,4]", "0, 1")));
}

constexpr char kGain[] = R"(%x: f32[4,6] data, %g: f32[6] parameter, %b: f32[6] parameter
%one: f32[6] = Constant() {fill=1.0}
%n: f32[4,6], %m: f32[4,1], %r: f32[4,1] = LayerNorm(%x, %one) {axis=1, epsilon=0.5}
%h: f32[4,6] = Mul(%n, %g)
%y: f32[4,6] = Add(%h, %b)
return %y: result)";

TEST(FuseLayerNorm, TakesInGainAndBiasOnEitherSide) {
  const std::string fused =
      "%y: f32[4,6], %4: f32[4,1], %5: f32[4,1] = LayerNorm(%x, %g, %b) {axis=1, epsilon=0.5}\n"
      "return %y: result\n";
  EXPECT_EQ(After("fuse-layer-norm", kGain), fused);
  EXPECT_EQ(After("fuse-layer-norm",
                  With(kGain, {{"Mul(%n, %g)", "Mul(%g, %n)"}, {"Add(%h, %b)", "Add(%b, %h)"}})),
            fused);
}

TEST(FuseLayerNorm, ASecondBiasOrAGainBehindTheBiasStays) {
  const std::string lines = R"(%x: f32[4,6] data, %g: f32[6] parameter, %b: f32[6] parameter
%n: f32[4,6], %m: f32[4,1], %r: f32[4,1] = LayerNorm(%x, %g, %b) {axis=1, epsilon=0.5}
%y: f32[4,6] = Add(%n, %b)
return %y: result)";
  EXPECT_TRUE(Leaves("fuse-layer-norm", lines));
  EXPECT_TRUE(Leaves("fuse-layer-norm", With(lines, {{"Add", "Mul"}})));
  EXPECT_TRUE(Leaves("fuse-layer-norm", With(kGain, {{"return ", "return %n: result, "},
                                                     {"Add(%h, %b)", "Sub(%h, %b)"}})));
}

constexpr char kAffine[] = R"(%x: f32[2,4] data, %gain: f32[4] parameter, %bias: f32[4] parameter
%eps: f32[] = Constant() {values=[0.5]}
%m: f32[2,1] = ReduceMean(%x) {axes=[1], keepdims=1}
%d: f32[2,4] = Sub(%x, %m)
%s: f32[2,4] = Mul(%d, %d)
%v: f32[2,1] = ReduceMean(%s) {axes=[1], keepdims=1}
%e: f32[2,1] = Add(%v, %eps)
%i: f32[2,1] = Rsqrt(%e)
%f: f32[2,4] = Mul(%i, %gain)
%xf: f32[2,4] = Mul(%x, %f)
%mf: f32[2,4] = Mul(%m, %f)
%b: f32[2,4] = Sub(%bias, %mf)
%y: f32[2,4] = Add(%xf, %b)
return %y: result)";

TEST(FuseLayerNorm, KnowsTheFormOfTensorFlowInAnyOrder) {
  const std::string fused =
      "%y: f32[2,4], %4: f32[2,1], %5: f32[2,1] = LayerNorm(%x, %gain, %bias) "
      "{axis=1, epsilon=0.5}\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-layer-norm", kAffine), fused);
  EXPECT_EQ(After("fuse-layer-norm", With(kAffine, {{"Mul(%i, %gain)", "Mul(%gain, %i)"},
                                                    {"Mul(%x, %f)", "Mul(%f, %x)"},
                                                    {"Mul(%m, %f)", "Mul(%f, %m)"},
                                                    {"Add(%xf, %b)", "Add(%b, %xf)"}})),
            fused);
  // Without a gain.
  EXPECT_EQ(After("fuse-layer-norm", With(kAffine, {{"%gain: f32[4] parameter, ", ""},
                                                    {"%f: f32[2,4] = Mul(%i, %gain)\n", ""},
                                                    {", %f)", ", %i)"},
                                                    {"%mf: f32[2,4]", "%mf: f32[2,1]"}})),
            R"(%2: f32[4] = Constant() {fill=1.0}
%y: f32[2,4], %4: f32[2,1], %5: f32[2,1] = LayerNorm(%x, %2, %bias) {axis=1, epsilon=0.5}
return %y: result
)");
}

TEST(FuseLayerNorm, LeavesWhatIsNearlyTheFormOfTensorFlow) {
  const std::vector<LineChanges> all = {
      {{"Sub(%bias, %mf)", "Add(%bias, %mf)"}},
      {{"Sub(%bias, %mf)", "Sub(%mf, %bias)"}},
      {{"Add(%xf, %b)", "Sub(%xf, %b)"}},
      {{"Mul(%x, %f)", "Mul(%d, %f)"}},  // centered before
      {{"Mul(%m, %f)", "Mul(%v, %f)"}},
      {{"Sub(%x, %m)", "Sub(%m, %x)"}},
      {{"Mul(%d, %d)", "Mul(%x, %x)"}, {"return ", "return %d: result, "}},
      {{"return ", "return %f: result, "}},
      {{"return ", "return %m: result, "}},
      {{"return ", "return %d: result, "}},
      {{"return ", "return %xf: result, "}},
      {{"return ", "return %mf: result, "}},
      {{"return ", "return %b: result, "}},
      {{"%gain: f32[4]", "%gain: f32[1]"},
       {"%f: f32[2,4]", "%f: f32[2,1]"},
       {"%mf: f32[2,4]", "%mf: f32[2,1]"}},
      {{"%bias: f32[4]", "%bias: f32[1]"}},
  };
  ExpectLeft("fuse-layer-norm", kAffine, all);
}

constexpr char kRmsNorm[] = R"(%x: f32[4,6] data, %g: f32[6] parameter
%eps: f32[] = Constant() {values=[0.25]}
%s: f32[4,6] = Mul(%x, %x)
%v: f32[4,1] = ReduceMean(%s) {axes=[1], keepdims=1}
%e: f32[4,1] = Add(%v, %eps)
%r: f32[4,1] = Sqrt(%e)
%n: f32[4,6] = Div(%x, %r)
%y: f32[4,6] = Mul(%n, %g)
return %y: result)";

TEST(FuseRmsNorm, TakesInTheGainOnEitherSide) {
  const std::string fused =
      "%y: f32[4,6], %3: f32[4] = RmsNorm(%x, %g) {axis=1, epsilon=0.25}\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-rms-norm", kRmsNorm), fused);
  EXPECT_EQ(After("fuse-rms-norm", With(kRmsNorm, {{"Mul(%n, %g)", "Mul(%g, %n)"}})), fused);
  EXPECT_EQ(After("fuse-rms-norm", With(kRmsNorm, {{"Mul(%n, %g)", "Add(%n, %g)"}})),
            R"(%2: f32[6] = Constant() {fill=1.0}
%n: f32[4,6], %4: f32[4] = RmsNorm(%x, %2) {axis=1, epsilon=0.25}
%y: f32[4,6] = Add(%n, %g)
return %y: result
)");
}

TEST(FuseRmsNorm, LeavesWhatIsSomethingElse) {
  const std::vector<LineChanges> all = {
      {{"Mul(%x, %x)", "Abs(%x)"}},
      {{"Mul(%x, %x)", "Mul(%x, %g)"}},
      {{"Div(%x, %r)", "Div(%s, %r)"}},
      {{"Div(%x, %r)", "Mul(%x, %r)"}},
      {{"Sqrt(%e)", "Abs(%e)"}},
      {{"keepdims=1}", "keepdims=1}\n%w: f32[4,1] = Abs(%v)"}, {"Add(%v, %eps)", "Add(%w, %eps)"}},
      {{"return ", "return %v: result, "}},
      {{"return ", "return %r: result, "}},
  };
  ExpectLeft("fuse-rms-norm", kRmsNorm, all);
}

constexpr char kGroupNorm[] =
    R"(%x: f32[2,4,3] data, %g: f32[4,1] parameter, %b: f32[1,4,1] parameter
%one: f32[4] = Constant() {fill=1.0}
%zero: f32[4] = Constant() {fill=0.0}
%n: f32[2,4,3], %m: f32[2,2], %r: f32[2,2] = GroupNorm(%x, %one, %zero) {epsilon=0.5, groups=2}
%h: f32[2,4,3] = Mul(%n, %g)
%y: f32[2,4,3] = Add(%b, %h)
return %y: result)";

TEST(FuseGroupNorm, TakesInGainAndBiasByChannels) {
  EXPECT_EQ(After("fuse-layer-norm", kGroupNorm), R"(%3: f32[4] = Reshape(%g) {shape=[4]}
%4: f32[4] = Reshape(%b) {shape=[4]}
%y: f32[2,4,3], %6: f32[2,2], %7: f32[2,2] = GroupNorm(%x, %3, %4) {epsilon=0.5, groups=2}
return %y: result
)");
  // A gain behind a gain stays; a bias alone leaves the gain what it is.
  EXPECT_TRUE(Leaves("fuse-layer-norm",
                     With(kGroupNorm, {{"fill=1.0", "fill=3.0"}, {"Add(%b, %h)", "Mul(%b, %h)"}})));
  EXPECT_EQ(After("fuse-layer-norm", With(kGroupNorm, {{"fill=1.0", "fill=3.0"},
                                                       {"Mul(%n, %g)", "Add(%n, %g)"},
                                                       {"Add(%b, %h)", "Sub(%b, %h)"}})),
            R"(%one: f32[4] = Constant() {fill=3.0}
%4: f32[4] = Reshape(%g) {shape=[4]}
%h: f32[2,4,3], %6: f32[2,2], %7: f32[2,2] = GroupNorm(%x, %one, %4) {epsilon=0.5, groups=2}
%y: f32[2,4,3] = Sub(%b, %h)
return %y: result
)");
}

TEST(FuseGroupNorm, LeavesWhatIsNotByChannels) {
  const std::vector<LineChanges> all = {
      {{"%g: f32[4,1]", "%g: f32[4,3]"}, {"%b: f32[1,4,1]", "%b: f32[2,4,1]"}},
      {{"%g: f32[4,1]", "%g: f32[1,3]"}, {"%b: f32[1,4,1]", "%b: f32[3]"}},
      {{"%g: f32[4,1]", "%g: f32[1,1]"}, {"%b: f32[1,4,1]", "%b: f32[1,1,1]"}},
      {{"fill=1.0", "fill=2.0"}, {"Add(%b, %h)", "Sub(%b, %h)"}},
      {{"fill=0.0", "fill=1.0"}},
      {{"return ", "return %m: result, "}},
      {{"return ", "return %r: result, "}},
      {{"return ", "return %n: result, "}, {"Add(%b, %h)", "Sub(%b, %h)"}},
      {{"GroupNorm(%x, %one, %zero) {epsilon=0.5, groups=2}",
        "GroupNorm(%x, %one, %zero) {epsilon=0.5, groups=2}\n%q: f32[2,4,3] = Abs(%n)"},
       {"Mul(%n, %g)", "Mul(%q, %g)"}},
  };
  ExpectLeft("fuse-layer-norm", kGroupNorm, all);
}

// As an instance norm of groups, whose channels are found in the view.
constexpr char kViewed[] = R"(%x: f32[2,4,3] data, %g: f32[4,1] parameter
%one: f32[2] = Constant() {fill=1.0}
%zero: f32[2] = Constant() {fill=0.0}
%v: f32[2,2,6] = Reshape(%x) {shape=[-1, 2, 6]}
%n: f32[2,2,6], %m: f32[2,2], %r: f32[2,2] = GroupNorm(%v, %one, %zero) {epsilon=0.5, groups=2}
%w: f32[2,4,3] = Reshape(%n) {shape=[-1, 4, 3]}
%y: f32[2,4,3] = Add(%w, %g)
return %y: result)";

TEST(FuseGroupNorm, SeesThroughTheViewOfGroups) {
  EXPECT_EQ(After("fuse-layer-norm", kViewed), R"(%2: f32[4] = Reshape(%g) {shape=[4]}
%3: f32[4] = Constant() {fill=1.0}
%y: f32[2,4,3], %5: f32[2,2], %6: f32[2,2] = GroupNorm(%x, %3, %2) {epsilon=0.5, groups=2}
return %y: result
)");
  // What was another view before becomes the view that the result is.
  EXPECT_EQ(After("fuse-layer-norm", With(kViewed, {{"%x: f32[2,4,3]", "%x: f32[2,12]"}})),
            R"(%v: f32[2,2,6] = Reshape(%x) {shape=[-1, 2, 6]}
%3: f32[4] = Reshape(%g) {shape=[4]}
%4: f32[4] = Constant() {fill=1.0}
%5: f32[2,4,3] = Reshape(%v) {shape=[-1, 4, 3]}
%y: f32[2,4,3], %7: f32[2,2], %8: f32[2,2] = GroupNorm(%5, %4, %3) {epsilon=0.5, groups=2}
return %y: result
)");
}

TEST(FuseGroupNorm, LeavesViewsThatMixGroups) {
  // A gain that is not 1 cannot be seen by other channels; 3 channels are not 2 groups; samples
  // stay samples.
  EXPECT_TRUE(Leaves("fuse-layer-norm", With(kViewed, {{"fill=1.0", "fill=2.0"}})));
  EXPECT_TRUE(Leaves("fuse-layer-norm", With(kViewed, {{"%g: f32[4,1]", "%g: f32[3,1]"},
                                                       {"[2,4,3]", "[2,3,4]"},
                                                       {"[-1, 4, 3]", "[-1, 3, 4]"}})));
  EXPECT_TRUE(Leaves("fuse-layer-norm", With(kViewed, {{"%w: f32[2,4,3]", "%w: f32[6,4,1]"},
                                                       {"%y: f32[2,4,3]", "%y: f32[6,4,1]"},
                                                       {"[-1, 4, 3]", "[-1, 4, 1]"}})));
}

}  // namespace
}  // namespace fuse_norms_test_cc
}  // namespace orrery::transforms
