#include "transforms/sharding/split_axis.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "ir/verifier.h"

namespace orrery::transforms {
namespace split_axis_test_cc {
namespace {

// Every place where an axis is named: splits, sums, collectives and permutations; other axes move
// up where they stand behind it.
TEST(SplitAxis, WhatTheAxisDidBothDo) {
  const auto function = ir::ParseFunction(R"(
func @f mesh(pp=2, dp=8, hp=2) (
  %x: f32[64@dp,8] data,
  %w: f32[16@hp,8] parameter,
  %p: f32[8] partial(dp) saved
) {
  %s: f32[16@hp,8@dp] = AllSlice(%w) {axes="dp", dim=1}
  %t: f32[16@hp.dp,8] = AllToAll(%s) {axes="dp", from=1, to=0}
  %g: f32[16@hp,8] = AllGather(%t) {axes="dp", dim=0}
  %r: f32[8] = AllReduce(%p) {axes="dp"}
  %m: f32[64@dp,8] = Permute(%x) {axes="dp", to="dp;"}
  %c: bf16[64@dp,8] = Cast(%m) {to="bf16"}
  return %g: result, %r: result, %c: result
}
)");
  ASSERT_TRUE(function.ok()) << function.status();
  const ir::Function split = SplitAxis(*function, {.axis = "dp", .inner = "zero", .size = 4});
  EXPECT_TRUE(ir::Verify(split).ok()) << ir::Verify(split);
  EXPECT_EQ(ir::Print(split), R"(func @f mesh(pp=2, dp=2, zero=4, hp=2) (
  %x: f32[64@dp.zero,8] data,
  %w: f32[16@hp,8] parameter,
  %p: f32[8] partial(dp.zero) saved
) {
  %s: f32[16@hp,8@dp.zero] = AllSlice(%w) {axes="dp.zero", dim=1}
  %t: f32[16@hp.dp.zero,8] = AllToAll(%s) {axes="dp.zero", from=1, to=0}
  %g: f32[16@hp,8] = AllGather(%t) {axes="dp.zero", dim=0}
  %r: f32[8] = AllReduce(%p) {axes="dp.zero"}
  %m: f32[64@dp.zero,8] = Permute(%x) {axes="dp.zero", to="dp.zero;"}
  %c: bf16[64@dp.zero,8] = Cast(%m) {to="bf16"}
  return %g: result, %r: result, %c: result
}
)");
}

}  // namespace
}  // namespace split_axis_test_cc
}  // namespace orrery::transforms
