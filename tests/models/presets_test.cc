#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cost_models/summary.h"
#include "importer/builtin_models.h"
#include "ir/models/model.h"
#include "ir/verifier.h"

// Every published model of the library: it builds, verifies, and has as many parameters as whoever
// published it counts.

namespace orrery {
namespace presets_test_cc {
namespace {

int64_t ParametersOf(const std::string& model) {
  const auto function = importer::BuildBuiltinModel(model, 1, ir::DType::kBF16);
  EXPECT_TRUE(function.ok()) << function.status();
  if (!function.ok()) return 0;
  EXPECT_TRUE(ir::Verify(*function).ok()) << model << ": " << ir::Verify(*function);
  return cost_models::Summarize(*function).parameters.elements;
}

// 12·l·h² + 13·l·h + (V + s)·h of Narayanan et al. 2021, equation 2, and the last norm's 2·h, which
// they leave out.
int64_t GptParameters(int64_t layers, int64_t hidden, int64_t vocab, int64_t seq) {
  return 12 * layers * hidden * hidden + 13 * layers * hidden + (vocab + seq) * hidden + 2 * hidden;
}

// Of Nemotron-H with a hidden size of 8192.
struct HybridLayers {
  int64_t mamba, attention, mlp, ffn;
};
int64_t HybridParameters(const HybridLayers& layers) {
  constexpr int64_t kHidden = 8192, kInner = 256 * 64, kShared = 8 * 256, kVocab = 131072;
  constexpr int64_t kConvolved = kInner + 2 * kShared;
  const int64_t mamba = kHidden * (kInner + kConvolved + 256) + (4 + 1) * kConvolved + 3 * 256 +
                        kInner + kInner * kHidden;
  const int64_t attention = 2 * kHidden * (64 + 8) * 128, mlp = 2 * kHidden * layers.ffn;
  return layers.mamba * mamba + layers.attention * attention + layers.mlp * mlp +
         (layers.mamba + layers.attention + layers.mlp + 1 + 2 * kVocab) * kHidden;
}

std::map<std::string, int64_t> OfHybrids() {
  return {
      {"nemotron-h-8b", 8'100'852'736},
      // As their configurations add up: 45 or 54 layers of Mamba-2, of 5 or 10 of attention, and
      // 48 or 54 feed-forwards.
      {"nemotron-h-47b", HybridParameters({.mamba = 45, .attention = 5, .mlp = 48, .ffn = 30720})},
      {"nemotron-h-56b", HybridParameters({.mamba = 54, .attention = 10, .mlp = 54, .ffn = 32768})},
      {"nemotron-3-nano-30b-a3b", 31'577'937'344},
      // Without the layers that predict further tokens.
      {"nemotron-3-super-120b-a12b", 123'611'012'096 - 2'942'324'736},
      {"nemotron-3-ultra-550b-a55b", 549'308'968'960},  // 1,121 GB with those layers, 11.2e9
  };
}

// Of convolutional networks beside residual ones, by torchvision.
std::map<std::string, int64_t> OfBranches() { return {{"inception-v3", 23'834'568}}; }

// A preset without a line here fails.
TEST(Presets, HaveThePublishedParameters) {
  std::map<std::string, int64_t> published = {
      {"gpt2-small", 124'439'808},  // openai-community/gpt2 and the three beside it, on the hub
      {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},
      {"gpt3-125m", GptParameters(12, 768, 50257, 2048)},
      {"gpt3-350m", GptParameters(24, 1024, 50257, 2048)},
      {"gpt3-760m", GptParameters(24, 1536, 50257, 2048)},
      {"gpt3-1.3b", GptParameters(24, 2048, 50257, 2048)},
      {"gpt3-2.7b", GptParameters(32, 2560, 50257, 2048)},
      {"gpt3-6.7b", GptParameters(32, 4096, 50257, 2048)},
      {"gpt3-13b", GptParameters(40, 5120, 50257, 2048)},
      {"gpt3-175b", GptParameters(96, 12288, 50257, 2048)},
      {"megatron-22b", GptParameters(48, 6144, 51200, 2048)},
      {"megatron-175b", GptParameters(96, 12288, 51200, 2048)},
      {"megatron-530b", GptParameters(105, 20480, 51200, 2048)},
      {"megatron-1t", GptParameters(128, 25600, 51200, 2048)},
      {"llama2-7b", 6'738'415'616},
      {"llama2-13b", 13'015'864'320},
      {"llama2-70b", 68'976'648'192},
      {"llama3-8b", 8'030'261'248},
      {"llama3-70b", 70'553'706'496},
      {"llama3-405b", 405'853'388'800},
      {"mixtral-8x7b", 46'702'792'704},
      {"mixtral-8x22b", 140'620'634'112},
      {"deepseek-v2", 235'741'434'880},
      // Without prediction of further tokens; 58 routers have a bias for each of 256 experts.
      {"deepseek-v3", 671'026'419'200 - 58 * 256},
      {"kimi-k2", 1'026'408'232'448 - 60 * 384},
      {"moonlight-16b-a3b", 15'960'110'208 - 26 * 64},
      // Biases of four products, 64 sinks, and biases of routers and experts.
      {"gpt-oss-20b", 20'914'757'184 - 24 * (8000 + 64 + 32 + 32 * 3 * 2880)},
      {"gpt-oss-120b", 116'829'156'672 - 36 * (8000 + 64 + 128 + 128 * 3 * 2880)},
      {"grok-1", 315'684'820'992 - 64 * 2 * 6144},  // two further norms
      {"llama4-scout", 107'769'861'120},
      // Norms of queries and keys are left out.
      {"qwen3-0.6b", 596'049'920 - 28 * 256},
      {"qwen3-1.7b", 1'720'574'976 - 28 * 256},
      {"qwen3-4b", 4'022'468'096 - 36 * 256},
      {"qwen3-14b", 14'768'307'200 - 40 * 256},
      {"qwen3-8b", 8'190'735'360 - 36 * 256},
      {"qwen3-32b", 32'762'123'264 - 64 * 256},
      {"qwen3-30b-a3b", 30'532'122'624 - 48 * 256},
      {"qwen3-235b-a22b", 235'093'634'560 - 94 * 256},
      {"bert-base", 109'482'240 + 768 * 2 + 2},  // with its pooler; and a head of two classes
      {"bert-large", 335'141'888 + 1024 * 2 + 2},
      {"resnet-18", 11'689'512},
      {"resnet-34", 21'797'672},
      {"resnet-50", 25'557'032},
      {"resnet-101", 44'549'160},
      {"resnet-152", 60'192'808},
  };
  for (auto* of : {OfHybrids, OfBranches}) published.merge(of());
  for (const ir::ModelPreset& preset : ir::AllPresets()) {
    const std::string name(preset.name);
    ASSERT_EQ(published.count(name), 1u) << name;
    EXPECT_EQ(ParametersOf(name), published.at(name)) << name;
  }
}

// As the names say, in billions: what Korthikanti et al. and Brown et al. print.
TEST(Presets, AreAsLargeAsTheirNamesSay) {
  const std::map<std::string, double> billions = {
      {"gpt3-125m", 0.125}, {"gpt3-350m", 0.35},    {"gpt3-760m", 0.76},    {"gpt3-1.3b", 1.3},
      {"gpt3-2.7b", 2.7},   {"gpt3-6.7b", 6.7},     {"gpt3-13b", 13},       {"gpt3-175b", 175},
      {"megatron-22b", 22}, {"megatron-175b", 175}, {"megatron-530b", 530}, {"megatron-1t", 1008},
  };
  for (const auto& [name, size] : billions) {
    EXPECT_NEAR(static_cast<double>(ParametersOf(name)) / 1e9, size, 0.02 * size) << name;
  }
}

TEST(Presets, TakeOtherKeys) {
  EXPECT_EQ(ParametersOf("gpt2-small:tied_embeddings=0"), 163'037'184);
  EXPECT_EQ(ParametersOf("nemotron-3-super-120b-a12b:predicted=1"), 123'611'012'096);
  EXPECT_EQ(ParametersOf("gpt3-175b:seq=1024"), GptParameters(96, 12288, 50257, 1024));
  EXPECT_EQ(ParametersOf("bert-base:head=words"), 109'514'298);  // BertForMaskedLM: no pooler
}

// PyTorch's layout has as many: 4h(i + h + 2) a layer.
TEST(Lstm, HasItsParameters) {
  EXPECT_EQ(ParametersOf("lstm"), 10000 * 1500 + 2 * 4 * 1500 * (3000 + 2) + 1501 * 10000);
  EXPECT_EQ(ParametersOf("lstm:layers=3,hidden=32,input=8,vocab=100"),
            100 * 8 + 4 * 32 * (8 + 32 + 2) + 2 * 4 * 32 * (32 + 32 + 2) + 33 * 100);
}

}  // namespace
}  // namespace presets_test_cc
}  // namespace orrery
