#include "ir/rebuild.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/check.h"

namespace orrery::ir {
namespace rebuild_test_cc {
namespace {

Function Parsed(const std::string& text) {
  auto function = ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

std::string Text(const absl::StatusOr<Function>& function) {
  return function.ok() ? absl::StrCat("\n", Print(*function))
                       : std::string(function.status().message());
}

TensorType HalfBatch(const Input& input, const TensorType& type) {
  TensorType half = type;
  if (input.role == InputRole::kData) half.dims[0] /= 2;
  return half;
}

constexpr char kShared[] = R"(
func @f mesh(dp=2) (
  %x: f32[8@dp,4] data,
  %w: f32[4,4] parameter,
  %g: f32[4,4] accumulator
) {
  %3: f32[8@dp,4] = MatMul(%x, %w) {transpose_w=1}
  %dx: f32[8@dp,4], %dw: f32[4,4] partial(dp) = MatMulGrad(%x, %w, %3) {transpose_w=1}
  return %dw: gradient(%w), %3: result, %g: accumulator(%g)
}
)";

TEST(RebuildWithInputs, WithoutChangeIsACopy) {
  EXPECT_EQ(Text(RebuildWithInputs(Parsed(kShared), {})), Text(Parsed(kShared)));
  const auto mlp = Mlp({.layers = 3, .dim = 8, .batch = 4});
  ASSERT_TRUE(mlp.ok());
  EXPECT_EQ(Text(RebuildWithInputs(*mlp, {})), Text(mlp));
}

TEST(RebuildWithInputs, InfersTypesAndShardings) {
  EXPECT_EQ(Text(RebuildWithInputs(Parsed(kShared), {.input = HalfBatch})), R"(
func @f mesh(dp=2) (
  %x: f32[4@dp,4] data,
  %w: f32[4,4] parameter,
  %g: f32[4,4] accumulator
) {
  %3: f32[4@dp,4] = MatMul(%x, %w) {transpose_w=1}
  %dx: f32[4@dp,4], %dw: f32[4,4] partial(dp) = MatMulGrad(%x, %w, %3) {transpose_w=1}
  return %dw: gradient(%w), %3: result, %g: accumulator(%g)
}
)");
}

constexpr char kConstant[] = R"(
func @f (
  %x: f32[8] data,
  %z: f32[8] data
) {
  %c: f32[] = Constant() {values=[0.5]}
  %y: f32[8] = Mul(%x, %c)
  %l: f32[8] = Loss(%y, %z) {batch=8}
  return %l: loss
}
)";

TEST(RebuildWithInputs, ChangesWhatHasNoInference) {
  const Rebuild to_f16 = {.input =
                              [](const Input&, TensorType type) {
                                type.dtype = DType::kF16;
                                return type;
                              },
                          .uninferred =
                              [](OpId op, TensorType type) {
                                EXPECT_EQ(op, OpId(0));
                                type.dtype = DType::kF16;
                                return type;
                              }};
  EXPECT_EQ(Text(RebuildWithInputs(Parsed(kConstant), to_f16)), R"(
func @f (
  %x: f16[8] data,
  %z: f16[8] data
) {
  %c: f16[] = Constant() {values=[0.5]}
  %y: f16[8] = Mul(%x, %c)
  %l: f16[8] = Loss(%y, %z) {batch=8}
  return %l: loss
}
)");
}

TEST(RebuildWithInputs, ChangesAttributes) {
  const Rebuild change = {
      .input = HalfBatch,
      .attributes = [](OpKind kind, const AttributeSet&) -> std::optional<AttributeSet> {
        if (kind != OpKind::kLoss) return std::nullopt;
        return AttributeSet{{"batch", int64_t{4}}};
      }};
  EXPECT_EQ(Text(RebuildWithInputs(Parsed(kConstant), change)), R"(
func @f (
  %x: f32[4] data,
  %z: f32[4] data
) {
  %c: f32[] = Constant() {values=[0.5]}
  %y: f32[4] = Mul(%x, %c)
  %l: f32[4] = Loss(%y, %z) {batch=4}
  return %l: loss
}
)");
}

TEST(RebuildWithInputs, FollowsTheOrder) {
  Function function = Parsed(R"(
func @f (%x: f32[8] data) {
  %a: f32[8] = Relu(%x)
  %b: f32[8] = Relu(%x)
  %y: f32[8] = Add(%a, %b)
  return %a: result, %b: result, %y: result
})");
  function.SetOrder({OpId(1), OpId(0)});
  function.SetOutputs({{.value = function.result(OpId(1)), .role = {}, .of = {}}});
  const auto copy = RebuildWithInputs(function, {});
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->op_limit(), 2);
  EXPECT_EQ(copy->value_name(copy->result(OpId(0))), "b");
}

TEST(RebuildWithInputs, ErrorNamesTheOp) {
  const auto grow = [](const Input& input, TensorType type) {
    if (input.role == InputRole::kData) type.dims.back() = 6;
    return type;
  };
  EXPECT_EQ(Text(RebuildWithInputs(Parsed(kShared), {.input = grow})),
            "f: MatMul: inner dimensions differ; got 6 and 4");
  const auto mlp = Mlp({.layers = 1, .dim = 8, .batch = 4});
  ASSERT_TRUE(mlp.ok());
  EXPECT_EQ(Text(RebuildWithInputs(*mlp, {.input = grow})),
            "mlp: MatMul 'y0': inner dimensions differ; got 6 and 8");
}

}  // namespace
}  // namespace rebuild_test_cc
}  // namespace orrery::ir
