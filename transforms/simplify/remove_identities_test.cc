#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "transforms/simplify/pass_test_util.h"

// Single ops and pairs of them; chains are in tests/cli/opt/remove_identities*.orr.

namespace orrery::transforms {
namespace remove_identities_test_cc {
namespace {

constexpr char kPass[] = "remove-identities";

// What becomes of `op`, with a number at hand: "Scale(%a) {factor=0.25}".
std::string Rewritten(const std::string& op, const std::string& number,
                      const std::string& type = "f32[4,6]") {
  const std::string scalar = type.substr(0, type.find('['));
  const std::string after =
      After(kPass, absl::StrCat("%x: ", type, " data\n%n: ", scalar, "[] = Constant() {values=[",
                                number, "]}\n%a: ", type, " = Abs(%x)\n%b: ", type, " = ", op,
                                "\n%y: ", type, " = Abs(%b)\nreturn %y: result"));
  const size_t b = after.find("%b: ");
  if (b == std::string::npos) return "";
  const size_t begin = after.find("= ", b) + 2;
  return after.substr(begin, after.find('\n', begin) - begin);
}

TEST(RemoveIdentities, NumbersThatChangeNothingGo) {
  for (const char* op : {"Add(%a, %n)", "Add(%n, %a)", "Sub(%a, %n)"}) {
    EXPECT_EQ(Rewritten(op, "0.0"), "") << op;
    EXPECT_EQ(Rewritten(op, "1.0"), op);
  }
  for (const char* op : {"Mul(%a, %n)", "Mul(%n, %a)", "Div(%a, %n)", "Pow(%a, %n)"}) {
    EXPECT_EQ(Rewritten(op, "1.0"), "") << op;
  }
}

TEST(RemoveIdentities, NumbersOnTheOtherSideStay) {
  EXPECT_EQ(Rewritten("Sub(%n, %a)", "0.0"), "Sub(%n, %a)");
  EXPECT_EQ(Rewritten("Div(%n, %a)", "1.0"), "Div(%n, %a)");
  EXPECT_EQ(Rewritten("Pow(%n, %a)", "1.0"), "Pow(%n, %a)");
}

TEST(RemoveIdentities, FactorsBecomeScales) {
  EXPECT_EQ(Rewritten("Mul(%n, %a)", "4.0"), "Scale(%a) {factor=4.0}");
  EXPECT_EQ(Rewritten("Mul(%a, %n)", "0.0"), "Scale(%a) {factor=0.0}");
  EXPECT_EQ(Rewritten("Div(%a, %n)", "4.0"), "Scale(%a) {factor=0.25}");
  EXPECT_EQ(Rewritten("Div(%a, %n)", "-0.5"), "Scale(%a) {factor=-2.0}");
}

// What has no finite reciprocal, and whole numbers, which are cut off.
TEST(RemoveIdentities, QuotientsThatAreNoProductsStay) {
  EXPECT_EQ(Rewritten("Div(%a, %n)", "0.0"), "Div(%a, %n)");
  EXPECT_EQ(Rewritten("Mul(%a, %n)", "3", "i64[4,6]"), "Mul(%a, %n)");
  EXPECT_EQ(Rewritten("Add(%a, %n)", "0", "i64[4,6]"), "Add(%a, %n)");
  EXPECT_EQ(Rewritten("Pow(%a, %n)", "1", "i64[4,6]"), "Pow(%a, %n)");
}

TEST(RemoveIdentities, PowersWithKernelsBecomeThose) {
  EXPECT_EQ(Rewritten("Pow(%a, %n)", "0.5"), "Sqrt(%a)");
  EXPECT_EQ(Rewritten("Pow(%a, %n)", "-0.5"), "Rsqrt(%a)");
  EXPECT_EQ(Rewritten("Pow(%a, %n)", "-1.0"), "Reciprocal(%a)");
  EXPECT_EQ(Rewritten("Pow(%a, %n)", "2.0"), "Pow(%a, %n)");
  EXPECT_EQ(Rewritten("Pow(%a, %n)", "0.0"), "Pow(%a, %n)");
}

// The result is larger than the value that a number stands beside.
TEST(RemoveIdentities, WhatIsRepeatedOnTheWayStays) {
  const std::string lines = R"(%x: f32[1,6] data
%n: f32[4,1] = Constant() {fill=1.0}
%a: f32[1,6] = Abs(%x)
%y: f32[4,6] = Mul(%a, %n)
return %y: result)";
  EXPECT_TRUE(Leaves(kPass, lines));
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"fill=1.0", "fill=0.5"}})));
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"Mul", "Pow"}, {"fill=1.0", "fill=0.5"}})));
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"Mul", "Add"}, {"fill=1.0", "fill=0.0"}})));
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"Mul", "Div"}, {"fill=1.0", "fill=2.0"}})));
}

