#include "transforms/training/pad_dimensions.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/training/dimension_classes.h"
#include "transforms/training/padding_rule.h"

// What is padded together, and what is not. That it computes the same is held by
// tests/semantics/padding_test.cc.

namespace orrery::transforms {
namespace pad_dimensions_test_cc {
namespace {

ir::Function Parsed(absl::string_view inputs, absl::string_view ops) {
  const std::string text = absl::StrCat("func @f (\n", inputs, "\n) {\n", ops, "\n}\n");
  const auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status() << "\n" << text;
  return *function;
}

std::string PaddedBy(const ir::Function& function, int64_t multiple) {
  const PaddedFunction padded = PadDimensions(function, {.ranks = multiple}).value();
  EXPECT_TRUE(ir::Verify(padded.function).ok()) << ir::Verify(padded.function);
  if (padded.padded.empty()) {
    EXPECT_EQ(ir::Print(padded.function), ir::Print(function));
  }
  return ToString(padded.padded);
}

constexpr char kInputs[] =
    "  %x: f32[6,8] data,\n  %w: f32[8,10] parameter,\n  %v: f32[10,8] parameter";

constexpr char kOneWeight[] = "  %x: f32[6,8] data,\n  %w: f32[8,10] parameter";

TEST(PadDimensions, WidthBetweenTwoProducts) {
  const ir::Function mlp = Parsed(kInputs, R"(  %h: f32[6,10] = MatMul(%x, %w)
  %a: f32[6,10] = Gelu(%h)
  %y: f32[6,8] = MatMul(%a, %v)
  return %y: result)");
  EXPECT_EQ(PaddedBy(mlp, 1), "");
  EXPECT_EQ(PaddedBy(mlp, 2), "");
  EXPECT_EQ(PaddedBy(mlp, 3), "width 10 -> 12, width 8 -> 9");
  EXPECT_EQ(PaddedBy(mlp, 4), "width 10 -> 12");
  EXPECT_EQ(PaddedBy(mlp, 20), "width 10 -> 20");
  EXPECT_EQ(PaddedBy(mlp, 21), "");
}

TEST(PadDimensions, NotWhatIsNormalizedOrAveraged) {
  for (const char* op : {"LayerNorm(%h, %g, %g) {axis=1}", "RmsNorm(%h, %g) {axis=1}"}) {
    SCOPED_TRACE(op);
    const bool layer = op[0] == 'L';
    const ir::Function norm =
        Parsed(absl::StrCat(kInputs, ",\n  %g: f32[10] parameter"),
               absl::StrCat("  %h: f32[6,10] = MatMul(%x, %w)\n  %n: f32[6,10], ",
                            layer ? "%m: f32[6,1], %r: f32[6,1] = " : "%r: f32[6] = ", op,
                            "\n  %y: f32[6,8] = MatMul(%n, %v)\n  return %y: result"));
    EXPECT_EQ(PaddedBy(norm, 3), "width 8 -> 9");
  }
  for (const char* op : {"ReduceMean(%h)", "ReduceMax(%h)"}) {
    SCOPED_TRACE(op);
    const ir::Function mean =
        Parsed(kOneWeight, absl::StrCat("  %h: f32[6,10] = MatMul(%x, %w)\n  %m: f32[6] = ", op,
                                        " {axes=[1]}\n  return %m: result"));
    EXPECT_EQ(PaddedBy(mean, 3), "");
  }
}

// Zeros add nothing to a sum. Behind an exponential there are ones.
TEST(PadDimensions, SumsOfZerosAlone) {
  const auto sum = [](absl::string_view before) {
    return Parsed(kOneWeight,
                  absl::StrCat("  %h: f32[6,10] = MatMul(%x, %w)\n  %e: f32[6,10] = ", before,
                               "(%h)\n  %s: f32[6] = ReduceSum(%e) {axes=[1]}\n  return "
                               "%s: result"));
  };
  EXPECT_EQ(PaddedBy(sum("Relu"), 3), "width 10 -> 12");
  EXPECT_EQ(PaddedBy(sum("Exp"), 3), "");
}

// One weight is zero behind the end, the other does not care; without a weight nobody knows.
TEST(PadDimensions, ProductsWithAWeightOnOneSide) {
  const ir::Function both = Parsed(kOneWeight, R"(  %h: f32[6,10] = MatMul(%x, %w)
  %e: f32[6,10] = Exp(%h)
  %p: f32[6,6] = MatMul(%e, %e) {transpose_w=1}
  return %p: result)");
  EXPECT_EQ(PaddedBy(both, 3), "");
  const ir::Function weight = Parsed(kInputs, R"(  %h: f32[6,10] = MatMul(%x, %w)
  %e: f32[6,10] = Exp(%h)
  %p: f32[6,8] = MatMul(%e, %v)
  return %p: result)");
  EXPECT_EQ(PaddedBy(weight, 4), "width 10 -> 12");
}

TEST(PadDimensions, PartsOfASplitTogether) {
  const ir::Function split =
      Parsed("  %x: f32[6,8] data,\n  %w: f32[8,10] parameter,\n  %v: f32[5,8] parameter",
             R"(  %h: f32[6,10] = MatMul(%x, %w)
  %a: f32[6,5], %b: f32[6,5] = Split(%h) {axis=1, sizes=[5, 5]}
  %m: f32[6,5] = SwiGlu(%a, %b)
  %y: f32[6,8] = MatMul(%m, %v)
  return %y: result)");
  EXPECT_EQ(PaddedBy(split, 2), "width 5 -> 6");
  const ir::Function padded = PadDimensions(split, {.ranks = 2})->function;
  EXPECT_EQ(ir::ToString(padded.type(padded.inputs()[1].value), padded.mesh()), "f32[8,12]");
}

// What stands in an attribute that nobody changes stays.
TEST(PadDimensions, NotWhatAnOpCannotTake) {
  const ir::Function slice = Parsed(kOneWeight, R"(  %h: f32[6,10] = MatMul(%x, %w)
  %s: f32[6,4] = Slice(%h) {axes=[1], ends=[4], starts=[0], steps=[1]}
  return %s: result)");
  EXPECT_EQ(PaddedBy(slice, 3), "");
  const ir::Function merged = Parsed(kOneWeight, R"(  %h: f32[6,10] = MatMul(%x, %w)
  %r: f32[60] = Reshape(%h) {shape=[60]}
  return %r: result)");
  EXPECT_EQ(PaddedBy(merged, 3), "");
}

TEST(DimensionClasses, TieHeadsToTheirColumns) {
  const ir::Function function =
      Parsed("  %x: f32[2,3,8] data,\n  %q: f32[8,24] parameter,\n  %k: f32[8,8] parameter",
             R"(  %a: f32[2,3,24] = MatMul(%x, %q)
  %b: f32[2,3,8] = MatMul(%x, %k)
  %y: f32[2,3,24], %p: f32[2,6,3,3] = Attention(%a, %b, %b) {heads=6, kv_heads=2}
  return %y: result)");
  const DimensionClasses classes(function);
  const auto of = [&](size_t input, size_t dim) {
    return classes.Of(function.inputs()[input].value, dim);
  };
  ASSERT_EQ(of(1, 1), of(2, 1));
  const DimensionClass& heads = classes.all()[static_cast<size_t>(of(1, 1))];
  EXPECT_EQ(heads.kind, DimensionKind::kHeads);
  EXPECT_EQ(heads.unit, 2);
  EXPECT_EQ(heads.count, 6);
  EXPECT_FALSE(heads.fixed);
  EXPECT_TRUE(classes.all()[static_cast<size_t>(of(0, 0))].fixed);
  EXPECT_NE(of(0, 0), of(0, 1));
  EXPECT_EQ(PaddedBy(function, 4), "heads 6 -> 12");
  EXPECT_EQ(PaddedBy(function, 5), "");  // 30
}

TEST(PaddingRule, IsTheShardingRuleWithoutActivations) {
  const ir::Function function =
      Parsed(kInputs, R"(  %h: f32[6,10] = Linear(%x, %w) {activation="relu"}
  %y: f32[6,8] = MatMul(%h, %v)
  return %y: result)");
  const ir::ShardingRule rule = PaddingRule(function, function.order()[0]);
  ASSERT_EQ(rule.operands.size(), 2u);
  EXPECT_NE(rule.operands[0][1], ir::kNoFactor);
  EXPECT_EQ(rule.operands[0][1], rule.operands[1][0]);
  EXPECT_TRUE(NeedsNoZeros(ir::OpKind::kGather));
  EXPECT_FALSE(NeedsNoZeros(ir::OpKind::kMatMul));
}

}  // namespace
}  // namespace pad_dimensions_test_cc
}  // namespace orrery::transforms
