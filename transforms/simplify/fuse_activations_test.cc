#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "transforms/simplify/pass_test_util.h"

// Gelu, Silu, SwiGlu and rotary embedding written out, with one thing changed at a time.

namespace orrery::transforms {
namespace fuse_activations_test_cc {
namespace {

constexpr char kErf[] = R"(%x: f32[4,6] data
%half: f32[] = Constant() {values=[0.5]}
%one: f32[] = Constant() {values=[1.0]}
%d: f32[4,6] = Scale(%x) {factor=0.7071068}
%e: f32[4,6] = Erf(%d)
%s: f32[4,6] = Add(%e, %one)
%m: f32[4,6] = Mul(%x, %s)
%y: f32[4,6] = Mul(%m, %half)
return %y: result)";

constexpr char kGelu[] = "%y: f32[4,6] = Gelu(%x) {approximate=\"none\"}\nreturn %y: result\n";

TEST(FuseGelu, TakesFactorsInAnyOrder) {
  EXPECT_EQ(After("fuse-gelu", kErf), kGelu);
  EXPECT_EQ(After("fuse-gelu", With(kErf, {{"Add(%e, %one)", "Add(%one, %e)"},
                                           {"Mul(%x, %s)", "Mul(%s, %x)"},
                                           {"Mul(%m, %half)", "Mul(%half, %m)"}})),
            kGelu);
  EXPECT_EQ(After("fuse-gelu", With(kErf, {{"[0.5]", "[2.0]"}, {"Mul(%m", "Div(%m"}})), kGelu);
  EXPECT_EQ(After("fuse-gelu", With(kErf, {{"Mul(%x, %s)", "Mul(%x, %half)"},
                                           {"Mul(%m, %half)", "Mul(%s, %m)"}})),
            kGelu);
}

// Half precision rounds 0.7071 to 0.70703; a hundredth more is something else.
TEST(FuseGelu, AllowsForConstantsOfHalfPrecision) {
  const auto with_factor = [](const char* factor) { return With(kErf, {{"0.7071068", factor}}); };
  for (const char* factor : {"0.70703", "0.7065", "0.7077"}) {
    EXPECT_EQ(After("fuse-gelu", with_factor(factor)), kGelu) << factor;
  }
  for (const char* factor : {"0.7063", "0.7079", "0.7142", "-0.7071", "1.4142", "0.0"}) {
    EXPECT_TRUE(Leaves("fuse-gelu", with_factor(factor))) << factor;
  }
}

TEST(FuseGelu, LeavesWhatIsSomethingElse) {
  const std::vector<LineChanges> all = {
      {{"[0.5]", "[0.25]"}},
      {{"%one: f32[] = Constant() {values=[1.0]}", "%one: f32[] = Constant() {values=[0.5]}"}},
      {{"Scale(%x) {factor=0.7071068}", "Abs(%x)"}},
      {{"Erf(%d)", "Sigmoid(%d)"}},
      {{"Add(%e, %one)", "Sub(%e, %one)"}},
      {{"Mul(%x, %s)", "Mul(%d, %s)"}},
      {{"return ", "return %e: result, "}},
      {{"return ", "return %s: result, "}},
      {{"return ", "return %m: result, "}},
  };
  ExpectLeft("fuse-gelu", kErf, all);
}

constexpr char kTanh[] = R"(%x: f32[4,6] data
%one: f32[] = Constant() {values=[1.0]}
%three: f32[] = Constant() {values=[3.0]}
%p: f32[4,6] = Pow(%x, %three)
%q: f32[4,6] = Scale(%p) {factor=0.044715}
%a: f32[4,6] = Add(%x, %q)
%b: f32[4,6] = Scale(%a) {factor=0.7978846}
%t: f32[4,6] = Tanh(%b)
%s: f32[4,6] = Add(%t, %one)
%h: f32[4,6] = Scale(%x) {factor=0.5}
%y: f32[4,6] = Mul(%h, %s)
return %y: result)";

TEST(FuseGelu, KnowsTheTanhWithItsCubeInAnyForm) {
  const std::string gelu = "%y: f32[4,6] = Gelu(%x) {approximate=\"tanh\"}\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-gelu", kTanh), gelu);
  const std::string three = "%three: f32[] = Constant() {values=[3.0]}\n";
  const std::string pow = "%p: f32[4,6] = Pow(%x, %three)";
  for (const char* cube : {"%o: f32[4,6] = Mul(%x, %x)\n%p: f32[4,6] = Mul(%o, %x)",
                           "%o: f32[4,6] = Mul(%x, %x)\n%p: f32[4,6] = Mul(%x, %o)"}) {
    EXPECT_EQ(After("fuse-gelu", With(kTanh, {{three, ""}, {pow, cube}})), gelu) << cube;
  }
  const std::string factored = With(kTanh, {{"[3.0]", "[2.0]"},
                                            {"Add(%x, %q)", "Add(%one, %q)"},
                                            {"Scale(%a)", "Scale(%r)"},
                                            {"%b: ", "%r: f32[4,6] = Mul(%x, %a)\n%b: "}});
  EXPECT_EQ(After("fuse-gelu", factored), gelu);
  EXPECT_EQ(After("fuse-gelu", With(factored, {{"Mul(%x, %a)", "Mul(%a, %x)"}})), gelu);
  EXPECT_TRUE(Leaves("fuse-gelu", With(factored, {{"[2.0]", "[3.0]"}})));
  EXPECT_TRUE(Leaves("fuse-gelu", With(factored, {{"0.044715", "0.05"}})));
  EXPECT_TRUE(Leaves("fuse-gelu", With(factored, {{"Mul(%x, %a)", "Mul(%t0, %a)"},
                                                  {"%r: ", "%t0: f32[4,6] = Abs(%x)\n%r: "}})));
}