TEST(RemoveIdentities, ScalesOfScalesAreOne) {
  const std::string lines = R"(%x: f32[4] data
%a: f32[4] = Scale(%x) {factor=0.5}
%b: f32[4] = Scale(%a) {factor=3.0}
%y: f32[4] = Abs(%b)
return %y: result)";
  EXPECT_EQ(After(kPass, lines),
            "%b: f32[4] = Scale(%x) {factor=1.5}\n%y: f32[4] = Abs(%b)\nreturn %y: result\n");
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"return ", "return %a: result, "}})));
}

// An op of one type to the same type, and whether it goes.
struct Move {
  const char* op;
  bool goes;
  const char* dims = "[4,4]";
};

TEST(RemoveIdentities, MovesThatMoveNothingGo) {
  const std::vector<Move> moves = {
      {"Transpose(%a) {perm=[0, 1]}", true},
      {"Transpose(%a) {perm=[1, 0]}", false},
      {"Transpose(%a)", false},
      {"Transpose(%a)", true, "[4]"},
      {"Slice(%a) {axes=[1], ends=[4], starts=[0], steps=[1]}", true},
      {"Concat(%a) {axis=0}", true},
      {"Scale(%a) {factor=1.0}", true},
      {"Scale(%a) {factor=0.0}", false},
      {"Reshape(%a) {shape=[-1, 4]}", true},
      {"Expand(%a) {shape=[4, 4]}", true},
      {"Cast(%a) {to=\"f32\"}", true},
      {"Split(%a) {axis=0, sizes=[4]}", true},
      {"Roll(%a) {axes=[0], shifts=[1]}", false},
  };
  for (const Move& move : moves) {
    const std::string lines = absl::StrCat("%x: f32", move.dims, " data\n%a: f32", move.dims,
                                           " = Abs(%x)\n%b: f32", move.dims, " = ", move.op,
                                           "\n%y: f32", move.dims, " = Abs(%b)\nreturn %y: result");
    EXPECT_EQ(!absl::StrContains(After(kPass, lines), "%b"), move.goes) << move.op;
  }
}

TEST(RemoveIdentities, OtherTypesAndOtherDimsStay) {
  EXPECT_TRUE(Leaves(kPass,
                     "%x: f32[4] data\n%y: bf16[4] = Cast(%x) {to=\"bf16\"}\n"
                     "%z: bf16[4] = Abs(%y)\nreturn %z: result"));
  EXPECT_TRUE(Leaves(kPass,
                     "%x: f32[4,6] data\n%y: f32[6,4] = Reshape(%x) {shape=[6, 4]}\n"
                     "%z: f32[6,4] = Abs(%y)\nreturn %z: result"));
}

TEST(RemoveIdentities, ViewsOfViewsAreOne) {
  const std::string lines = R"(%x: f32[4,6] data
%a: f32[4,1,6] = Unsqueeze(%x) {axes=[1]}
%b: f32[2,12] = Reshape(%a) {shape=[-1, 12]}
%y: f32[2,12] = Abs(%b)
return %y: result)";
  EXPECT_EQ(After(kPass, lines), R"(%b: f32[2,12] = Reshape(%x) {shape=[-1, 12]}
%y: f32[2,12] = Abs(%b)
return %y: result
)");
  EXPECT_EQ(After(kPass, R"(%x: f32[4,6] data
%a: f32[4,1,6] = Unsqueeze(%x) {axes=[1]}
%b: f32[4,6] = Squeeze(%a) {axes=[1]}
%y: f32[4,6] = Abs(%b)
return %y: result)"),
            "%y: f32[4,6] = Abs(%x)\nreturn %y: result\n");
  // Another dimension than the one that was added: its attributes are not those of one view.
  EXPECT_TRUE(Leaves(kPass, R"(%x: f32[4,1] data
%a: f32[1,4,1] = Unsqueeze(%x) {axes=[0]}
%b: f32[1,4] = Squeeze(%a) {axes=[2]}
%y: f32[1,4] = Abs(%b)
return %y: result)"));
}

