#include "transforms/pass/rewriter.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"

// What a rule is told about a function, and what becomes of what it replaces.

namespace orrery::transforms {
namespace rewriter_test_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

Function Parsed(const std::string& inputs, const std::string& ops) {
  const auto function = ir::ParseFunction(absl::StrCat("func @f (", inputs, ") {\n", ops, "}"));
  EXPECT_TRUE(function.ok()) << function.status();
  return function.value_or(Function());
}

std::string Ops(const Function& function) {
  EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
  const std::string text = ir::Print(function);
  const size_t begin = text.find(") {\n") + 4;
  return text.substr(begin, text.size() - begin - 2);
}

std::string NameOf(const Rewriter& r, OpId op) {
  return std::string(r.function().value_name(r.result(op)));
}

// Replaces each Neg by what it negates, or by an op of that kind.
absl::StatusOr<bool> ReplaceNegs(Function& function, std::optional<OpKind> kind) {
  return Rewrite(function, [&](Rewriter& r, OpId op) {
    if (r.kind(op) != OpKind::kNeg) return;
    const ValueId x = r.operand(op, 0);
    if (kind.has_value()) return r.Replace(r.result(op), r.Op(*kind, {x}));
    if (r.MayReplace(r.result(op), x)) r.Replace(r.result(op), x);
  });
}

TEST(Rewrite, PutsNewOpsWhereTheOldOnesStoodUnderTheirNames) {
  Function function = Parsed("%x: f32[2] data", R"(  %a: f32[2] = Exp(%x)
  %b: f32[2] = Neg(%a)
  %c: f32[2] = Add(%b, %a)
  %d: f32[2] = Neg(%c)
  return %d: result, %b: result
)");
  EXPECT_TRUE(ReplaceNegs(function, OpKind::kAbs).value());
  EXPECT_EQ(Ops(function), R"(  %a: f32[2] = Exp(%x)
  %b: f32[2] = Abs(%a)
  %c: f32[2] = Add(%b, %a)
  %d: f32[2] = Abs(%c)
  return %d: result, %b: result
)");
}

TEST(Rewrite, DropsWhatNothingUsesAnyMore) {
  Function function = Parsed("%x: f32[2] data, %z: f32[2] data", R"(  %a: f32[2] = Exp(%x)
  %b: f32[2] = Abs(%z)
  %c: f32[2] = Sub(%a, %b)
  %d: f32[2] = Log(%c)
  %y: f32[2] = Mul(%d, %b)
  return %y: result
)");
  const auto changed = Rewrite(function, [](Rewriter& r, OpId op) {
    if (r.kind(op) == OpKind::kLog) r.Replace(r.result(op), r.function().inputs()[0].value);
    if (r.kind(op) != OpKind::kMul) return;
    // %d, %c and %a are gone already, and so is their use of %b.
    EXPECT_EQ(r.uses(r.operand(op, 0)), 1);
    EXPECT_EQ(r.uses(r.operand(op, 1)), 1);
  });
  EXPECT_TRUE(changed.value());
  EXPECT_EQ(Ops(function),
            "  %b: f32[2] = Abs(%z)\n  %y: f32[2] = Mul(%x, %b)\n  return %y: result\n");
}

TEST(Rewrite, SaysThatNothingChanged) {
  Function function = Parsed("%x: f32[2] data", R"(  %a: f32[2] = Exp(%x)
  return %a: result
)");
  const std::string before = ir::Print(function);
  EXPECT_FALSE(ReplaceNegs(function, OpKind::kAbs).value());
  // What a rule appends and does not use goes again.
  EXPECT_FALSE(Rewrite(function, [](Rewriter& r, OpId op) {
                 r.Op(OpKind::kAbs, {r.operand(op, 0)});
               }).value());
  EXPECT_EQ(ir::Print(function), before);
}

TEST(Rewrite, ReturnsTheErrorOfAnOpThatCannotBe) {
  Function function = Parsed("%x: f32[2] data, %z: f32[3] data", R"(  %a: f32[2] = Exp(%x)
  %b: f32[3] = Exp(%z)
  return %a: result, %b: result
)");
  const std::string before = ir::Print(function);
  int visited = 0;
  const auto changed = Rewrite(function, [&](Rewriter& r, OpId op) {
    ++visited;
    const ValueId z = r.function().inputs()[1].value;
    const ValueId sum = r.Op(OpKind::kAdd, {r.operand(op, 0), z});
    EXPECT_FALSE(sum.valid());
    r.Replace(r.result(op), sum);  // does nothing
  });
  EXPECT_FALSE(changed.ok());
  EXPECT_EQ(visited, 1);
  EXPECT_EQ(ir::Print(function), before);
}

TEST(Rewrite, LeavesAFunctionOverAMesh) {
  auto function = ir::ParseFunction(
      "func @f mesh(dp=2) (%x: f32[2] data) {\n %y: f32[2] = Neg(%x)\n return %y: result\n}");
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_FALSE(ReplaceNegs(*function, OpKind::kAbs).value());
}

// Two outputs must not become one, nor an output an input.
TEST(Rewriter, ReplacesNoOutputByAnother) {
  Function function = Parsed("%x: f32[2] data", R"(  %a: f32[2] = Exp(%x)
  %b: f32[2] = Neg(%a)
  %c: f32[2] = Neg(%b)
  %d: f32[2] = Neg(%x)
  return %b: result, %c: result, %d: result
)");
  EXPECT_TRUE(ReplaceNegs(function, std::nullopt).value());
  EXPECT_EQ(Ops(function), R"(  %b: f32[2] = Exp(%x)
  %c: f32[2] = Neg(%b)
  %d: f32[2] = Neg(%x)
  return %b: result, %c: result, %d: result
)");
}

// The name of an output stays; a value that has a name keeps it where it stands for another.
TEST(Rewriter, KeepsNames) {
  Function function = Parsed("%x: f32[2] data", R"(  %a: f32[2] = Exp(%x)
  %b: f32[2] = Neg(%a)
  %y: f32[2] = Log(%b)
  return %y: result
)");
  EXPECT_TRUE(ReplaceNegs(function, std::nullopt).value());
  EXPECT_EQ(Ops(function), "  %a: f32[2] = Exp(%x)\n  %y: f32[2] = Log(%a)\n  return %y: result\n");
}

TEST(Rewriter, CountsUsesByOpsAndOutputs) {
  Function function = Parsed("%x: f32[4] data", R"(  %a: f32[4] = Exp(%x)
  %b: f32[4] = Mul(%a, %a)
  %p: f32[2], %q: f32[2] = Split(%b) {axis=0, sizes=[2, 2]}
  %c: f32[2] = Add(%p, %q)
  return %a: result, %c: result
)");
  std::string text;
  const auto changed = Rewrite(function, [&](Rewriter& r, OpId op) {
    const ValueId x = r.operand(op, 0);
    absl::StrAppend(&text, NameOf(r, op), ": ", r.uses(x), r.is_returned(x) ? " returned" : "",
                    r.MadeBy(x, OpKind::kExp).valid() ? " exp" : "",
                    r.MadeOnlyFor(x, OpKind::kExp).valid() ? " only" : "",
                    r.MadeOnlyFor(x, OpKind::kExp, 3).valid() ? " thrice" : "",
                    r.MadeOnlyFor(x, OpKind::kMul).valid() ? " mul" : "",
                    r.MadeOnlyFor(r.operand(op, r.operand_count(op) - 1), OpKind::kSplit).valid()
                        ? " split"
                        : "",
                    "\n");
    if (r.kind(op) != OpKind::kAdd) return;
    EXPECT_TRUE(r.MadeBy(r.operand(op, 0), OpKind::kSplit).valid());
    EXPECT_FALSE(r.MadeBy(r.operand(op, 1), OpKind::kSplit).valid());  // its second result
  });
  EXPECT_FALSE(changed.value());
  EXPECT_EQ(text, "a: 1\nb: 3 returned exp thrice\np: 1 mul\nc: 1\n");
}

TEST(Rewriter, KnowsWhatIsThereBeforeTheOpInHand) {
  Function function = Parsed("%x: f32[2] data", R"(  %a: f32[2] = Exp(%x)
  %b: f32[2] = Log(%a)
  return %b: result
)");
  const auto changed = Rewrite(function, [](Rewriter& r, OpId op) {
    const ValueId x = r.function().inputs()[0].value, b = r.function().outputs()[0].value;
    const ValueId a = r.operand(r.producer(b), 0);
    EXPECT_TRUE(r.is_defined(x));
    EXPECT_EQ(r.is_defined(a), r.kind(op) == OpKind::kLog);
    EXPECT_FALSE(r.is_defined(b));
    EXPECT_TRUE(r.is_defined(r.Op(OpKind::kAbs, {x})));
  });
  EXPECT_TRUE(changed.ok());
}

TEST(Rewriter, ReadsConstants) {
  Function function = Parsed("%x: f32[2] data", R"(  %fill: f32[2] = Constant() {fill=2.5}
  %one: f32[1] = Constant() {values=[1.5]}
  %two: f32[2] = Constant() {values=[1.5, 1.5]}
  %unknown: f32[1] = Constant()
  %a: f32[2] = Mul(%x, %fill)
  %b: f32[2] = Mul(%a, %one)
  %c: f32[2] = Mul(%b, %two)
  %d: f32[2] = Mul(%c, %unknown)
  return %d: result
)");
  std::string text;
  const auto changed = Rewrite(function, [&](Rewriter& r, OpId op) {
    if (r.kind(op) != OpKind::kMul) return;
    const ValueId value = r.operand(op, 1);
    const std::optional<double> number = r.Number(value);
    absl::StrAppend(&text, NameOf(r, r.producer(value)), ":",
                    number.has_value() ? absl::StrCat(" ", *number) : "");
    for (const int64_t limit : {1, 2}) {
      const auto tensor = r.Known(value, limit);
      if (!tensor.has_value()) continue;
      absl::StrAppend(&text, " [", tensor->Number(0), " x", tensor->size(), "]");
    }
    absl::StrAppend(&text, "\n");
    EXPECT_FALSE(r.Number(r.operand(op, 0)).has_value());
    EXPECT_FALSE(r.Known(r.operand(op, 0), 9).has_value());
  });
  EXPECT_FALSE(changed.value());
  EXPECT_EQ(text, "fill: 2.5 [2.5 x2]\none: 1.5 [1.5 x1] [1.5 x1]\ntwo: [1.5 x2]\nunknown:\n");
}

TEST(Rewriter, WritesConstants) {
  Function function = Parsed("%x: f32[2] data, %i: i64[2] data", R"(  %a: f32[2] = Neg(%x)
  %b: i64[2] = Neg(%i)
  %c: f32[2] = Abs(%x)
  return %a: result, %b: result, %c: result
)");
  const auto changed = Rewrite(function, [](Rewriter& r, OpId op) {
    const ValueId old = r.result(op);
    if (r.kind(op) == OpKind::kNeg) return r.Replace(old, r.Filled(r.type(old), 3));
    ir::Tensor tensor(ir::DType::kF32, {2});
    tensor.SetNumber(1, 0.5);
    if (r.kind(op) == OpKind::kAbs) r.Replace(old, r.Constant(tensor));
  });
  EXPECT_TRUE(changed.value());
  EXPECT_EQ(Ops(function), R"(  %a: f32[2] = Constant() {fill=3.0}
  %b: i64[2] = Constant() {fill=3}
  %c: f32[2] = Constant() {values=[0.0, 0.5]}
  return %a: result, %b: result, %c: result
)");
}

}  // namespace
}  // namespace rewriter_test_cc
}  // namespace orrery::transforms
