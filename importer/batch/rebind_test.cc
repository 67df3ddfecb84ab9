#include "importer/batch/rebind.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "support/check.h"

namespace orrery::importer {
namespace rebind_test_cc {
namespace {

ir::Function Parsed(const std::string& text) {
  auto function = ir::ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  return *std::move(function);
}

std::string Text(const absl::StatusOr<ir::Function>& function) {
  return function.ok() ? absl::StrCat("\n", ir::Print(*function))
                       : std::string(function.status().message());
}

std::string MlpText(const ir::MlpShape& shape) { return Text(ir::Mlp(shape)); }

// A whole training step changes into the one that the builder makes of the other shape.
TEST(WithBatch, TrainingStep) {
  const auto mlp = ir::Mlp({.layers = 3, .dim = 16, .batch = 8});
  ASSERT_TRUE(mlp.ok());
  EXPECT_EQ(ir::BatchOf(*mlp), 8);
  EXPECT_EQ(Text(WithBatch(*mlp, 32)), MlpText({.layers = 3, .dim = 16, .batch = 32}));
}

TEST(WithDType, TrainingStep) {
  const auto mlp = ir::Mlp({.layers = 3, .dim = 16, .batch = 8});
  ASSERT_TRUE(mlp.ok());
  EXPECT_EQ(Text(WithDType(*mlp, ir::DType::kBF16)),
            MlpText({.layers = 3, .dim = 16, .batch = 8, .dtype = ir::DType::kBF16}));
}

// One microbatch of four: the loss counts the whole batch. Inputs that have no batch stay.
TEST(WithBatch, LossOfMicrobatchAndOtherInputs) {
  const ir::Function function = Parsed(R"(
func @f (
  %scalar: f32[] data,
  %x: f32[8,16] data,
  %z: f32[8,16] data,
  %positions: f32[16] data
) {
  %a: f32[8,16] = Add(%x, %positions)
  %b: f32[8,16] = Mul(%a, %scalar)
  %l: f32[8,16] = Loss(%b, %z) {batch=32}
  return %l: loss
}
)");
  EXPECT_EQ(Text(WithBatch(function, 2)), R"(
func @f (
  %scalar: f32[] data,
  %x: f32[2,16] data,
  %z: f32[2,16] data,
  %positions: f32[16] data
) {
  %a: f32[2,16] = Add(%x, %positions)
  %b: f32[2,16] = Mul(%a, %scalar)
  %l: f32[2,16] = Loss(%b, %z) {batch=8}
  return %l: loss
}
)");
}

TEST(WithBatch, Errors) {
  const ir::Function none = Parsed("func @f (%w: f32[8] parameter) {\n return %w: result\n}\n");
  EXPECT_EQ(ir::BatchOf(none), 0);
  EXPECT_EQ(Text(WithBatch(none, 4)), "has no data input with a batch; wanted one to set to 4");
  const ir::Function fixed = Parsed(R"(
func @f (%x: f32[8] data, %w: f32[8] parameter) {
  %y: f32[8] = Add(%x, %w)
  return %y: result
})");
  EXPECT_EQ(Text(WithBatch(fixed, 4)),
            "batch 4 in place of 8: f: Add 'y' cannot follow the batch: shapes [16] and [8] do not "
            "broadcast; try to export the "
            "model with a dynamic batch: torch.onnx.export(…, dynamic_axes={'x': {0: 'batch'}})");
  const ir::Function large = Parsed(R"(
func @f (%x: f32[8,1099511627776] data) {
  return %x: result
})");
  EXPECT_EQ(Text(WithBatch(large, 1 << 20)).substr(0, 73),
            "batch 1048576 in place of 8: is too large; try a smaller one: f: %x is f3");
}

TEST(WithDType, ConvertsConstantsAndKeepsIntegersAndState) {
  const ir::Function function = Parsed(R"(
func @f (
  %x: f32[8] data,
  %i: i64[8] data,
  %m: f32[8] state
) {
  %c: f32[] = Constant() {values=[0.5]}
  %y: f32[8] = Mul(%x, %c)
  return %y: result, %i: result, %m: result
}
)");
  EXPECT_EQ(Text(WithDType(function, ir::DType::kF16)), R"(
func @f (
  %x: f16[8] data,
  %i: i64[8] data,
  %m: f32[8] state
) {
  %c: f16[] = Constant() {values=[0.5]}
  %y: f16[8] = Mul(%x, %c)
  return %y: result, %i: result, %m: result
}
)");
}

// No other export would help.
TEST(WithBatch, TooLarge) {
  const ir::Function function = Parsed(R"(
func @f (%x: f32[8,512] data) {
  %y: f32[8,512] = Relu(%x)
  return %y: result
})");
  const std::string error = Text(WithBatch(function, int64_t{1} << 62));
  EXPECT_EQ(
      error.find("batch 4611686018427387904 in place of 8: is too large; try a smaller one: "), 0)
      << error;
}

TEST(WithDType, Errors) {
  const ir::Function mixed = Parsed(R"(
func @f (%x: f32[8] data, %m: f32[8] state) {
  %y: f32[8] = Add(%x, %m)
  return %y: result
})");
  EXPECT_EQ(Text(WithDType(mixed, ir::DType::kF16)),
            "element type f16: f: Add 'y': element types differ; got f16 and f32");
}

}  // namespace
}  // namespace rebind_test_cc
}  // namespace orrery::importer
