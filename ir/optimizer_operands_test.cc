#include "ir/optimizer_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text/text.h"

namespace orrery::ir {
namespace optimizer_operands_test_cc {
namespace {

// Two parameters with a moment each.
constexpr absl::string_view kUpdate = R"(func @f (
  %a: f32[4] parameter,
  %b: f32[2,3] parameter,
  %a.m: f32[4] state,
  %b.m: f32[2,3] state,
  %da: f32[4] data,
  %db: f32[2,3] data
) {
  %a1: f32[4], %b1: f32[2,3], %a.m1: f32[4], %b.m1: f32[2,3] = Momentum(%a, %b, %a.m, %b.m, %da, %db) {parameters=2}
  return %a1: updated(%a), %b1: updated(%b), %a.m1: updated(%a.m), %b.m1: updated(%b.m)
})";

std::vector<std::string> NamesOf(const Function& function, std::span<const ValueId> values) {
  std::vector<std::string> names;
  for (const ValueId value : values) names.emplace_back(function.value_name(value));
  return names;
}

TEST(OptimizerOperands, ComeInGroups) {
  const absl::StatusOr<Function> function = ParseFunction(kUpdate);
  ASSERT_TRUE(function.ok()) << function.status();
  const OptimizerOperands operands(*function, function->order().front());
  EXPECT_EQ(operands.count(), 2u);
  EXPECT_EQ(operands.groups(), 3u);
  EXPECT_THAT(NamesOf(*function, operands.parameters()), testing::ElementsAre("a", "b"));
  EXPECT_THAT(NamesOf(*function, operands.gradients()), testing::ElementsAre("da", "db"));
  EXPECT_EQ(operands.first_gradient(), 4u);
  EXPECT_EQ(operands.all().size(), 6u);
  EXPECT_EQ(function->value_name(operands.all()[operands.Position(1, 1)]), "b.m");
  EXPECT_EQ(operands.ParameterOf(3), 1u);
}

TEST(ParameterCount, IsWhatTheAttributeSays) {
  AttributeSet attributes;
  attributes.Set(kParameterCount, int64_t{7});
  EXPECT_EQ(ParameterCount(attributes), 7u);
}

}  // namespace
}  // namespace optimizer_operands_test_cc
}  // namespace orrery::ir
