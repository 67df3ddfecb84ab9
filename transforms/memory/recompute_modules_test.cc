#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "transforms/memory/recompute.h"
#include "transforms/memory/recompute_test_util.h"

// Recomputation by Megatron's modules: what forward keeps and what backward rematerializes.

namespace orrery::transforms {
namespace recompute_modules_test_cc {
namespace {

// A feed-forward as built-in models name it. Its input is kept; as a whole it runs to its end.
constexpr char kBlock[] = R"(func @forward (
  %h.0.ln_2: f32[4,8] data,
  %u: f32[8,8] parameter,
  %d: f32[8,8] parameter,
  %z: f32[4,8] data
) {
  %h.0.mlp.up: f32[4,8] = MatMul(%h.0.ln_2, %u)
  %h.0.mlp.act: f32[4,8] = Gelu(%h.0.mlp.up)
  %h.0.mlp.down: f32[4,8] = MatMul(%h.0.mlp.act, %d)
  %y: f32[4,8] = Add(%h.0.ln_2, %h.0.mlp.down)
  %l: f32[4,8] = Loss(%y, %z) {batch=4}
  %dy: f32[4,8] = LossGrad(%y, %z) {batch=4}
  return %dy: saved, %h.0.mlp.up: saved, %h.0.mlp.act: saved, %l: loss
}
func @backward (
  %dy: f32[4,8] saved,
  %h.0.mlp.up: f32[4,8] saved,
  %h.0.mlp.act: f32[4,8] saved,
  %h.0.ln_2: f32[4,8] data,
  %d: f32[8,8] parameter
) {
  %dact: f32[4,8], %dd: f32[8,8] = MatMulGrad(%h.0.mlp.act, %d, %dy)
  %dup: f32[4,8] = UnaryGrad(%h.0.mlp.up, %dact) {of="Gelu"}
  %du: f32[8,8] = MatMulWeightGrad(%h.0.ln_2, %dup)
  return %dd: saved, %du: saved
}
)";

TEST(RecomputeModules, AreWhatNamesSay) {
  const std::string less = Recomputed(kBlock, "modules:mlp");
  EXPECT_THAT(less, testing::HasSubstr("return %dy: saved, %l: loss"));
  EXPECT_THAT(less, testing::HasSubstr("  %h.0.mlp.act: f32[4,8] = Gelu(%h.0.mlp.up)\n  %dact"));
  const std::string whole = Recomputed(kBlock, "modules:mlp", /*whole=*/true);
  EXPECT_THAT(whole, testing::HasSubstr("Drop(%h.0.mlp.down)"));
  EXPECT_EQ(Recomputed(kBlock, "modules:mlp,moe"),
            "'modules:mlp,moe': the model has no 'moe'; it has mlp; try `recompute` match:REGEX");
  EXPECT_EQ(Recomputed(absl::StrReplaceAll(kBlock, {{"h.0.mlp.", "block_"}}), "modules:mlp"),
            "'modules:mlp': the model has no 'mlp'; wanted a built-in model: modules are known by "
            "its names; try `recompute` match:REGEX");
}

}  // namespace
}  // namespace recompute_modules_test_cc
}  // namespace orrery::transforms
