#include "ir/last_of_kind.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace orrery::ir {
namespace last_of_kind_test_cc {
namespace {

// Two equal layers, and a third of another width.
Function ThreeLayers() {
  Builder b("f");
  ValueId x = b.Data("x", {DType::kF32, {2, 4}, {}});
  for (const int64_t width : {4, 4, 8}) {
    x = b.MatMul(x, b.Parameter("", {DType::kF32, {4, width}, {}}));
  }
  b.Return(b.Relu(x));
  return std::move(b).Finalize().value();
}

TEST(LastOfKind, KnowsNothingAtFirst) {
  const LastOfKind<int> known;
  EXPECT_EQ(known.Find(ThreeLayers(), OpId(0)), nullptr);
}

TEST(LastOfKind, FindsAnOpOfTheSameTypesOnly) {
  const Function function = ThreeLayers();
  LastOfKind<int> known;
  EXPECT_EQ(known.Put(function, OpId(0), 7), 7);
  ASSERT_NE(known.Find(function, OpId(1)), nullptr);
  EXPECT_EQ(*known.Find(function, OpId(1)), 7);
  EXPECT_EQ(known.Find(function, OpId(2)), nullptr) << "of another width";
  EXPECT_EQ(known.Find(function, OpId(3)), nullptr) << "of another kind";
}

// As many widths as are remembered, and one more.
TEST(LastOfKind, RemembersTheLastFew) {
  Builder b("f");
  const ValueId x = b.Data("x", {DType::kF32, {2, 4}, {}});
  constexpr auto kWidths = static_cast<int64_t>(LastOfKind<int>::kRemembered) + 1;
  for (int64_t width = 1; width <= kWidths; ++width) {
    b.Return(b.MatMul(x, b.Parameter("", {DType::kF32, {4, width}, {}})));
  }
  const Function function = std::move(b).Finalize().value();
  LastOfKind<int> known;
  for (int i = 0; i < kWidths; ++i) known.Put(function, OpId(i), i);
  EXPECT_EQ(known.Find(function, OpId(0)), nullptr);
  for (int i = 1; i < kWidths; ++i) {
    ASSERT_NE(known.Find(function, OpId(i)), nullptr) << i;
    EXPECT_EQ(*known.Find(function, OpId(i)), i);
  }
}

TEST(LastOfKind, TellsAttributesApart) {
  Builder b("f");
  const ValueId x = b.Data("x", {DType::kF32, {2, 4}, {}});
  b.Return(b.Loss(x, x, 2));
  b.Return(b.Loss(x, x, 4));
  const Function function = std::move(b).Finalize().value();
  LastOfKind<int> known;
  known.Put(function, OpId(0), 7);
  EXPECT_EQ(known.Find(function, OpId(1)), nullptr);
}

}  // namespace
}  // namespace last_of_kind_test_cc
}  // namespace orrery::ir
