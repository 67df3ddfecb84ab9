#include <gtest/gtest.h>

#include <string>

#include "ir/models/families_test_util.h"
#include "ir/models/model_test_util.h"
#include "ir/verifier.h"

// The family hybrid: what each letter of a pattern adds. tests/cli/opt/model_hybrid.orr has a whole
// model.

namespace orrery::ir {
namespace hybrid_test_cc {
namespace {

const std::string kKeys =
    "hidden=8,heads=4,kv_heads=2,seq=6,vocab=11,ffn=12,mamba_heads=6,mamba_dim=3,groups=2,state=5,"
    "conv=3,experts=4,topk=2,expert_ffn=7,shared_ffn=9,latent=6,pattern=";
constexpr int64_t kTable = 11 * 8;

int64_t ParametersBeside(const std::string& pattern) {
  const Function function = BuildModel("hybrid", kKeys + pattern, 2);
  EXPECT_TRUE(Verify(function).ok()) << Verify(function);
  return ParametersOf(function) - 2 * kTable - 8;  // with the last norm
}

TEST(Hybrid, HasALayerALetter) {
  const int64_t norm = 8, inner = 6 * 3, shared = 2 * 5;
  const int64_t mamba =
      8 * (2 * inner + 2 * shared + 6) + (inner + 2 * shared) * (3 + 1) + 3 * 6 + inner + inner * 8;
  const int64_t attention = 2 * 8 * 8 + 2 * 8 * 4, mlp = 2 * 8 * 12;
  const int64_t mixture = 8 * 4 + 2 * 8 * 6 + 4 * 2 * 6 * 7 + 2 * 8 * 9;
  EXPECT_EQ(ParametersBeside("M"), norm + mamba);
  EXPECT_EQ(ParametersBeside("*"), norm + attention);
  EXPECT_EQ(ParametersBeside("-"), norm + mlp);
  EXPECT_EQ(ParametersBeside("E"), norm + mixture);
  EXPECT_EQ(ParametersBeside("MM*E-M"), 6 * norm + 3 * mamba + attention + mixture + mlp);
}

TEST(Hybrid, ScansHeadsInGroups) {
  const Function function = BuildModel("hybrid", kKeys + "M,chunk=4", 2);
  EXPECT_EQ(Ops(function, "h.0.mamba.scan"),
            "h.0.mamba.scan: SelectiveScan f32[2,6,6,3] {chunk=4}\n");
  EXPECT_EQ(Ops(function, "h.0.mamba.norm"),
            "h.0.mamba.norm: RmsNorm f32[2,6,2,9] {axis=-1, epsilon=1e-05}\n"
            "h.0.mamba.normalized: Reshape f32[2,6,18] {shape=[-1, 6, 18]}\n");
}

TEST(Hybrid, SendsWhatIsNarrowToExperts) {
  EXPECT_EQ(Ops(BuildModel("hybrid", kKeys + "E", 2), "h.0.moe."),
            "h.0.moe.router: LinearGroup f32[2,6,4] {count=2}\n"
            "h.0.moe.chosen: TopK f32[2,6,2] {axis=2, k=2, largest=1, sorted=1}\n"
            "h.0.moe.shares: Softmax f32[2,6,2] {axis=2}\n"
            "h.0.moe.slots: Route i32[4,2,3] {capacity_factor=1.0, experts=4}\n"
            "h.0.moe.dispatch: Dispatch f32[4,2,3,6]\n"
            "h.0.moe.rows: Reshape f32[4,6,6] {shape=[4, -1, 6]}\n"
            "h.0.moe.up: MatMul f32[4,6,7]\n"
            "h.0.moe.act: SquaredRelu f32[4,6,7]\n"
            "h.0.moe.down: MatMul f32[4,6,6]\n"
            "h.0.moe.slots_out: Reshape f32[4,2,3,6] {shape=[4, -1, 3, 6]}\n"
            "h.0.moe.combine: Combine f32[2,6,6] {size=6}\n"
            "h.0.moe.latent_out: MatMul f32[2,6,8]\n"
            "h.0.moe.shared.up: MatMul f32[2,6,9]\n"
            "h.0.moe.shared.act: SquaredRelu f32[2,6,9]\n"
            "h.0.moe.shared.down: MatMul f32[2,6,8]\n"
            "h.0.moe.sum: Add f32[2,6,8]\n");
}

// Each further token has a norm of its embedding and one of the stream, a product of both, layers
// and a last norm; the table and the head are those of the first.
TEST(Hybrid, PredictsFurtherTokens) {
  const int64_t own = 8 + 8 + 16 * 8 + 8, mlp = 8 + 2 * 8 * 12;
  EXPECT_EQ(ParametersBeside("-,predicted=2,predicted_pattern=--"), mlp + 2 * (own + 2 * mlp));
  const Function function = BuildModel("hybrid", kKeys + "-,predicted=1,predicted_pattern=-", 2);
  EXPECT_EQ(Ops(function, "mtp.0.joined"), "mtp.0.joined: Concat f32[2,6,16] {axis=2}\n");
  EXPECT_EQ(Ops(function, "lm_head"),
            "lm_head: MatMul f32[2,6,11]\n"
            "lm_head.1: MatMul f32[2,6,11]\n");
  EXPECT_EQ(Ops(function, "loss"),
            "loss: CrossEntropy f32[2,6] {batch=12}\n"
            "loss.1: CrossEntropy f32[2,6] {batch=12}\n");
}

}  // namespace
}  // namespace hybrid_test_cc
}  // namespace orrery::ir