// First [1,2,0], then [0,2,1]: dimension 1 of the result was 0.
TEST(RemoveIdentities, TransposesOfTransposesAreOne) {
  const std::string lines = R"(%x: f32[2,3,5] data
%a: f32[3,5,2] = Transpose(%x) {perm=[1, 2, 0]}
%b: f32[3,2,5] = Transpose(%a) {perm=[0, 2, 1]}
%y: f32[3,2,5] = Abs(%b)
return %y: result)";
  EXPECT_EQ(After(kPass, lines), R"(%b: f32[3,2,5] = Transpose(%x) {perm=[1, 0, 2]}
%y: f32[3,2,5] = Abs(%b)
return %y: result
)");
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"return ", "return %a: result, "}})));
  // Without perm, all dimensions change over.
  EXPECT_EQ(After(kPass, R"(%x: f32[2,3,5] data
%a: f32[5,3,2] = Transpose(%x)
%b: f32[2,5,3] = Transpose(%a) {perm=[2, 0, 1]}
%y: f32[2,5,3] = Abs(%b)
return %y: result)"),
            R"(%b: f32[2,5,3] = Transpose(%x) {perm=[0, 2, 1]}
%y: f32[2,5,3] = Abs(%b)
return %y: result
)");
}

TEST(RemoveIdentities, ViewsOfTransposedMatricesAreTransposedViews) {
  const std::string lines = R"(%x: f32[2,3,4,5] data
%a: f32[2,3,5,4] = Transpose(%x) {perm=[0, 1, 3, 2]}
%b: f32[6,5,4] = Reshape(%a) {shape=[-1, 5, 4]}
%y: f32[6,5,4] = Abs(%b)
return %y: result)";
  EXPECT_EQ(After(kPass, lines), R"(%1: f32[6,4,5] = Reshape(%x) {shape=[-1, 4, 5]}
%b: f32[6,5,4] = Transpose(%1) {perm=[0, 2, 1]}
%y: f32[6,5,4] = Abs(%b)
return %y: result
)");
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"return ", "return %a: result, "}})));
  // Behind a view of their own, the views meet.
  EXPECT_EQ(After(kPass, R"(%x: f32[6,4,5] data
%v: f32[2,3,4,5] = Reshape(%x) {shape=[-1, 3, 4, 5]}
%a: f32[2,3,5,4] = Transpose(%v) {perm=[0, 1, 3, 2]}
%b: f32[6,5,4] = Reshape(%a) {shape=[-1, 5, 4]}
%y: f32[6,5,4] = Abs(%b)
return %y: result)"),
            R"(%b: f32[6,5,4] = Transpose(%x) {perm=[0, 2, 1]}
%y: f32[6,5,4] = Abs(%b)
return %y: result
)");
}

