#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/models/families_test_util.h"
#include "ir/models/model_test_util.h"
#include "ir/verifier.h"

// Low-rank adaptation of the family gpt.

namespace orrery::ir {
namespace lora_test_cc {
namespace {

constexpr absl::string_view kKeys =
    "layers=2,hidden=32,heads=4,kv_heads=2,seq=8,vocab=64,mlp=swiglu,ffn=48,flash=1";

int64_t FrozenOf(const Function& function) {
  int64_t count = 0;
  for (const Input& input : function.inputs()) {
    const bool table = absl::StartsWith(function.value_name(input.value), "rotary");
    if (input.role == InputRole::kBuffer && !table)
      count += ElementCount(function.type(input.value).dims);
  }
  return count;
}

// Of a rank of 4 there are 4 (k + n) beside a weight of k n.
TEST(Gpt, TrainsAdaptersAlone) {
  const int64_t all = ParametersOf(BuildModel("gpt", std::string(kKeys), 2));
  const Function every = BuildModel("gpt", absl::StrCat(kKeys, ",lora=4"), 2);
  const Function some = BuildModel("gpt", absl::StrCat(kKeys, ",lora=4,lora_targets=qkv"), 2);
  EXPECT_TRUE(Verify(every).ok()) << Verify(every);
  const int64_t qkv = 4 * ((32 + 32) + 2 * (32 + 16));
  const int64_t others = 4 * ((32 + 32) + 2 * (32 + 48) + (48 + 32));
  EXPECT_EQ(ParametersOf(every), 2 * (qkv + others));
  EXPECT_EQ(ParametersOf(some), 2 * qkv);
  EXPECT_EQ(FrozenOf(every), all);
  EXPECT_EQ(FrozenOf(some), all);
  EXPECT_EQ(Ops(every, "h.0.mlp.down"),
            "h.0.mlp.down.base: MatMul f32[2,8,32]\n"
            "h.0.mlp.down.lora_a: MatMul f32[2,8,4]\n"
            "h.0.mlp.down.lora_b: MatMul f32[2,8,32]\n"
            "h.0.mlp.down: Add f32[2,8,32]\n");
}

// Each expert has adapters of its own, and the router has none: it is frozen, too.
TEST(Gpt, AdaptsEachExpert) {
  const std::string keys = absl::StrCat(kKeys, ",experts=3,topk=2,expert_ffn=24,shared_ffn=16");
  const int64_t all = ParametersOf(BuildModel("gpt", keys, 2));
  const Function every = BuildModel("gpt", absl::StrCat(keys, ",lora=4"), 2);
  const Function some = BuildModel("gpt", absl::StrCat(keys, ",lora=4,lora_targets=qkv"), 2);
  EXPECT_TRUE(Verify(every).ok()) << Verify(every);
  const int64_t attention = 4 * ((32 + 32) + 2 * (32 + 16) + (32 + 32));
  const int64_t experts = 3 * 4 * (2 * (32 + 24) + (24 + 32)),
                shared = 4 * (2 * (32 + 16) + (16 + 32));
  EXPECT_EQ(ParametersOf(every), 2 * (attention + experts + shared));
  EXPECT_EQ(ParametersOf(some), 2 * 4 * ((32 + 32) + 2 * (32 + 16)));
  EXPECT_EQ(FrozenOf(every), all);
  EXPECT_EQ(FrozenOf(some), all);
  EXPECT_EQ(Ops(every, "h.0.moe.down"),
            "h.0.moe.down.base: MatMul f32[3,12,32]\n"
            "h.0.moe.down.lora_a: MatMul f32[3,12,4]\n"
            "h.0.moe.down.lora_b: MatMul f32[3,12,32]\n"
            "h.0.moe.down: Add f32[3,12,32]\n");
  EXPECT_EQ(Ops(every, "h.0.moe.router"), "h.0.moe.router: MatMul f32[2,8,3]\n");
}

TEST(Gpt, AdaptsWhatItCan) {
  for (const char* keys :
       {"lora=4", "mlp=swiglu,bias=1,lora=4", "mlp=swiglu,tied_embeddings=1,lora=4"}) {
    EXPECT_EQ(TryBuildModel("gpt", absl::StrCat("layers=2,hidden=32,heads=4,seq=8,", keys), 2)
                  .status()
                  .message(),
              "lora wants mlp=swiglu; no bias or tied table")
        << keys;
  }
}

}  // namespace
}  // namespace lora_test_cc
}  // namespace orrery::ir
