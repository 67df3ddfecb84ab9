#include "ir/builder.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"

namespace orrery::ir {
namespace builder_test_cc {
namespace {

const TensorType kSquare{DType::kF32, {4, 4}, {}};

TEST(Builder, InfersTypes) {
  Builder b("layer");
  const ValueId x = b.Data("x", {DType::kF32, {64, 16}, {}});
  const ValueId w = b.Parameter("w", {DType::kF32, {16, 8}, {}});
  b.Return(b.Relu(b.MatMul(x, w, "y"), "a"));
  const auto layer = std::move(b).Finalize();
  ASSERT_TRUE(layer.ok()) << layer.status();
  EXPECT_TRUE(Verify(*layer).ok());
  EXPECT_EQ(Print(*layer), R"(func @layer (
  %x: f32[64,16] data,
  %w: f32[16,8] parameter
) {
  %y: f32[64,8] = MatMul(%x, %w)
  %a: f32[64,8] = Relu(%y)
  return %a: result
}
)");
}

TEST(Builder, InfersShardings) {
  Builder b("layer", Mesh({{"hp", 2}}));
  TensorType columns = kSquare;
  columns.sharding.Set(1, 2, AxisList(0));
  const ValueId y = b.MatMul(b.Data("x", kSquare), b.Parameter("w", columns));
  EXPECT_EQ(b.type(y), columns);
}

TEST(Builder, ReportsTheFirstError) {
  Builder b("mlp");
  const ValueId x = b.Data("x", {DType::kF32, {8, 64}, {}});
  const ValueId w = b.Parameter("w", {DType::kF32, {96, 8}, {}});
  const ValueId y = b.MatMul(x, w, "y0");
  EXPECT_FALSE(y.valid());
  EXPECT_FALSE(b.status().ok());
  // All that follows does nothing, whatever it is given.
  EXPECT_FALSE(b.Relu(y).valid());
  EXPECT_FALSE(b.Add(y, x).valid());
  EXPECT_FALSE(b.MatMulGrad(x, y, y).first.valid());
  EXPECT_FALSE(b.Data("z", kSquare).valid());
  EXPECT_EQ(b.type(y).dims.size(), 0u);
  b.Return(y);
  b.Fail(absl::InternalError("a later one"));
  EXPECT_EQ(std::move(b).Finalize().status(),
            absl::InvalidArgumentError("mlp: MatMul 'y0': inner dimensions differ; got 64 and 96"));
}

TEST(Builder, NamesWhatHasNoNameByItsOp) {
  Builder b("f");
  const ValueId x = b.Data("x", kSquare), y = b.Data("y", {DType::kF32, {3}, {}});
  b.Add(x, y);
  EXPECT_EQ(b.status().message(), "f: Add: shapes [4,4] and [3] do not broadcast");
}

TEST(Builder, RefusesEmptyInputs) {
  Builder b("f");
  EXPECT_FALSE(b.Data("x", {DType::kF32, {4, 0}, {}}).valid());
  EXPECT_EQ(b.status().message(),
            "f: input 'x' is f32[4,0]; wanted at most 30 dimensions of at least 1 "
            "and at most 2^60 bytes");
}

TEST(Builder, KeepsAnErrorThatACallerFinds) {
  Builder b("f");
  b.Fail(absl::NotFoundError("no such node"));
  EXPECT_EQ(std::move(b).Finalize().status(), absl::NotFoundError("no such node"));
}

TEST(BuilderDeathTest, WantsValuesThatItMade) {
  Builder b("f");
  const ValueId x = b.Data("x", kSquare);
  EXPECT_DEATH(b.Add(x, ValueId(), "y"), "CHECK failed.*f: Add 'y': operand value<none>");
}

TEST(Builder, ContinuesAFunction) {
  Builder first("f");
  first.Return(first.Relu(first.Data("x", kSquare), "y"));
  Builder b(std::move(first).Finalize().value());
  const OpId op = b.TypedOp(OpKind::kReceive, {}, kSquare, "r", {{"from", int64_t{0}}});
  b.Return(b.Add(b.function().outputs()[0].value, b.function().result(op), "z"));
  const auto function = std::move(b).Finalize();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_TRUE(Verify(*function).ok()) << Verify(*function);
  EXPECT_EQ(function->order().size(), 3u);
}

// Differentiates `op` of `b`, whose result has the gradient `dy`, for all operands.
std::vector<ValueId> Differentiate(Builder& b, OpId op, ValueId dy) {
  const IdTable<ValueId, char> needed(b.function().value_limit(), 1);
  GradientContext context(b, op, std::span(&dy, 1), needed);
  const absl::Status status = b.function().info(op).gradient(context);
  EXPECT_TRUE(status.ok()) << status;
  return context.operand_gradients();
}

TEST(GradientContext, NamesGradientsAfterTheirOperands) {
  Builder b("f");
  const ValueId x = b.Data("x", kSquare), w = b.Parameter("w", kSquare), dy = b.Data("dy", kSquare);
  const ValueId operands[] = {x, w};
  const OpId op = b.Ops(OpKind::kMatMul, operands);
  const auto gradients = Differentiate(b, op, dy);
  EXPECT_EQ(b.function().value_name(gradients[0]), "dx");
  EXPECT_EQ(b.function().value_name(gradients[1]), "dw");
  const auto again = Differentiate(b, op, dy);  // the names are taken
  EXPECT_EQ(b.function().value_name(again[0]), "");
  EXPECT_EQ(b.function().value_name(again[1]), "");
}

TEST(GradientContext, DoesNotNameWhatHasNoName) {
  Builder b("f");
  const ValueId x = b.Data("", kSquare), dy = b.Data("dy", kSquare);
  const auto gradients = Differentiate(b, b.Ops(OpKind::kRelu, std::span(&x, 1)), dy);
  EXPECT_EQ(b.function().value_name(gradients[0]), "");
}

// Regression: both gradients of MatMul(x, x) were called dx.
TEST(GradientContext, NamesTwoGradientsOfOneValueOnce) {
  Builder b("f");
  const ValueId x = b.Data("x", kSquare), dy = b.Data("dy", kSquare);
  const ValueId operands[] = {x, x};
  for (const ValueId gradient : Differentiate(b, b.Ops(OpKind::kMatMul, operands), dy)) {
    b.Return(gradient);
  }
  b.Return(b.function().result(b.function().order()[0]));
  const auto function = std::move(b).Finalize();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_TRUE(Verify(*function).ok()) << Verify(*function);
}

TEST(Gradients, HaveTheTypesOfTheirOperands) {
  Builder b("f");
  const ValueId x = b.Data("x", kSquare), dy = b.Data("dy", kSquare);
  const ValueId bias = b.Parameter("bias", {DType::kF32, {4}, {}});
  const auto check = [&](OpKind kind, std::vector<ValueId> operands,
                         const AttributeSet& attributes) {
    const OpId op = b.Ops(kind, operands, {}, attributes);
    const auto gradients = Differentiate(b, op, dy);
    for (size_t i = 0; i < operands.size(); ++i) {
      ASSERT_TRUE(gradients[i].valid()) << GetOpInfo(kind).name << " operand " << i;
      EXPECT_EQ(b.type(gradients[i]), b.type(operands[i])) << GetOpInfo(kind).name;
    }
  };
  check(OpKind::kAdd, {x, bias}, {});
  check(OpKind::kAdd, {bias, x}, {});
  check(OpKind::kMul, {x, bias}, {});
  check(OpKind::kScale, {x}, {{"factor", 0.5}});
  check(OpKind::kRelu, {x}, {});
  check(OpKind::kIdentity, {x}, {});
  check(OpKind::kTranspose, {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  check(OpKind::kMatMul, {x, x}, {{"transpose_w", int64_t{1}}});
  EXPECT_TRUE(b.status().ok()) << b.status();
}

}  // namespace
}  // namespace builder_test_cc
}  // namespace orrery::ir