TEST(FuseGelu, LeavesTanhOfSomethingElse) {
  const std::vector<LineChanges> all = {
      {{"0.044715", "0.0447"}, {"0.7978846", "0.78"}},
      {{"0.044715", "0.0448"}},
      {{"[3.0]", "[2.0]"}},
      {{"[3.0]", "[4.0]"}},
      {{"Add(%x, %q)", "Add(%one, %q)"}},
      {{"Add(%x, %q)", "Sub(%x, %q)"}},
      {{"{factor=0.5}", "{factor=-0.5}"}},
  };
  ExpectLeft("fuse-gelu", kTanh, all);
}

TEST(FuseGelu, KnowsTheSigmoidByItsFactor) {
  const std::string lines = R"(%x: f32[4] data
%s: f32[4] = Scale(%x) {factor=1.702}
%g: f32[4] = Sigmoid(%s)
%y: f32[4] = Mul(%g, %x)
return %y: result)";
  const std::string gelu = "%y: f32[4] = Gelu(%x) {approximate=\"sigmoid\"}\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-gelu", lines), gelu);
  EXPECT_EQ(After("fuse-gelu", With(lines, {{"Mul(%g, %x)", "Mul(%x, %g)"}})), gelu);
  EXPECT_TRUE(Leaves("fuse-gelu", With(lines, {{"1.702", "1.0"}})));
  EXPECT_TRUE(Leaves("fuse-gelu", With(lines, {{"Scale(%x) {factor=1.702}", "Mul(%x, %x)"}})));
  EXPECT_TRUE(Leaves("fuse-gelu", With(lines, {{"return ", "return %g: result, "}})));
  EXPECT_TRUE(Leaves("fuse-gelu", With(lines, {{"Mul(%g, %x)", "Add(%g, %x)"}})));
}

TEST(FuseSilu, WantsTheSigmoidOfTheValueItself) {
  const std::string lines = R"(%x: f32[4] data, %z: f32[4] data
%g: f32[4] = Sigmoid(%x)
%y: f32[4] = Mul(%g, %x)
%u: f32[4] = Sub(%y, %z)
return %u: result)";
  const std::string silu = "%y: f32[4] = Silu(%x)\n%u: f32[4] = Sub(%y, %z)\nreturn %u: result\n";
  EXPECT_EQ(After("fuse-silu", lines), silu);
  EXPECT_EQ(After("fuse-silu", With(lines, {{"Mul(%g, %x)", "Mul(%x, %g)"}})), silu);
  EXPECT_TRUE(Leaves("fuse-silu", With(lines, {{"Mul(%g, %x)", "Mul(%g, %z)"}})));
  EXPECT_TRUE(Leaves("fuse-silu", With(lines, {{"Mul(%g, %x)", "Div(%g, %x)"}})));
  EXPECT_TRUE(Leaves("fuse-silu", With(lines, {{"return ", "return %g: result, "}})));
}

TEST(FuseSwiGlu, WantsGateAndUpOfOneType) {
  const std::string lines = R"(%x: f32[4,4] data, %z: f32[4,4] data
%g: f32[4,4] = Silu(%x)
%y: f32[4,4] = Mul(%z, %g)
return %y: result)";
  const std::string glu = "%y: f32[4,4] = SwiGlu(%x, %z)\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-swiglu", lines), glu);
  EXPECT_EQ(After("fuse-swiglu", With(lines, {{"Mul(%z, %g)", "Mul(%g, %z)"}})), glu);
  EXPECT_TRUE(Leaves("fuse-swiglu", With(lines, {{"%z: f32[4,4]", "%z: f32[4,1]"}})));
  EXPECT_TRUE(Leaves("fuse-swiglu", With(lines, {{"Mul(%z, %g)", "Div(%z, %g)"}})));
  EXPECT_TRUE(Leaves("fuse-swiglu", With(lines, {{"return ", "return %g: result, "}})));
}

