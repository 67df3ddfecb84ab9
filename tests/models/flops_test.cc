#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "cost_models/summary.h"
#include "importer/builtin_models.h"
#include "ir/verifier.h"
#include "transforms/training/training_step.h"

// Flops and saved activations of whole training steps against the formulas of the literature.

namespace orrery {
namespace flops_test_cc {
namespace {

using cost_models::Phase;
using cost_models::Summary;

Summary OfStep(const std::string& model, int64_t batch, ir::DType dtype = ir::DType::kF16) {
  auto step = importer::BuildBuiltinModel(model, batch, dtype);
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return {};
  const absl::Status status = transforms::MakeTrainingStep(*step, {.simplify = false});
  EXPECT_TRUE(status.ok()) << model << ": " << status;
  EXPECT_TRUE(ir::Verify(*step).ok()) << ir::Verify(*step);
  return cost_models::Summarize(*step);
}

struct Gpt {
  double batch, layers, hidden, heads, seq, vocab;

  // Narayanan et al. 2021, equation 3, without the factor 4/3 of recomputation.
  double flops() const {
    return 72 * batch * seq * layers * hidden * hidden *
           (1 + seq / (6 * hidden) + vocab / (12 * layers * hidden));
  }
  std::string model() const {
    return absl::StrCat("gpt:layers=", layers, ",hidden=", hidden, ",heads=", heads, ",seq=", seq,
                        ",vocab=", vocab);
  }
};

TEST(GptFlops, AreThoseOfTheFormula) {
  std::mt19937 random(7);
  const auto up_to = [&](int most) {
    return static_cast<double>(1 + static_cast<int>(random() % static_cast<unsigned>(most)));
  };
  for (int trial = 0; trial < 40; ++trial) {
    Gpt gpt = {up_to(8), up_to(4), 0, up_to(8), up_to(300), up_to(1000)};
    gpt.hidden = gpt.heads * up_to(64);
    const std::string model = absl::StrCat(gpt.model(), trial % 2 == 0 ? ",flash=1" : "",
                                           trial % 3 == 0 ? ",tied_embeddings=0" : "",
                                           trial % 5 == 0 ? ",qkv=packed" : "");
    const Summary summary = OfStep(model, static_cast<int64_t>(gpt.batch));
    EXPECT_NEAR(summary.total().model_flops.count() / gpt.flops(), 1, 1e-9) << model;
    EXPECT_NEAR(summary.phase(Phase::kBackward).model_flops.count() /
                    summary.phase(Phase::kForward).model_flops.count(),
                2, 1e-9)
        << model;
  }
}

TEST(GptFlops, OfPublishedModels) {
  const Gpt gpts[] = {{4, 96, 12288, 96, 2048, 50257},
                      {8, 12, 768, 12, 1024, 50257},
                      {1, 128, 25600, 160, 2048, 51200}};
  const char* const names[] = {"gpt3-175b", "gpt2-small", "megatron-1t"};
  for (size_t i = 0; i < std::size(gpts); ++i) {
    const Summary summary = OfStep(names[i], static_cast<int64_t>(gpts[i].batch));
    EXPECT_NEAR(summary.total().model_flops.count() / gpts[i].flops(), 1, 1e-9) << names[i];
    // What is no product is little: that is why nobody counts it.
    EXPECT_NEAR(summary.total().flops.count() / gpts[i].flops(), 1, 0.03) << names[i];
  }
}

// Attention aside, 6 flops a token and a parameter that stands in a product.
TEST(GptFlops, OfGroupedQueriesAndSwiglu) {
  const Summary summary = OfStep("llama3-8b:seq=512", 2);
  const double tokens = 2 * 512, products = 8'030'261'248.0 - 128256.0 * 4096 - 65 * 4096;
  const double attention = 12.0 * 32 * 2 * 512 * 512 * 4096;
  EXPECT_NEAR(summary.total().model_flops.count(), 6 * tokens * products + attention, 1e4);
}

// At capacity factor 1 experts do what the chosen ones need: 12.88 billion parameters are active.
TEST(GptFlops, OfExperts) {
  const Summary summary = OfStep("mixtral-8x7b:seq=512", 2);
  const double tokens = 2 * 512;
  const double expert = 3.0 * 4096 * 14336, all = 46'702'792'704.0;
  const double active = all - 32 * 6 * expert - 32000.0 * 4096 - 65 * 4096;
  const double attention = 12.0 * 32 * 2 * 512 * 512 * 4096;
  EXPECT_NEAR(summary.total().model_flops.count(), 6 * tokens * active + attention, 1e4);
  const Summary roomy = OfStep("mixtral-8x7b:seq=512,capacity_factor=2", 2);
  EXPECT_NEAR(roomy.total().model_flops.count() - summary.total().model_flops.count(),
              6 * tokens * 32 * 2 * expert, 1e4);
}

// Of Mamba-2, besides products by weights: each head's state takes in x and B and gives y by C, and
// within a chunk of 128 x goes by scores, which are C by B of a group.
TEST(HybridFlops, AreThoseOfProductsAttentionAndScans) {
  const Summary summary = OfStep("nemotron-h-8b:seq=512", 2);
  const double tokens = 2 * 512, inner = 128 * 64, shared = 8 * 128;
  const double beside = (4 + 1) * (inner + 2 * shared) + 3 * 128 + inner;
  const double products = 8'100'852'736.0 - 131072.0 * 4096 - 53 * 4096 - 24 * beside;
  const double attention = 12.0 * 4 * 2 * 512 * 512 * 4096;
  const double scan = 2 * (2 * inner * 128 + inner * 128 + shared * 128);
  EXPECT_NEAR(summary.total().model_flops.count(),
              6 * tokens * products + attention + 3 * 24 * tokens * scan, 1e4);
}

// A layer keeps, of 16 bits: what goes into it and its norm; gate, x, B, C and steps; x, B and C
// convolved; y, y gated, and y normalized; and statistics of both norms.
TEST(HybridActivations, OfMamba2) {
  const auto saved = [](const char* pattern) {
    const std::string keys =
        ",hidden=64,seq=32,vocab=100,mamba_heads=8,mamba_dim=16,groups=2,state=4";
    return OfStep(absl::StrCat("hybrid:pattern=", pattern, keys), 2).saved_activations.count();
  };
  constexpr int64_t kTokens = 64, kInner = 8 * 16, kShared = 2 * 4;
  constexpr int64_t kProjected = 2 * kInner + 2 * kShared + 8, kConvolved = kInner + 2 * kShared;
  EXPECT_EQ(saved("MM") - saved("M"),
            kTokens * (2 * (2 * 64 + kProjected + kConvolved + 3 * kInner) + 4 * (1 + 2)));
}

// Korthikanti et al. 2022, equation 1: s·b·h·(34 + 5·a·s/h) bytes a layer. Without dropout of the
// probabilities, 2·a·s²·b of the 5 are left.
TEST(GptActivations, AreThoseOfTheFormula) {
  const double b = 2, l = 3, h = 256, a = 4, s = 128, v = 1000;
  const Gpt gpt = {b, l, h, a, s, v};
  const double layer = s * b * h * (34 + 5 * a * s / h), norm = 8 * b * s;
  const double ends = s * b * h * (1 + 2 + 2) + norm + 2 * s * b * v;  // mask, last norm, logits
  const Summary summary = OfStep(absl::StrCat(gpt.model(), ",dropout=0.1"), 2);
  EXPECT_EQ(static_cast<double>(summary.saved_activations.count()), l * (layer + 2 * norm) + ends);
  const auto less = [&](const char* keys) {
    const Summary other = OfStep(absl::StrCat(gpt.model(), ",dropout=0.1", keys), 2);
    return static_cast<double>((summary.saved_activations - other.saved_activations).count());
  };
  EXPECT_EQ(less(",flash=1"), l * (5 * a * s * s * b - 4 * a * s * b));
  EXPECT_EQ(less(",attention_dropout=0"), l * 3 * a * s * s * b);
}

TEST(ResNet, HasThePublishedProducts) {
  const Summary summary = OfStep("resnet-50", 1);
  EXPECT_NEAR(summary.phase(Phase::kForward).model_flops.count() / 2, 4.09e9, 0.005e9);
}

// torchvision: 5.71 GFLOPS, which are multiply-adds.
TEST(Inception, HasThePublishedProducts) {
  const Summary summary = OfStep("inception-v3", 1);
  EXPECT_NEAR(summary.phase(Phase::kForward).model_flops.count() / 2, 5.71e9, 0.01e9);
}

// A block of GPT-2 runs nine kernels forward, where the export has some 50 nodes.
TEST(Kernels, OfABlock) {
  const auto kernels = [](int layers) {
    const auto model =
        importer::BuildBuiltinModel(absl::StrCat("gpt2-small:layers=", layers), 1, ir::DType::kF32);
    return cost_models::Summarize(model.value()).total().kernels;
  };
  EXPECT_EQ(kernels(2) - kernels(1), 9);
}

}  // namespace
}  // namespace flops_test_cc
}  // namespace orrery