TEST(RemoveIdentities, ViewsThatTakeMatricesApartStayBehindTheTranspose) {
  const std::string lines = R"(%x: f32[2,4,6] data
%a: f32[2,6,4] = Transpose(%x) {perm=[0, 2, 1]}
%b: f32[DIMS] = Reshape(%a) {shape=[DIMS]}
%y: f32[DIMS] = Abs(%b)
return %y: result)";
  for (const char* dims : {"4,3,4", "2,6,2,2", "12,4", "2,3,8", "2,4,6", "2,12,2"}) {
    EXPECT_TRUE(Leaves(kPass, With(lines, {{"DIMS", dims}}))) << dims;
  }
  EXPECT_FALSE(Leaves(kPass, With(lines, {{"DIMS", "1,2,6,4"}})));
  EXPECT_FALSE(Leaves(kPass, With(lines, {{"DIMS", "2,1,6,4"}})));
  // Matrices by themselves have no dimension beside them.
  EXPECT_TRUE(Leaves(kPass, R"(%x: f32[4,6] data
%a: f32[6,4] = Transpose(%x) {perm=[1, 0]}
%b: f32[1,6,4] = Reshape(%a) {shape=[1, 6, 4]}
%y: f32[1,6,4] = Abs(%b)
return %y: result)"));
  // A transpose of other dimensions.
  EXPECT_TRUE(Leaves(kPass, R"(%x: f32[3,2,4,4] data
%a: f32[2,3,4,4] = Transpose(%x) {perm=[1, 0, 2, 3]}
%b: f32[6,4,4] = Reshape(%a) {shape=[-1, 4, 4]}
%y: f32[6,4,4] = Abs(%b)
return %y: result)"));
}

TEST(RemoveIdentities, ProductsReadTransposedOperands) {
  const std::string lines = R"(%x: f32[4,4] data, %w: f32[4,4] parameter
%a: f32[4,4] = Transpose(%x) {perm=[1, 0]}
%b: f32[4,4] = Transpose(%w) {perm=[1, 0]}
%y: f32[4,4] = MatMul(%a, %b) {FLAGS}
return %y: result)";
  // Rows of the first operand stay rows.
  EXPECT_EQ(After(kPass, With(lines, {{" {FLAGS}", ""}})),
            "%a: f32[4,4] = Transpose(%x) {perm=[1, 0]}\n"
            "%y: f32[4,4] = MatMul(%a, %w) {transpose_w=1}\nreturn %y: result\n");
  EXPECT_EQ(After(kPass, With(lines, {{"FLAGS", "transpose_x=1, transpose_w=1"}})),
            "%y: f32[4,4] = MatMul(%x, %w)\nreturn %y: result\n");
  EXPECT_EQ(After(kPass, With(lines, {{"FLAGS", "transpose_x=1"}})),
            "%y: f32[4,4] = MatMul(%x, %w) {transpose_w=1}\nreturn %y: result\n");
  EXPECT_EQ(After(kPass, With(lines, {{"FLAGS", "transpose_w=1"}})),
            "%a: f32[4,4] = Transpose(%x) {perm=[1, 0]}\n"
            "%y: f32[4,4] = MatMul(%a, %w)\nreturn %y: result\n");
}

TEST(RemoveIdentities, ProductsReadMatricesTransposedAndNothingElse) {
  const std::string lines = R"(%x: f32[3,3,3] data, %w: f32[3,3,3] data
%b: f32[3,3,3] = Transpose(%w) {perm=[PERM]}
%y: f32[3,3,3] = MatMul(%x, %b)
return %y: result)";
  EXPECT_EQ(After(kPass, With(lines, {{"PERM", "0, 2, 1"}})),
            "%y: f32[3,3,3] = MatMul(%x, %w) {transpose_w=1}\nreturn %y: result\n");
  for (const char* perm : {"1, 0, 2", "2, 1, 0", "1, 2, 0", "2, 0, 1"}) {
    EXPECT_TRUE(Leaves(kPass, With(lines, {{"PERM", perm}}))) << perm;
  }
}

