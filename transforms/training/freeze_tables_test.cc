#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "transforms/training/training_step.h"

namespace orrery::transforms {
namespace freeze_tables_test_cc {
namespace {

TEST(FreezeTables, FreezesWhatOnlyServesAsATable) {
  const std::string head = "func @f (\n  %x: f32[2,4,4] data,\n";
  const std::string body = R"() {
  %a: f32[2,4,4] = MaskedSoftmax(%x, %mask)
  %rows: f32[1,4,4] = Slice(%table) {axes=[1], ends=[4], starts=[0], steps=[1]}
  %b: f32[2,4,4] = MaskedSoftmax(%a, %rows)
  %c: f32[2,4,4] = MaskedSoftmax(%b, %heads)
  %d: f32[2,4,4] = MaskedSoftmax(%c, %both)
  %e: f32[2,4,4] = Add(%d, %both)
  %f: f32[2,4,4] = MaskedSoftmax(%e, %shown)
  return %f: result, %shown: result
}
)";
  const auto inputs = [&](absl::string_view role) {
    return absl::StrCat(head, "  %mask: f32[1,4,4] ", role, ",\n  %table: f32[1,8,4] ", role,
                        ",\n  %heads: f32[2,4,4] parameter,\n  %both: f32[1,4,4] parameter,\n"
                        "  %shown: f32[1,4,4] parameter\n");
  };
  auto parsed = ir::ParseFunction(inputs("parameter") + body.substr(0));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(FreezeTables(*parsed));
  EXPECT_EQ(ir::Print(*parsed), inputs("buffer") + body);
  EXPECT_FALSE(FreezeTables(*parsed));
}

// Where nobody asks for a graph as it was written.
TEST(FreezeTables, IsAPartOfTheTrainingStep) {
  const std::string text = R"(func @f (
  %x: f32[2,4,4] data,
  %w: f32[4,4] parameter,
  %mask: f32[1,4,4] parameter
) {
  %y: f32[2,4,4] = MatMul(%x, %w)
  %z: f32[2,4,4] = MaskedSoftmax(%y, %mask)
  return %z: result
}
)";
  for (const bool simplify : {true, false}) {
    ir::Function step = ir::ParseFunction(text).value();
    ASSERT_TRUE(MakeTrainingStep(step, {.loss = {.kind = "mse"}, .simplify = simplify}).ok());
    EXPECT_EQ(step.input_role(step.inputs()[2].value),
              simplify ? ir::InputRole::kBuffer : ir::InputRole::kParameter);
  }
}

}  // namespace
}  // namespace freeze_tables_test_cc
}  // namespace orrery::transforms