constexpr char kHalves[] = R"(%x: f32[2,3,4] data, %cos: f32[3,4] buffer, %sin: f32[3,4] buffer
%lo: f32[2,3,2] = Slice(%x) {axes=[2], ends=[2], starts=[0], steps=[1]}
%hi: f32[2,3,2] = Slice(%x) {axes=[2], ends=[4], starts=[2], steps=[1]}
%neg: f32[2,3,2] = Neg(%hi)
%rot: f32[2,3,4] = Concat(%neg, %lo) {axis=2}
%a: f32[2,3,4] = Mul(%x, %cos)
%b: f32[2,3,4] = Mul(%rot, %sin)
%y: f32[2,3,4] = Add(%a, %b)
return %y: result)";

TEST(FuseRotary, TakesHalvesHoweverTheyAreMade) {
  const std::string rotary =
      "%y: f32[2,3,4] = Rotary(%x, %cos, %sin) {layout=\"half\"}\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-rotary", kHalves), rotary);
  EXPECT_EQ(After("fuse-rotary", With(kHalves, {{"Add(%a, %b)", "Add(%b, %a)"},
                                                {"Mul(%x, %cos)", "Mul(%cos, %x)"},
                                                {"Mul(%rot, %sin)", "Mul(%sin, %rot)"}})),
            rotary);
  EXPECT_EQ(After("fuse-rotary", With(kHalves, {{"Neg(%hi)", "Scale(%hi) {factor=-1.0}"}})),
            rotary);
  EXPECT_EQ(After("fuse-rotary", With(kHalves, {{"ends=[4]", "ends=[9223372036854775807]"}})),
            rotary);
}

TEST(FuseRotary, LeavesWhatIsSomethingElse) {
  const std::vector<LineChanges> all = {
      {{"Neg(%hi)", "Abs(%hi)"}},
      {{"Neg(%hi)", "Scale(%hi) {factor=-2.0}"}},
      {{"Neg(%hi)", "Neg(%lo)"}, {"Concat(%neg, %lo)", "Concat(%neg, %hi)"}},
      {{"Concat(%neg, %lo)", "Concat(%lo, %neg)"}},
      {{"ends=[2], starts=[0]", "ends=[3], starts=[1]"}},
      {{"ends=[4], starts=[2]", "ends=[3], starts=[1]"}},
      {{"ends=[2], starts=[0], steps=[1]", "ends=[3], starts=[0], steps=[2]"}},
      {{"ends=[4], starts=[2], steps=[1]", "ends=[4], starts=[1], steps=[2]"}},
      {{"Mul(%x, %cos)", "Add(%x, %cos)"}},
      {{"Mul(%x, %cos)", "Mul(%rot, %cos)"}},
      {{"Mul(%rot, %sin)", "Mul(%rot, %b0)"},
       {"%b: ",
        "%b0: f32[3,1] = ReduceMax(%sin) "
        "{axes=[1], keepdims=1}\n%b: "}},
      {{"Add(%a, %b)", "Sub(%a, %b)"}},
      {{"return ", "return %rot: result, "}},
      {{"return ", "return %neg: result, "}},
      {{"return ", "return %lo: result, "}},
      {{"return ", "return %hi: result, "}},
      {{"return ", "return %a: result, "}},
      {{"return ", "return %b: result, "}},
      {{"%cos: f32[3,4]", "%cos: f32[3,1]"}, {"%sin: f32[3,4]", "%sin: f32[3,1]"}},
      {{"%cos: f32[3,4]", "%cos: f32[]"}, {"%sin: f32[3,4]", "%sin: f32[]"}},
      {{"%sin: f32[3,4]", "%sin: f32[1,4]"}},
  };
  ExpectLeft("fuse-rotary", kHalves, all);
}

// Matrices by themselves have no rows of several heads.
TEST(FuseRotary, WantsThreeDimensions) {
  EXPECT_TRUE(Leaves(
      "fuse-rotary",
      With(kHalves, {{"f32[2,3,", "f32[3,"}, {"axes=[2]", "axes=[1]"}, {"axis=2", "axis=1"}})));
}

