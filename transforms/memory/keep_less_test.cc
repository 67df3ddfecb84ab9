#include "transforms/memory/keep_less.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "transforms/memory/recompute.h"
#include "transforms/stages/stage_parts_test_util.h"

// What forward leaves of element-wise chains, and what backward computes anew. That the numbers are
// the same is for tests/semantics to say.

namespace orrery::transforms {
namespace keep_less_test_cc {
namespace {

// What forward returns, and what backward does, where element-wise ops are fused.
std::string Kept(const std::string& forward, const std::string& backward) {
  StageParts parts(
      absl::StrCat("func @forward (", forward, "}\nfunc @backward (", backward, "}\n"));
  PipelinedStep step;
  step.stages.emplace_back();
  step.stages[0].forward = parts.parts()[0];
  step.stages[0].backward = parts.parts()[1];
  EXPECT_TRUE(Recompute(step, {.fuses = true}).ok());
  parts.parts()[0] = step.stages[0].forward;
  parts.parts()[1] = step.stages[0].backward;
  const std::string first = parts.Text(0);
  return absl::StrCat("\n", first.substr(first.find("  return")), parts.Text(1));
}

// A gelu op by op: the result of the product is kept, and the result of all, which the next product
// reads; the rest is computed anew.
TEST(KeepLess, OfAChainItsBeginning) {
  EXPECT_EQ(Kept(R"(%x: f32[4,8] data, %w: f32[8,8] parameter, %u: f32[8,8] parameter) {
  %p: f32[4,8] = MatMul(%x, %w)
  %c: f32[4,8] = Scale(%p) {factor=0.5}
  %d: f32[4,8] = Erf(%c)
  %e: f32[4,8] = Mul(%p, %d)
  %y: f32[4,8] = Add(%p, %e)
  %q: f32[4,8] = MatMul(%y, %u)
  return %q: result, %p: saved, %c: saved, %d: saved, %y: saved
)",
                 R"(%dq: f32[4,8] data, %p: f32[4,8] saved, %c: f32[4,8] saved, %d: f32[4,8] saved,
  %y: f32[4,8] saved, %u: f32[8,8] parameter) {
  %dy: f32[4,8], %du: f32[8,8] = MatMulGrad(%y, %u, %dq)
  %dd: f32[4,8] = Mul(%p, %dy)
  %dc: f32[4,8] = UnaryGrad(%c, %dd) {of="Erf"}
  %de: f32[4,8] = Mul(%d, %dy)
  %dp: f32[4,8] = Add(%dc, %de)
  return %du: saved, %dp: saved
)"),
            R"(
  return %q: result, %p: saved, %y: saved
  %dy: f32[4,8], %du: f32[8,8] = MatMulGrad(%y, %u, %dq)
  %dd: f32[4,8] = Mul(%p, %dy)
  %c: f32[4,8] = Scale(%p) {factor=0.5}
  %dc: f32[4,8] = UnaryGrad(%c, %dd) {of="Erf"}
  %d: f32[4,8] = Erf(%c)
  %de: f32[4,8] = Mul(%d, %dy)
  %dp: f32[4,8] = Add(%dc, %de)
  return %du: saved, %dp: saved
)");
}

// Of a value in 16 bits and the same in 32 the narrow one, which nobody has asked for.
TEST(KeepLess, WhatIsSmaller) {
  const std::string forward = R"(%x: bf16[4,8] data, %w: bf16[8,8] parameter) {
  %p: bf16[4,8] = MatMul(%x, %w)
  %v: bf16[2,2,8] = Reshape(%p) {shape=[2, 2, 8]}
  %c: f32[2,2,8] = Cast(%v) {to="f32"}
  %y: f32[2,2,8] = Tanh(%c)
  return %y: result, %c: saved
)";
  EXPECT_EQ(Kept(forward, R"(%dy: f32[2,2,8] data, %c: f32[2,2,8] saved) {
  %dx: f32[2,2,8] = UnaryGrad(%c, %dy) {of="Tanh"}
  return %dx: saved
)"),
            R"(
  return %y: result, %p: saved
  %v: bf16[2,2,8] = Reshape(%p) {shape=[2, 2, 8]}
  %c: f32[2,2,8] = Cast(%v) {to="f32"}
  %dx: f32[2,2,8] = UnaryGrad(%c, %dy) {of="Tanh"}
  return %dx: saved
)");
}

// A mask is smaller than what it is made of, and chance is not asked twice.
TEST(KeepLess, WhatIsNotWorthIt) {
  EXPECT_EQ(Kept(R"(%x: f32[4,8] data, %w: f32[8,8] parameter, %z: f32[4,8] parameter) {
  %p: f32[4,8] = MatMul(%x, %w)
  %m: bool[4,8] = Less(%p, %z)
  %q: f32[4,8] = MatMul(%p, %w)
  %t: f32[4,8], %k: bool[4,8] = Dropout(%q) {ratio=0.5}
  %h: f32[4,8] = Tanh(%t)
  return %h: result, %m: saved, %k: saved, %h: saved
)",
                 R"(%dh: f32[4,8] data, %m: bool[4,8] saved, %k: bool[4,8] saved,
  %h: f32[4,8] saved) {
  %dt: f32[4,8] = UnaryGrad(%h, %dh) {of="Tanh"}
  %dq: f32[4,8] = DropoutGrad(%k, %dt) {ratio=0.5}
  %dp: f32[4,8] = Where(%m, %dq, %dt)
  return %dp: saved
)"),
            R"(
  return %h: result, %m: saved, %k: saved, %h: saved
  %dt: f32[4,8] = UnaryGrad(%h, %dh) {of="Tanh"}
  %dq: f32[4,8] = DropoutGrad(%k, %dt) {ratio=0.5}
  %dp: f32[4,8] = Where(%m, %dq, %dt)
  return %dp: saved
)");
}

}  // namespace
}  // namespace keep_less_test_cc
}  // namespace orrery::transforms
