#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "transforms/simplify/pass_test_util.h"

// Which masks before a softmax are seen as such, and which of them as causal: 2 queries, the last
// ones of 3 positions.

namespace orrery::transforms {
namespace fuse_softmax_test_cc {
namespace {

constexpr char kInputs[] =
    "%x: f32[2,2,3] data, %z: f32[2,2,3] data, %h: bool[2,3] data, %m: f32[2,3] data";

// What becomes of the softmax of %l, which `ops` make: "MaskedSoftmax(%x) {axis=2, causal=1}".
std::string Softmax(std::string ops) {
  std::string inputs;
  for (const absl::string_view input : absl::StrSplit(kInputs, ", ")) {
    const std::string name(input.substr(0, 2));
    if (!absl::StrContains(ops, name)) continue;
    absl::StrAppend(&inputs, inputs.empty() ? "" : ", ", input);
  }
  if (absl::StrContains(ops, "%low")) {
    ops = "%low: f32[] = Constant() {values=[-1e9]}\n" + ops;
  }
  const std::string after = After(
      "fuse-softmax", absl::StrCat(inputs, "\n", ops,
                                   "\n%y: f32[2,2,3] = Softmax(%l) {axis=2}\nreturn %y: result"));
  const size_t begin = after.find("= ", after.find("%y: ")) + 2;
  return after.substr(begin, after.find('\n', begin) - begin);
}

constexpr char kCausal[] = "MaskedSoftmax(%x) {axis=2, causal=1}";
constexpr char kUnmasked[] = "Softmax(%l) {axis=2}";

// The softmax behind a Where that shows what `mask`, made by the ops before, says; or hides it.
std::string Showing(const std::string& ops) {
  return Softmax(ops + "\n%l: f32[2,2,3] = Where(%k, %x, %low)");
}
std::string Hiding(const std::string& ops) {
  return Softmax(ops + "\n%l: f32[2,2,3] = Where(%k, %low, %x)");
}

TEST(FuseSoftmax, TakesInAScale) {
  EXPECT_EQ(Softmax("%l: f32[2,2,3] = Scale(%x) {factor=0.25}"),
            "MaskedSoftmax(%x) {axis=2, scale=0.25}");
  EXPECT_EQ(Softmax("%l: f32[2,2,3] = Abs(%x)"), kUnmasked);
}

TEST(FuseSoftmax, WhatHidesIsAtMostMinusTenThousand) {
  const auto with = [](const std::string& low) {
    return Softmax("%n: f32[] = Constant() {values=[" + low +
                   "]}\n%l: f32[2,2,3] = Where(%h, %x, %n)");
  };
  EXPECT_EQ(with("-10000.0"), "MaskedSoftmax(%x, %h) {axis=2}");
  EXPECT_EQ(with("-inf"), "MaskedSoftmax(%x, %h) {axis=2}");
  EXPECT_EQ(with("-9999.0"), kUnmasked);
  EXPECT_EQ(with("10000.0"), kUnmasked);
  EXPECT_EQ(with("0.0"), kUnmasked);
}

TEST(FuseSoftmax, OneOperandOfASumIsTheMask) {
  EXPECT_EQ(Softmax("%l: f32[2,2,3] = Add(%x, %m)"), "MaskedSoftmax(%x, %m) {axis=2}");
  EXPECT_EQ(Softmax("%l: f32[2,2,3] = Add(%m, %x)"), "MaskedSoftmax(%x, %m) {axis=2}");
  // Where both are as large, what looks like logits: products, scaled, viewed or masked.
  EXPECT_EQ(Softmax("%s: f32[2,2,3] = Scale(%x) {factor=0.5}\n%l: f32[2,2,3] = Add(%z, %s)"),
            "MaskedSoftmax(%x, %z) {axis=2, scale=0.5}");
  EXPECT_EQ(Softmax("%s: f32[2,2,3] = Where(%h, %x, %low)\n%l: f32[2,2,3] = Add(%s, %z)"),
            "MaskedSoftmax(%x, %4) {axis=2}");
  EXPECT_EQ(Softmax("%l: f32[2,2,3] = Add(%x, %z)"), kUnmasked);
  EXPECT_EQ(Softmax("%s: f32[2,2,3] = Scale(%x) {factor=0.5}\n"
                    "%t: f32[2,2,3] = Scale(%z) {factor=0.5}\n%l: f32[2,2,3] = Add(%s, %t)"),
            kUnmasked);
}

// Masks of bools and numbers in one, in either order.
TEST(FuseSoftmax, JoinsMasks) {
  const auto mask = [](const std::string& ops) {
    const std::string after = After(
        "fuse-softmax", absl::StrCat("%x: f32[2,2,3] data, %h: bool[2,3] data, "
                                     "%j: bool[2,1] data, %m: f32[2,3] data, %n: f32[3] data\n"
                                     "%low: f32[] = Constant() {values=[-1e9]}\n",
                                     ops,
                                     "\n%y: f32[2,2,3] = Softmax(%b) {axis=2}\n"
                                     "%u: f32[2,3] = Where(%j, %m, %n)\n"
                                     "%v: f32[2,3] = Where(%h, %u, %low)\n"
                                     "return %y: result, %v: result"));
    const size_t end = after.find("\n%y"), begin = after.rfind("= ", end) + 2;
    return after.substr(begin, end - begin);
  };
  const std::string h = "%a: f32[2,2,3] = Where(%h, %x, %low)\n",
                    m = "%a: f32[2,2,3] = Add(%x, %m)\n";
  EXPECT_EQ(mask(h + "%b: f32[2,2,3] = Where(%j, %a, %low)"), "And(%j, %h)");
  EXPECT_EQ(mask(m + "%b: f32[2,2,3] = Add(%a, %n)"), "Add(%n, %m)");
  EXPECT_EQ(mask(m + "%b: f32[2,2,3] = Where(%h, %a, %low)"), "Where(%h, %m, %6)");
  EXPECT_EQ(mask(h + "%b: f32[2,2,3] = Add(%a, %m)"), "Where(%h, %m, %6)");
}

// The layers closest to the softmax; what is inside stands as it is.
TEST(FuseSoftmax, TakesInFourMasks) {
  const std::string masks = R"(%a: f32[2,2,3] = Add(%x, %m)
%b: f32[2,2,3] = Add(%a, %m)
%c: f32[2,2,3] = Add(%b, %m)
%d: f32[2,2,3] = Add(%c, %m)
)";
  EXPECT_TRUE(
      absl::StartsWith(Softmax(masks + "%l: f32[2,2,3] = Scale(%d) {factor=1.0}"), "Softmax(%l)"));
  EXPECT_TRUE(absl::StartsWith(Softmax(With(masks, {{"%d", "%l"}})), "MaskedSoftmax(%x, "));
  EXPECT_TRUE(
      absl::StartsWith(Softmax(masks + "%l: f32[2,2,3] = Add(%d, %m)"), "MaskedSoftmax(%a, "));
}

TEST(FuseSoftmax, ReadsTrianglesElementByElement) {
  const auto shown = [](const std::string& values) {
    return Showing("%k: bool[2,3] = Constant() {values=[" + values + "]}");
  };
  EXPECT_EQ(shown("1, 1, 0, 1, 1, 1"), kCausal);
  for (const char* values : {"1, 1, 1, 1, 1, 1", "1, 0, 0, 1, 1, 1", "1, 1, 0, 1, 1, 0",
                             "0, 1, 0, 1, 1, 1", "1, 1, 0, 0, 1, 1"}) {
    EXPECT_EQ(shown(values), "MaskedSoftmax(%x, %k) {axis=2}") << values;
  }
  EXPECT_EQ(Hiding("%k: bool[2,3] = Constant() {values=[0, 0, 1, 0, 0, 0]}"), kCausal);
  EXPECT_EQ(Hiding("%k: bool[2,3] = Constant() {values=[1, 1, 0, 1, 1, 1]}"),
            "MaskedSoftmax(%x, %2) {axis=2}");
}

TEST(FuseSoftmax, ReadsTrianglesThatAreAdded) {
  const auto added = [](const std::string& hidden, const std::string& shown = "0.0") {
    return Softmax("%k: f32[2,3] = Constant() {values=[0.0, " + shown + ", " + hidden +
                   ", 0.0, 0.0, 0.0]}\n%l: f32[2,2,3] = Add(%x, %k)");
  };
  EXPECT_EQ(added("-10000.0"), kCausal);
  EXPECT_EQ(added("-9999.0"), "MaskedSoftmax(%x, %k) {axis=2}");
  EXPECT_EQ(added("0.0"), "MaskedSoftmax(%x, %k) {axis=2}");
  EXPECT_EQ(added("-1e9", "-1e9"), "MaskedSoftmax(%x, %k) {axis=2}");
  EXPECT_EQ(added("-1e9", "1.0"), "MaskedSoftmax(%x, %k) {axis=2}");
}

TEST(FuseSoftmax, SeesThroughViewsAndNegationsOfTriangles) {
  const std::string shown = "%t: bool[2,3] = Constant() {values=[1, 1, 0, 1, 1, 1]}\n";
  EXPECT_EQ(Showing(shown + "%k: bool[1,2,3] = Unsqueeze(%t) {axes=[0]}"), kCausal);
  EXPECT_EQ(Showing(shown + "%k: bool[1,2,3] = Reshape(%t) {shape=[1, 2, 3]}"), kCausal);
  EXPECT_EQ(Showing(shown + "%k: bool[2,2,3] = Expand(%t) {shape=[2, 2, 3]}"), kCausal);
  EXPECT_EQ(Hiding(shown + "%k: bool[2,3] = Not(%t)"), kCausal);
  EXPECT_NE(Showing(shown + "%k: bool[2,3] = Not(%t)"), kCausal);
  EXPECT_EQ(Showing(shown + "%n: bool[2,3] = Not(%t)\n%k: bool[2,3] = Not(%n)"), kCausal);
  const std::string whole =
      "%zero: i64[] = Constant() {values=[0]}\n"
      "%t: i64[2,3] = Constant() {values=[1, 1, 0, 1, 1, 1]}\n";
  EXPECT_EQ(Hiding(whole + "%k: bool[2,3] = Equal(%t, %zero)"), kCausal);
  EXPECT_EQ(Hiding(whole + "%k: bool[2,3] = Equal(%zero, %t)"), kCausal);
  EXPECT_NE(Showing(whole + "%k: bool[2,3] = Equal(%t, %zero)"), kCausal);
  EXPECT_NE(
      Hiding(With(whole, {{"values=[0]", "values=[1]"}}) + "%k: bool[2,3] = Equal(%t, %zero)"),
      kCausal);
  EXPECT_EQ(Showing("%t: i64[2,3] = Constant() {values=[7, 1, 0, 1, 1, 1]}\n"
                    "%k: bool[2,3] = Cast(%t) {to=\"bool\"}"),
            kCausal);
  // Of other rows the view is something else.
  EXPECT_NE(Showing("%t: bool[3,2] = Constant() {values=[1, 1, 0, 1, 1, 1]}\n"
                    "%k: bool[2,3] = Transpose(%t) {perm=[1, 0]}"),
            kCausal);
}

// Positions are compared as [2,1] with [3], queries at 1 and 2 or later by as much as keys are.
TEST(FuseSoftmax, ReadsComparisonsOfPositions) {
  struct Comparison {
    const char* op;
    bool shows, hides;  // whether it is causal as what is shown, or hidden
  };
  const std::vector<Comparison> comparisons = {
      {"GreaterOrEqual(%q, %p)", true, false},  {"Greater(%q, %p)", false, false},
      {"LessOrEqual(%q, %p)", false, false},    {"Less(%q, %p)", false, true},
      {"GreaterOrEqual(%p, %q)", false, false}, {"Greater(%p, %q)", false, true},
      {"LessOrEqual(%p, %q)", true, false},     {"Less(%p, %q)", false, false}};
  for (const Comparison& c : comparisons) {
    for (const int first : {0, 5}) {
      const std::string ops =
          absl::StrCat("%q: i64[2,1] = Constant() {values=[", first + 1, ", ", first + 2,
                       "]}\n%p: i64[3] = Constant() {values=[", first, ", ", first + 1, ", ",
                       first + 2, "]}\n%k: bool[2,3] = ", c.op);
      EXPECT_EQ(Showing(ops) == kCausal, c.shows) << c.op;
      EXPECT_EQ(Hiding(ops) == kCausal, c.hides) << c.op;
    }
  }
}

TEST(FuseSoftmax, LeavesComparisonsOfOtherPositions) {
  const auto shown = [](const char* queries, const char* keys) {
    return Showing(absl::StrCat("%q: i64[2,1] = Constant() {values=[", queries,
                                "]}\n%p: i64[3] = Constant() {values=[", keys,
                                "]}\n%k: bool[2,3] = GreaterOrEqual(%q, %p)"));
  };
  EXPECT_EQ(shown("1, 2", "0, 1, 2"), kCausal);
  for (const char* queries : {"0, 1", "2, 3", "1, 3", "2, 1"}) {
    EXPECT_EQ(shown(queries, "0, 1, 2"), "MaskedSoftmax(%x, %k) {axis=2}") << queries;
  }
  EXPECT_EQ(shown("1, 2", "0, 1, 1"), "MaskedSoftmax(%x, %k) {axis=2}");
  EXPECT_EQ(shown("1, 2", "0, 2, 1"), "MaskedSoftmax(%x, %k) {axis=2}");
}

TEST(FuseSoftmax, ReadsTrianglesThatAreCutOut) {
  const auto cut = [](const char* type, const char* fill, int upper, int k) {
    return absl::StrCat("%c: ", type, "[2,3] = Constant() {fill=", fill, "}\n%k: ", type,
                        "[2,3] = Trilu(%c) {k=", k, ", upper=", upper, "}");
  };
  for (const int k : {0, 1, 2, 3}) {
    for (const int upper : {0, 1}) {
      const std::string bools = cut("bool", "1", upper, k), floats = cut("f32", "-1e9", upper, k);
      EXPECT_EQ(Showing(bools) == kCausal, upper == 0 && k == 1) << upper << k;
      EXPECT_EQ(Hiding(bools) == kCausal, upper == 1 && k == 2) << upper << k;
      const std::string added = Softmax(floats + "\n%l: f32[2,2,3] = Add(%x, %k)");
      EXPECT_EQ(added == kCausal, upper == 1 && k == 2) << upper << k;
    }
  }
  const auto added = [&](const char* fill) {
    return Softmax(cut("f32", fill, 1, 2) + "\n%l: f32[2,2,3] = Add(%x, %k)");
  };
  EXPECT_EQ(added("-10000.0"), kCausal);
  EXPECT_NE(added("-9999.0"), kCausal);
  EXPECT_NE(added("0.0"), kCausal);
  EXPECT_NE(Hiding(cut("bool", "0", 1, 2)), kCausal);
}

TEST(FuseSoftmax, LeavesASoftmaxOverOtherDimensions) {
  const std::string lines = R"(%x: f32[3,3,3] data
%s: f32[3,3,3] = Scale(%x) {factor=0.5}
%y: f32[3,3,3] = Softmax(%s) {axis=AXIS}
return %y: result)";
  EXPECT_TRUE(Leaves("fuse-softmax", With(lines, {{"AXIS", "0"}})));
  EXPECT_TRUE(Leaves("fuse-softmax", With(lines, {{"AXIS", "1"}})));
  EXPECT_FALSE(Leaves("fuse-softmax", With(lines, {{"AXIS", "2"}})));
  EXPECT_TRUE(Leaves("fuse-softmax", With(lines, {{"AXIS", "2"}, {"Softmax", "LogSoftmax"}})));
  EXPECT_TRUE(
      Leaves("fuse-softmax", With(lines, {{"AXIS", "2"}, {"return ", "return %s: result, "}})));
}

}  // namespace
}  // namespace fuse_softmax_test_cc
}  // namespace orrery::transforms
