#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/text/text.h"

// What gradient rules say of results that nobody can train by. That the others are derivatives is
// for ir/execution/op_gradient_test.cc to check.

namespace orrery::ir {
namespace gradient_refusals_test_cc {
namespace {

// What the rule of an op over parameters says when its results `seeded` have gradients. `results`
// are as in text, "%a: f32[2], %b: f32[]".
std::string Refusal(const std::string& inputs, const std::string& results, const std::string& op,
                    const std::vector<int32_t>& seeded) {
  auto function = ParseFunction(
      absl::StrCat("func @f (", inputs, ") { ", results, " = ", op, " return %a: result }"));
  if (!function.ok()) return std::string(function.status().message());
  const OpId applied = function->order().back();
  std::vector<ValueId> seeds(static_cast<size_t>(function->result_count(applied)));
  for (const int32_t j : seeded) {
    const TensorType type = function->type(function->result(applied, j));
    seeds[static_cast<size_t>(j)] =
        function->AddInput(absl::StrCat("d", j), type, InputRole::kData);
  }
  Builder builder(*std::move(function));
  const IdTable<ValueId, char> needed(builder.function().value_limit(), 1);
  GradientContext context(builder, applied, seeds, needed);
  return std::string(builder.function().info(applied).gradient(context).message());
}

TEST(GradientRefusals, OfStatistics) {
  const std::string none = "no gradient of the statistics, only of the normalized values";
  const auto layer = [](const std::vector<int32_t>& seeded) {
    return Refusal("%x: f32[2,4] parameter, %g: f32[4] parameter",
                   "%a: f32[2,4], %b: f32[2,1], %c: f32[2,1]", "LayerNorm(%x, %g)", seeded);
  };
  EXPECT_EQ(layer({0}), "");
  EXPECT_EQ(layer({}), none);
  EXPECT_EQ(layer({0, 1}), none);
  EXPECT_EQ(layer({0, 2}), none);
  const auto batch = [](const std::vector<int32_t>& seeded) {
    return Refusal("%x: f32[2,4] parameter, %s: f32[4] parameter",
                   "%a: f32[2,4], %b: f32[4], %c: f32[4], %d: f32[4], %e: f32[4]",
                   "BatchNorm(%x, %s, %s, %s, %s) {training=1}", seeded);
  };
  EXPECT_EQ(batch({0}), "");
  EXPECT_EQ(batch({1}), none);
}

// Products in 8 bits read copies; what they were copied from has been differentiated before.
TEST(GradientRefusals, OfCopiesInEightBits) {
  const std::string none =
      "reads copies of its operands and has no gradient rule; wanted build-backward before "
      "fp8-mixed";
  const std::string inputs = "%x: f8[2,4] parameter, %w: f8[4,3] parameter";
  for (const char* op :
       {"MatMul(%x, %w) {", "Linear(%x, %w) {", "LinearGroup(%x, %w) {count=1, "}) {
    EXPECT_EQ(Refusal(inputs, "%a: bf16[2,3]", absl::StrCat(op, "out=\"bf16\"}"), {0}), none) << op;
  }
  for (const char* op : {"MatMul(%x, %w)", "Linear(%x, %w)", "LinearGroup(%x, %w) {count=1}"}) {
    EXPECT_EQ(Refusal(inputs, "%a: f8[2,3]", op, {0}), "") << op;
  }
}

// Where nothing depends on the result there is no gradient, and no error.
TEST(GradientRefusals, OfResultsThatNothingDependsOn) {
  const std::string two = "%x: f32[2,4] parameter, %w: f32[4] parameter";
  EXPECT_EQ(Refusal(two, "%a: f32[2,4], %b: f32[2]", "RmsNorm(%x, %w)", {}), "");
  EXPECT_EQ(Refusal(two, "%a: f32[2,4]", "SwiGlu(%x, %x)", {}), "");
  EXPECT_EQ(Refusal("%q: f32[1,3,8] parameter", "%a: f32[1,3,8], %b: f32[1,2,3,3]",
                    "Attention(%q, %q, %q) {heads=2}", {1}),
            "");
  EXPECT_EQ(Refusal("%x: f32[1,2,1] parameter, %c: i64[1,2,1] data",
                    "%a: i32[2,1,1], %b: f32[2,1,1]", "Route(%x, %c) {experts=2}", {}),
            "");
}

}  // namespace
}  // namespace gradient_refusals_test_cc
}  // namespace orrery::ir
