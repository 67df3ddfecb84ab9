#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/models/families_test_util.h"
#include "ir/models/model.h"
#include "ir/models/model_test_util.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "ir/verifier.h"

// What each key of a family changes: parameters by formula, ops by name. Published sizes are for
// tests/models to check.

namespace orrery::ir {
namespace families_test_cc {
namespace {

// A small transformer, and how each key that stands behind it changes it.
// So many fields: a key each.
struct GptShape {
  int64_t layers = 2, hidden = 8, heads = 4, kv_heads = 4, head_dim = 2, ffn = 32, seq = 3,
          vocab = 11, experts = 0;
  bool bias = true, learned = true, tied = true, gated = false, rms = false;
};

int64_t Parameters(const GptShape& s) {
  const int64_t h = s.hidden, q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  const int64_t bias = s.bias ? 1 : 0, ups = s.gated ? 2 : 1;
  const int64_t norm = s.rms || !s.bias ? h : 2 * h;
  const int64_t attention = (h + bias) * (q + 2 * kv) + (q + bias) * h;
  const int64_t dense = ups * (h + bias) * s.ffn + (s.ffn + bias) * h;
  const int64_t sparse = h * s.experts + s.experts * (ups + 1) * h * s.ffn;
  const int64_t block = 2 * norm + attention + (s.experts > 0 ? sparse : dense);
  const int64_t ends = (s.tied ? 1 : 2) * s.vocab * h + (s.learned ? s.seq * h : 0) + norm;
  return s.layers * block + ends;
}

TEST(Gpt, HasTheParametersOfItsKeys) {
  const std::string base = "layers=2,hidden=8,heads=4,seq=3,vocab=11";
  struct Case {
    std::string keys;
    GptShape shape;
  };
  const std::vector<Case> cases = {
      {"layers=1", {.layers = 1}},
      {"layers=5", {.layers = 5}},
      {"vocab=12", {.vocab = 12}},
      {"seq=7", {.seq = 7}},
      {"kv_heads=2", {.kv_heads = 2}},
      {"kv_heads=1", {.kv_heads = 1}},
      {"head_dim=3", {.head_dim = 3}},
      {"heads=3,head_dim=5", {.heads = 3, .kv_heads = 3, .head_dim = 5}},
      {"ffn=7", {.ffn = 7}},
      {"bias=0", {.bias = false}},
      {"position=none", {.learned = false}},
      {"position=rotary", {.learned = false}},
      {"tied_embeddings=0", {.tied = false}},
      {"norm=rms", {.rms = true}},
      {"qkv=packed,kv_heads=2", {.kv_heads = 2}},
      {"flash=1,dropout=0.5", {}},
      {"experts=4,ffn=16", {.ffn = 16, .experts = 4}},
      {"experts=1,topk=1", {.experts = 1}},
      // Gated means all that Llama does; its width is 8/3, in multiples of 256.
      {"mlp=swiglu",
       {.ffn = 256, .bias = false, .learned = false, .tied = false, .gated = true, .rms = true}},
      {"mlp=swiglu,ffn=5,bias=1,position=learned,tied_embeddings=1,norm=layer",
       {.ffn = 5, .gated = true}},
      {"mlp=swiglu,ffn=5,experts=3,bias=1,position=learned,tied_embeddings=1,norm=layer",
       {.ffn = 5, .experts = 3, .gated = true}},
  };
  for (const Case& c : cases) {
    const Function function = BuildModel("gpt", absl::StrCat(base, ",", c.keys), 2);
    EXPECT_TRUE(Verify(function).ok()) << c.keys << ": " << Verify(function);
    EXPECT_EQ(ParametersOf(function), Parameters(c.shape)) << c.keys;
  }
}

// 8/3 of 96 is 256, of 97 a little more.
TEST(Gpt, RoundsTheWidthOfGatesUp) {
  const auto width = [](int64_t hidden) {
    const Function function = BuildModel(
        "gpt",
        absl::StrCat("layers=1,heads=1,seq=3,vocab=11,mlp=swiglu,position=none,hidden=", hidden),
        1);
    return Ops(function, "h.0.mlp.act");
  };
  EXPECT_EQ(width(95), "h.0.mlp.act: SwiGlu f32[1,3,256]\n");
  EXPECT_EQ(width(96), "h.0.mlp.act: SwiGlu f32[1,3,256]\n");
  EXPECT_EQ(width(97), "h.0.mlp.act: SwiGlu f32[1,3,512]\n");
}

TEST(Gpt, NormsBeforeAttentionAndFeedForward) {
  const Function function = BuildModel("gpt", "layers=1,hidden=8,heads=2,seq=3,vocab=11", 2);
  EXPECT_EQ(Ops(function, ""),
            "wte: Gather f32[2,3,8] {axis=0}\n"
            "wpe: Add f32[2,3,8]\n"
            "h.0.ln_1: LayerNorm f32[2,3,8] {axis=-1, epsilon=1e-05}\n"
            "h.0.attn.q: LinearGroup f32[2,3,8] {count=3}\n"
            "h.0.attn.core: Attention f32[2,3,8] {causal=1, heads=2, kv_heads=2, scale=0.5}\n"
            "h.0.attn.proj: Linear f32[2,3,8]\n"
            "h.0.attn.residual: Add f32[2,3,8]\n"
            "h.0.ln_2: LayerNorm f32[2,3,8] {axis=-1, epsilon=1e-05}\n"
            "h.0.mlp.up: Linear f32[2,3,32] {activation=\"gelu_tanh\"}\n"
            "h.0.mlp.down: Linear f32[2,3,8]\n"
            "h.0.mlp.residual: Add f32[2,3,8]\n"
            "ln_f: LayerNorm f32[2,3,8] {axis=-1, epsilon=1e-05}\n"
            "lm_head: MatMul f32[2,3,11] {transpose_w=1}\n"
            "loss: CrossEntropy f32[2,3] {batch=6}\n");
}

TEST(Gpt, WithSwigluIsLlama) {
  const Function function = BuildModel(
      "gpt", "layers=1,hidden=8,heads=2,kv_heads=1,seq=3,vocab=11,mlp=swiglu,flash=1,qkv=packed",
      2);
  EXPECT_EQ(Ops(function, "h.0.attn"),
            "h.0.attn.qkv: MatMul f32[2,3,16]\n"
            "h.0.attn.q: Split f32[2,3,8] {axis=2, sizes=[8, 4, 4]}\n"
            "h.0.attn.q_rot: Rotary f32[2,3,8]\n"
            "h.0.attn.k_rot: Rotary f32[2,3,4]\n"
            "h.0.attn.core: Attention f32[2,3,8] {causal=1, flash=1, heads=2, kv_heads=1, "
            "scale=0.5}\n"
            "h.0.attn.proj: MatMul f32[2,3,8]\n"
            "h.0.attn.residual: Add f32[2,3,8]\n");
  EXPECT_EQ(Ops(function, "l"),
            "ln_f: RmsNorm f32[2,3,8] {axis=-1, epsilon=1e-05}\n"
            "lm_head: MatMul f32[2,3,11]\n"
            "loss: CrossEntropy f32[2,3] {batch=6}\n");
}

// One expert keeps its share of all four; of two the shares add up to 1.
TEST(Gpt, RoutesTokensToExperts) {
  const std::string base = "layers=1,hidden=8,heads=2,seq=6,vocab=11,ffn=16,experts=4,topk=";
  EXPECT_EQ(Ops(BuildModel("gpt", base + "1", 2), "h.0.moe"),
            "h.0.moe.router: MatMul f32[2,6,4]\n"
            "h.0.moe.shares: Softmax f32[2,6,4] {axis=2}\n"
            "h.0.moe.chosen: TopK f32[2,6,1] {axis=2, k=1, largest=1, sorted=1}\n"
            "h.0.moe.slots: Route i32[4,2,2] {capacity_factor=1.0, experts=4}\n"
            "h.0.moe.dispatch: Dispatch f32[4,2,2,8]\n"
            "h.0.moe.rows: Reshape f32[4,4,8] {shape=[4, -1, 8]}\n"
            "h.0.moe.up: MatMul f32[4,4,16]\n"
            "h.0.moe.act: Gelu f32[4,4,16] {approximate=\"tanh\"}\n"
            "h.0.moe.down: MatMul f32[4,4,8]\n"
            "h.0.moe.slots_out: Reshape f32[4,2,2,8] {shape=[4, -1, 2, 8]}\n"
            "h.0.moe.combine: Combine f32[2,6,8] {size=6}\n");
  const Function two = BuildModel("gpt", base + "2,capacity_factor=1.5", 2);
  EXPECT_EQ(Ops(two, "h.0.moe.chosen"),
            "h.0.moe.chosen: TopK f32[2,6,2] {axis=2, k=2, largest=1, sorted=1}\n");
  EXPECT_EQ(Ops(two, "h.0.moe.shares"), "h.0.moe.shares: Softmax f32[2,6,2] {axis=2}\n");
  EXPECT_EQ(Ops(two, "h.0.moe.slots:"), "");
  EXPECT_EQ(Ops(two, "h.0.moe.dispatch"), "h.0.moe.dispatch: Dispatch f32[4,2,5,8]\n");
}

// Attention's dropout is that of the rest, unless it has its own.
TEST(Gpt, DropsWhereItSays) {
  const auto core = [](const std::string& keys) {
    const Function f = BuildModel("gpt", "layers=1,hidden=8,heads=2,seq=3,vocab=11," + keys, 2);
    return absl::StrCat(Ops(f, "drop"), Ops(f, "h.0.attn.drop"), Ops(f, "h.0.mlp.drop"),
                        Ops(f, "h.0.attn.core"));
  };
  const std::string attention = "h.0.attn.core: Attention f32[2,3,8] {causal=1, ";
  const std::string rest = "heads=2, kv_heads=2, scale=0.5}\n";
  const std::string drops =
      "drop: Dropout f32[2,3,8] {ratio=0.25}\n"
      "h.0.attn.drop: Dropout f32[2,3,8] {ratio=0.25}\n"
      "h.0.mlp.drop: Dropout f32[2,3,8] {ratio=0.25}\n";
  EXPECT_EQ(core("dropout=0"), attention + rest);
  EXPECT_EQ(core("dropout=0.25"), drops + attention + "dropout=0.25, " + rest);
  EXPECT_EQ(core("dropout=0.25,attention_dropout=0"), drops + attention + rest);
  EXPECT_EQ(core("attention_dropout=0.5"), attention + "dropout=0.5, " + rest);
}

TEST(Gpt, RefusesKeysThatDoNotGoTogether) {
  EXPECT_EQ(Refusal("gpt", "hidden=10,heads=3"),
            "hidden is 10; wanted a multiple of 3 heads, or try head_dim");
  EXPECT_EQ(Refusal("gpt", "hidden=10,heads=3,head_dim=4,layers=1"), "");
  EXPECT_EQ(Refusal("gpt", "hidden=8,heads=4,kv_heads=3"),
            "heads is 4; wanted a multiple of 3 kv_heads");
  EXPECT_EQ(Refusal("gpt", "hidden=6,heads=2,position=rotary"),
            "head_dim is 3; wanted an even number, or try position=learned");
  EXPECT_EQ(Refusal("gpt", "hidden=6,heads=2,layers=1"), "");
  EXPECT_EQ(Refusal("gpt", "hidden=8,heads=4,experts=2,topk=3"),
            "topk is 3; wanted at most 2 experts");
  EXPECT_EQ(Refusal("gpt", "hidden=8,heads=4,experts=2,topk=2,layers=1"), "");
  EXPECT_EQ(Refusal("gpt", "hidden=8,heads=4,experts=0,topk=3,layers=1"), "");
}

TEST(Bert, HasTheParametersOfItsHead) {
  const int64_t h = 8, ffn = 32, vocab = 11, seq = 3, layers = 2;
  const int64_t ends = (vocab + 2 + seq) * h + 2 * h;
  const int64_t block = 4 * (h * h + h) + 2 * h + (h + 1) * ffn + (ffn + 1) * h + 2 * h;
  const std::string base = "layers=2,hidden=8,heads=2,seq=3,vocab=11";
  EXPECT_EQ(ParametersOf(BuildModel("bert", base, 2)),
            ends + layers * block + (h * h + h) + (h + 1) * 2);
  EXPECT_EQ(ParametersOf(BuildModel("bert", base + ",classes=5", 2)),
            ends + layers * block + (h * h + h) + (h + 1) * 5);
  // The head is the matrix of the embedding and a bias for each word.
  EXPECT_EQ(ParametersOf(BuildModel("bert", base + ",head=words", 2)),
            ends + layers * block + (h * h + h) + 2 * h + vocab);
  EXPECT_EQ(Refusal("bert", "hidden=10,heads=3"), "hidden is 10; wanted a multiple of 3 heads");
}

TEST(Bert, NormsAfterAttentionAndFeedForward) {
  const std::string base = "layers=1,hidden=8,heads=2,seq=3,vocab=11,ffn=16,flash=1,dropout=0.5";
  EXPECT_EQ(Ops(BuildModel("bert", base, 2), "layer.0"),
            "layer.0.attn.q: LinearGroup f32[2,3,8] {count=3}\n"
            "layer.0.attn.core: Attention f32[2,3,8] {dropout=0.5, flash=1, heads=2, scale=0.5}\n"
            "layer.0.attn.proj: Linear f32[2,3,8]\n"
            "layer.0.attn.drop: Dropout f32[2,3,8] {ratio=0.5}\n"
            "layer.0.attn.residual: Add f32[2,3,8]\n"
            "layer.0.attn.norm: LayerNorm f32[2,3,8] {axis=-1, epsilon=1e-05}\n"
            "layer.0.mlp.up: Linear f32[2,3,16] {activation=\"gelu\"}\n"
            "layer.0.mlp.down: Linear f32[2,3,8]\n"
            "layer.0.mlp.drop: Dropout f32[2,3,8] {ratio=0.5}\n"
            "layer.0.mlp.residual: Add f32[2,3,8]\n"
            "layer.0.mlp.norm: LayerNorm f32[2,3,8] {axis=-1, epsilon=1e-05}\n");
  EXPECT_EQ(Ops(BuildModel("bert", base, 2), "pooler"),
            "pooler.token: Slice f32[2,1,8] {axes=[1], ends=[1], starts=[0], steps=[1]}\n"
            "pooler.row: Squeeze f32[2,8] {axes=[1]}\n"
            "pooler: Linear f32[2,8]\n"
            "pooler.act: Tanh f32[2,8]\n");
  const Function words = BuildModel("bert", base + ",head=words", 2);
  EXPECT_EQ(Ops(words, "words"),
            "words.transform: Linear f32[2,3,8] {activation=\"gelu\"}\n"
            "words.norm: LayerNorm f32[2,3,8] {axis=-1, epsilon=1e-05}\n"
            "words: Linear f32[2,3,11] {transpose_w=1}\n");
  EXPECT_EQ(Ops(words, "loss"), "loss: CrossEntropy f32[2,3] {batch=6}\n");
}

TEST(LstmModel, RunsOverTimeFirst) {
  const Function function =
      BuildModel("lstm", "layers=2,hidden=5,input=4,seq=3,vocab=11,dropout=0.5", 2);
  EXPECT_EQ(Ops(function, ""),
            "embedding: Gather f32[2,3,4] {axis=0}\n"
            "by_time: Transpose f32[3,2,4] {perm=[1, 0, 2]}\n"
            "lstm.0.drop: Dropout f32[3,2,4] {ratio=0.5}\n"
            "lstm.0: Lstm f32[3,1,2,5] {given=\"bias\"}\n"
            "lstm.0.y: Squeeze f32[3,2,5] {axes=[1]}\n"
            "lstm.1.drop: Dropout f32[3,2,5] {ratio=0.5}\n"
            "lstm.1: Lstm f32[3,1,2,5] {given=\"bias\"}\n"
            "lstm.1.y: Squeeze f32[3,2,5] {axes=[1]}\n"
            "drop: Dropout f32[3,2,5] {ratio=0.5}\n"
            "by_sample: Transpose f32[2,3,5] {perm=[1, 0, 2]}\n"
            "head: Linear f32[2,3,11]\n"
            "loss: CrossEntropy f32[2,3] {batch=6}\n");
  // Embedding, 4 h (i + h + 2) a layer, head.
  EXPECT_EQ(ParametersOf(function), 11 * 4 + 20 * (4 + 5 + 2) + 20 * (5 + 5 + 2) + 6 * 11);
}

// Convolutions and norms whose result has so many channels, as wide and high.
TEST(ResNet, HalvesItsImageFiveTimes) {
  const auto type = [](const std::string& keys, const std::string& name) {
    const Function function = BuildModel("resnet", "classes=7,image=64,width=4," + keys, 2);
    return Ops(function, name);
  };
  EXPECT_EQ(type("depth=18", "conv1"),
            "conv1: Conv f32[2,4,32,32] {pads=[3, 3, 3, 3], strides=[2, 2]}\n");
  EXPECT_EQ(type("depth=18", "maxpool"),
            "maxpool: MaxPool f32[2,4,16,16] {kernel=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]}\n");
  const std::string norm = " {activation=\"relu\", epsilon=1e-05, momentum=0.9, training=1}\n";
  EXPECT_EQ(type("depth=18", "layer4.0."),
            "layer4.0.downsample.conv: Conv f32[2,32,2,2] {pads=[0, 0, 0, 0], strides=[2, 2]}\n"
            "layer4.0.downsample.bn: BatchNorm f32[2,32,2,2] {epsilon=1e-05, momentum=0.9, "
            "training=1}\n"
            "layer4.0.conv1: Conv f32[2,32,2,2] {pads=[1, 1, 1, 1], strides=[2, 2]}\n"
            "layer4.0.bn1: BatchNorm f32[2,32,2,2]" +
                norm +
                "layer4.0.conv2: Conv f32[2,32,2,2] {pads=[1, 1, 1, 1], strides=[1, 1]}\n"
                "layer4.0.bn2: BatchNorm f32[2,32,2,2]" +
                norm);
  EXPECT_EQ(type("depth=18", "layer1.0.downsample"), "");
  // Bottlenecks: the 3x3 has the stride, and four times as many channels leave.
  EXPECT_EQ(type("depth=50", "layer2.0.conv"),
            "layer2.0.conv1: Conv f32[2,8,16,16] {pads=[0, 0, 0, 0], strides=[1, 1]}\n"
            "layer2.0.conv2: Conv f32[2,8,8,8] {pads=[1, 1, 1, 1], strides=[2, 2]}\n"
            "layer2.0.conv3: Conv f32[2,32,8,8] {pads=[0, 0, 0, 0], strides=[1, 1]}\n");
  EXPECT_EQ(type("depth=50", "layer1.0.downsample.conv"),
            "layer1.0.downsample.conv: Conv f32[2,16,16,16] {pads=[0, 0, 0, 0], strides=[1, 1]}\n");
  EXPECT_EQ(type("depth=50", "layer1.1.downsample"), "");
  EXPECT_EQ(type("depth=50", "avgpool"), "avgpool: ReduceMean f32[2,128] {axes=[2, 3]}\n");
  EXPECT_EQ(type("depth=50", "fc"), "fc: Linear f32[2,7]\n");
}

// Depths count convolutions and the product, without those that only change the channels.
TEST(ResNet, IsAsDeepAsItSays) {
  for (const int64_t depth : {18, 34, 50, 101, 152}) {
    const Function function =
        BuildModel("resnet", absl::StrCat("classes=7,image=32,width=1,depth=", depth), 1);
    int64_t layers = 0;
    for (const OpId op : function.order()) {
      const std::string name(function.value_name(function.result(op)));
      const absl::string_view kind = function.info(op).name;
      const bool counts = kind == "Conv" || kind == "Linear";
      layers += counts && name.find("downsample") == std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(layers, depth);
  }
  EXPECT_EQ(Refusal("resnet", "depth=51"), "there is no such depth");
}

TEST(ModelValues, FallBackWhereTheyAreNotGiven) {
  ModelValues values(3, DType::kBF16);
  values.Set("layers", "7");
  values.Set("dropout", "0.25");
  values.Set("mlp", "swiglu");
  EXPECT_EQ(values.batch(), 3);
  EXPECT_EQ(values.dtype(), DType::kBF16);
  EXPECT_TRUE(values.Has("layers"));
  EXPECT_FALSE(values.Has("heads"));
  EXPECT_EQ(values.Int("layers"), 7);
  EXPECT_EQ(values.Int("layers", 5), 7);
  EXPECT_EQ(values.Int("heads", 5), 5);
  EXPECT_EQ(values.Number("dropout"), 0.25);
  EXPECT_EQ(values.Text("mlp"), "swiglu");
  EXPECT_EQ(values.Text("norm", "layer"), "layer");
  values.Set("layers", "8");
  EXPECT_EQ(values.Int("layers"), 8);
}

// What a user is told of a key holds: a default lies in its range, or is one of the choices.
TEST(Families, HaveKeysWithDefaultsInRange) {
  std::vector<std::string> names;
  for (const ModelInfo* family : AllModels()) {
    names.emplace_back(family->name);
    for (const ModelKey& key : family->keys) {
      SCOPED_TRACE(absl::StrCat(family->name, ":", key.name));
      if (!key.choices.empty()) {
        const std::vector<std::string> choices = absl::StrSplit(key.choices, '|');
        EXPECT_GE(choices.size(), 2u);
        const bool found = std::find(choices.begin(), choices.end(), key.fallback) != choices.end();
        EXPECT_TRUE(key.fallback.empty() || found);
        continue;
      }
      if (!key.letters.empty()) {
        EXPECT_EQ(key.fallback.find_first_not_of(key.letters), absl::string_view::npos);
        continue;
      }
      EXPECT_LT(key.min, key.max);
      if (key.fallback.empty()) continue;
      const double fallback = std::stod(std::string(key.fallback));
      EXPECT_GE(fallback, key.min);
      EXPECT_LE(fallback, key.max);
      EXPECT_TRUE(key.real || fallback == std::floor(fallback));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"mlp", "gpt", "hybrid", "bert", "resnet", "inception",
                                             "lstm"}));
}

}  // namespace
}  // namespace families_test_cc
}  // namespace orrery::ir