// Other parts than halves of the last dimension.
TEST(FuseRotary, WantsTheLastDimensionInTwo) {
  EXPECT_TRUE(
      Leaves("fuse-rotary", R"(%x: f32[2,4,4] data, %cos: f32[4,4] buffer, %sin: f32[4,4] buffer
%lo: f32[2,2,4], %hi: f32[2,2,4] = Split(%x) {axis=1, sizes=[2, 2]}
%neg: f32[2,2,4] = Neg(%hi)
%rot: f32[2,4,4] = Concat(%neg, %lo) {axis=1}
%a: f32[2,4,4] = Mul(%x, %cos)
%b: f32[2,4,4] = Mul(%rot, %sin)
%y: f32[2,4,4] = Add(%a, %b)
return %y: result)"));
  const std::string split = R"(%x: f32[2,3,4] data, %cos: f32[3,4] buffer, %sin: f32[3,4] buffer
%lo: f32[2,3,LOW], %hi: f32[2,3,HIGH] = Split(%x) {axis=2, sizes=[LOW, HIGH]}
%neg: f32[2,3,HIGH] = Neg(%hi)
%rot: f32[2,3,4] = Concat(%neg, %lo) {axis=2}
%a: f32[2,3,4] = Mul(%x, %cos)
%b: f32[2,3,4] = Mul(%rot, %sin)
%y: f32[2,3,4] = Add(%a, %b)
return %y: result)";
  EXPECT_FALSE(Leaves("fuse-rotary", With(split, {{"LOW", "2"}, {"HIGH", "2"}})));
  EXPECT_TRUE(Leaves("fuse-rotary", With(split, {{"LOW", "1"}, {"HIGH", "3"}})));
  EXPECT_TRUE(Leaves("fuse-rotary", With(split, {{"LOW", "3"}, {"HIGH", "1"}})));
}

constexpr char kPairs[] = R"(%x: f32[2,3,4] data, %cos: f32[3,4] buffer, %sin: f32[3,4] buffer
%even: f32[2,3,2] = Slice(%x) {axes=[2], ends=[4], starts=[0], steps=[2]}
%odd: f32[2,3,2] = Slice(%x) {axes=[2], ends=[4], starts=[1], steps=[2]}
%neg: f32[2,3,2] = Neg(%odd)
%n1: f32[2,3,2,1] = Unsqueeze(%neg) {axes=[3]}
%e1: f32[2,3,2,1] = Unsqueeze(%even) {axes=[3]}
%s: f32[2,3,2,2] = Concat(%n1, %e1) {axis=3}
%rot: f32[2,3,4] = Reshape(%s) {shape=[-1, 3, 4]}
%a: f32[2,3,4] = Mul(%x, %cos)
%b: f32[2,3,4] = Mul(%rot, %sin)
%y: f32[2,3,4] = Add(%a, %b)
return %y: result)";

TEST(FuseRotary, TakesPairsThatAreStacked) {
  const std::string rotary =
      "%y: f32[2,3,4] = Rotary(%x, %cos, %sin) {layout=\"interleaved\"}\nreturn %y: result\n";
  EXPECT_EQ(After("fuse-rotary", kPairs), rotary);
  // Even ones end before the last.
  EXPECT_EQ(After("fuse-rotary", With(kPairs, {{"ends=[4], starts=[0]", "ends=[3], starts=[0]"}})),
            rotary);
  EXPECT_EQ(
      After("fuse-rotary",
            With(kPairs, {{"Unsqueeze(%neg) {axes=[3]}", "Reshape(%neg) {shape=[-1, 3, 2, 1]}"}})),
      rotary);
  const std::vector<LineChanges> all = {
      {{"Concat(%n1, %e1)", "Concat(%e1, %n1)"}},
      {{"Neg(%odd)", "Neg(%even)"}, {"Unsqueeze(%even)", "Unsqueeze(%odd)"}},
      {{"ends=[4], starts=[1], steps=[2]", "ends=[4], starts=[2], steps=[1]"}},
      {{"ends=[4], starts=[0], steps=[2]", "ends=[2], starts=[0], steps=[1]"}},
      {{"return ", "return %n1: result, "}},
      {{"return ", "return %e1: result, "}},
      {{"return ", "return %s: result, "}},
  };
  ExpectLeft("fuse-rotary", kPairs, all);
  // Stacked along another dimension, they are halves again.
  EXPECT_TRUE(Leaves("fuse-rotary", With(kPairs, {{"[2,3,2,1]", "[2,3,1,2]"},
                                                  {"{axes=[3]}", "{axes=[2]}"},
                                                  {"{axis=3}", "{axis=2}"}})));
}

}  // namespace
}  // namespace fuse_activations_test_cc
}  // namespace orrery::transforms
