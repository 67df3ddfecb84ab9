#include "transforms/substitutions/fold_weights.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "ir/verifier.h"

namespace orrery::transforms::substitutions {
namespace fold_weights_test_cc {
namespace {

TEST(FoldWeights, WhatWeightsMakeIsAWeight) {
  const ir::Function function = ir::ParseFunction(R"(func @f (
  %x: f32[2,4] data, %u: f32[4,3] parameter, %v: f32[4,3] frozen, %w: f32[4,6] buffer
) {
  %0: f32[4,3] = Scale(%u) {factor=2.0}
  %1: f32[4,6] = Concat(%0, %v) {axis=1}
  %s: f32[4,6] = Add(%1, %w)
  %c: f32[4,6] = Constant() {fill=2.0}
  %t: f32[4,6] = Add(%s, %c)
  %4: f32[4,3] = Scale(%v) {factor=3.0}
  %y: f32[2,6] = MatMul(%x, %t)
  %z: f32[2,3] = MatMul(%x, %4)
  %k: f32[2,3] = MatMul(%x, %v)
  %r: f32[4,3] = Scale(%v) {factor=5.0}
  return %y: result, %z: result, %k: result, %r: result
})")
                                    .value();
  const ir::Function folded = FoldWeights(function);
  EXPECT_EQ(ir::Verify(folded), absl::OkStatus());
  EXPECT_EQ(ir::Print(folded), R"(func @f (
  %x: f32[2,4] data,
  %v: f32[4,3] frozen,
  %t: f32[4,6] parameter,
  %folded_1: f32[4,3] parameter
) {
  %y: f32[2,6] = MatMul(%x, %t)
  %z: f32[2,3] = MatMul(%x, %folded_1)
  %k: f32[2,3] = MatMul(%x, %v)
  %r: f32[4,3] = Scale(%v) {factor=5.0}
  return %y: result, %z: result, %k: result, %r: result
}
)");
  EXPECT_EQ(ir::Print(FoldWeights(folded)), ir::Print(folded));
}

}  // namespace
}  // namespace fold_weights_test_cc
}  // namespace orrery::transforms::substitutions
