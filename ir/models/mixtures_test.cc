#include <gtest/gtest.h>

#include <string>

#include "ir/models/families_test_util.h"
#include "ir/models/model_test_util.h"
#include "ir/verifier.h"

// Latent attention, shared experts and dense first layers of the family gpt.

namespace orrery::ir {
namespace mixtures_test_cc {
namespace {

// Published sizes: DeepSeek-V3's report says 671e9 parameters, of which tests/models checks the
// presets; here every part of a block.
TEST(Gpt, CompressesQueriesKeysAndValues) {
  const std::string keys =
      "layers=2,hidden=8,heads=4,head_dim=3,seq=5,vocab=11,mlp=swiglu,ffn=12,attention=latent,"
      "q_rank=6,kv_rank=7,rope_dim=2,v_dim=5";
  const Function function = BuildModel("gpt", keys, 2);
  EXPECT_TRUE(Verify(function).ok()) << Verify(function);
  const int64_t queries = 8 * 6 + 6 + 6 * 4 * (3 + 2),
                keys_values = 8 * (7 + 2) + 7 + 7 * 4 * (3 + 5);
  const int64_t block = queries + keys_values + 4 * 5 * 8 + 3 * 8 * 12 + 2 * 8;
  EXPECT_EQ(ParametersOf(function), 2 * block + 2 * 11 * 8 + 8);
  EXPECT_EQ(Ops(function, "h.0.attn.q"),
            "h.0.attn.q_a: MatMul f32[2,5,6]\n"
            "h.0.attn.q_norm: RmsNorm f32[2,5,6] {axis=-1, epsilon=1e-05}\n"
            "h.0.attn.q_plain: LinearGroup f32[2,5,12] {count=2}\n"
            "h.0.attn.q_rot: Rotary f32[2,5,8]\n"
            "h.0.attn.q: Reshape f32[2,5,20] {shape=[-1, 5, 20]}\n");
  EXPECT_EQ(Ops(function, "h.0.attn.core"),
            "h.0.attn.core: Attention f32[2,5,20] {causal=1, heads=4, kv_heads=4, "
            "scale=0.4472135954999579}\n");
  const Function plain = BuildModel("gpt", keys + ",q_rank=0", 2);
  EXPECT_EQ(ParametersOf(function) - ParametersOf(plain), 2 * (queries - 8 * 4 * 5));
}

TEST(Gpt, HasSharedExpertsAndDenseLayers) {
  const std::string keys =
      "layers=3,hidden=8,heads=2,seq=4,vocab=11,mlp=swiglu,ffn=12,experts=4,topk=2,expert_ffn=5,"
      "shared_ffn=6,dense_layers=1";
  const Function function = BuildModel("gpt", keys, 2);
  EXPECT_TRUE(Verify(function).ok()) << Verify(function);
  const int64_t both = 4 * 8 * 8 + 2 * 8, dense = 3 * 8 * 12;
  const int64_t mixture = 8 * 4 + 4 * 3 * 8 * 5 + 3 * 8 * 6;
  EXPECT_EQ(ParametersOf(function), 3 * both + dense + 2 * mixture + 2 * 11 * 8 + 8);
  EXPECT_EQ(Ops(function, "h.0.moe"), "");
  EXPECT_EQ(Ops(function, "h.1.moe.sum"), "h.1.moe.sum: Add f32[2,4,8]\n");
}

TEST(Gpt, SaysWhatLatentAttentionWants) {
  const std::string base = "layers=1,hidden=8,heads=2,seq=4,vocab=8,";
  for (const std::string keys :
       {"attention=latent", "mlp=swiglu,attention=latent,kv_heads=1",
        "mlp=swiglu,attention=latent,qkv=packed", "mlp=swiglu,attention=latent,rope_dim=3"}) {
    EXPECT_EQ(Refusal("gpt", base + keys),
              "attention=latent wants position=rotary, qkv=separate, as many kv_heads as heads and "
              "an even rope_dim")
        << keys;
  }
  EXPECT_EQ(Refusal("gpt", base + "shared_ffn=4"), "shared_ffn and dense_layers want experts");
  EXPECT_EQ(Refusal("gpt", base + "dense_layers=1"), "shared_ffn and dense_layers want experts");
}

}  // namespace
}  // namespace mixtures_test_cc
}  // namespace orrery::ir