TEST(RemoveIdentities, ARowThatIsKnownIsASlice) {
  const std::string lines = R"(%x: f32[3,4] data
%i: i64[] = Constant() {values=[INDEX]}
%y: f32[3] = Gather(%x, %i) {axis=1}
return %y: result)";
  const std::vector<std::pair<std::string, std::string>> starts = {
      {"0", "ends=[1], starts=[0]"}, {"3", "ends=[4], starts=[3]"}, {"-4", "ends=[1], starts=[0]"}};
  for (const auto& [index, range] : starts) {
    EXPECT_EQ(After(kPass, With(lines, {{"INDEX", index}})),
              absl::StrCat("%1: f32[3,1] = Slice(%x) {axes=[1], ", range,
                           ", steps=[1]}\n%y: f32[3] = Squeeze(%1) {axes=[1]}\n"
                           "return %y: result\n"));
  }
  EXPECT_TRUE(Leaves(kPass, R"(%x: f32[3,4] data
%i: i64[2] = Constant() {values=[1, 2]}
%y: f32[3,2] = Gather(%x, %i) {axis=1}
return %y: result)"));
  EXPECT_TRUE(Leaves(kPass, R"(%x: f32[3,4] data
%i: i64[1,1] = Constant() {values=[1]}
%y: f32[3,1,1] = Gather(%x, %i) {axis=1}
return %y: result)"));
}

TEST(RemoveIdentities, TheBackBeforeTheFrontIsRolled) {
  const std::string lines = R"(%x: f32[2,5] data
%a: f32[2,3] = Slice(%x) {axes=[1], ends=[5], starts=[2], steps=[1]}
%b: f32[2,2] = Slice(%x) {axes=[1], ends=[2], starts=[0], steps=[1]}
%y: f32[2,5] = Concat(%a, %b) {axis=1}
return %y: result)";
  EXPECT_EQ(After(kPass, lines),
            "%y: f32[2,5] = Roll(%x) {axes=[1], shifts=[-2]}\nreturn %y: result\n");
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"(%a, %b)", "(%b, %a)"}})));
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"starts=[2]", "starts=[1]"}, {"ends=[5]", "ends=[4]"}})));
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"starts=[0]", "starts=[1]"}, {"ends=[2]", "ends=[3]"}})));
  EXPECT_TRUE(Leaves(kPass, With(lines, {{"ends=[2], starts=[0], steps=[1]",
                                          "ends=[3], starts=[0], steps=[2]"}})));
  EXPECT_TRUE(
      Leaves(kPass, With(lines, {{"%x: f32[2,5] data",
                                  "%x: f32[2,5] data, "
                                  "%z: f32[2,5] data"},
                                 {"%b: f32[2,2] = Slice(%x)", "%b: f32[2,2] = Slice(%z)"}})));
}

TEST(RemoveIdentities, WhatIsRolledTwiceAlongADimensionIsRolledTwice) {
  const std::string lines = R"(%x: f32[5,5] data
%r: f32[5,5] = Roll(%x) {axes=[1], shifts=[1]}
%a: f32[5,3] = Slice(%r) {axes=[1], ends=[5], starts=[2], steps=[1]}
%b: f32[5,2] = Slice(%r) {axes=[1], ends=[2], starts=[0], steps=[1]}
%y: f32[5,5] = Concat(%a, %b) {axis=1}
return %y: result)";
  EXPECT_EQ(After(kPass, lines), R"(%r: f32[5,5] = Roll(%x) {axes=[1], shifts=[1]}
%y: f32[5,5] = Roll(%r) {axes=[1], shifts=[-2]}
return %y: result
)");
  EXPECT_EQ(After(kPass, With(lines, {{"Roll(%x) {axes=[1]", "Roll(%x) {axes=[0]"}})),
            "%y: f32[5,5] = Roll(%x) {axes=[0, 1], shifts=[1, -2]}\nreturn %y: result\n");
  // Where the roll is wanted by itself, too.
  EXPECT_EQ(After(kPass, With(lines, {{"Roll(%x) {axes=[1]", "Roll(%x) {axes=[0]"},
                                      {"return ", "return %r: result, "}})),
            R"(%r: f32[5,5] = Roll(%x) {axes=[0], shifts=[1]}
%y: f32[5,5] = Roll(%r) {axes=[1], shifts=[-2]}
return %r: result, %y: result
)");
}

TEST(RemoveIdentities, DropoutOfNothingGoes) {
  constexpr char kDropout[] = R"(%x: f32[4,3] data
%d: f32[4,3], %m: bool[4,3] = Dropout(%x) {ratio=0.0}
%y: f32[4,3] = Exp(%d)
return %y: result)";
  EXPECT_EQ(After("remove-identities", kDropout), "%y: f32[4,3] = Exp(%x)\nreturn %y: result\n");
  ExpectLeft(
      "remove-identities", kDropout,
      {{{"ratio=0.0", "ratio=0.5"}}, {{"return %y: result", "return %y: result, %m: result"}}});
}

}  // namespace
}  // namespace remove_identities_test_cc
}  // namespace orrery::transforms
