#include "transforms/stages/forward_layers.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/training_step.h"

// Layers as text: each a line, by the first results of its first and last op that have a name.

namespace orrery::transforms {
namespace forward_layers_test_cc {
namespace {

std::string LayersText(const ir::Function& forward, std::span<const LayerRange> layers) {
  std::string text;
  for (const LayerRange& layer : layers) {
    std::string first, last;
    for (int32_t position = layer.begin; position < layer.end; ++position) {
      const ir::OpId op = forward.order()[static_cast<size_t>(position)];
      if (forward.result_count(op) == 0) continue;
      const std::string name(forward.value_name(forward.result(op)));
      if (name.empty()) continue;
      if (first.empty()) first = name;
      last = name;
    }
    absl::StrAppend(&text, first, " .. ", last, "\n");
  }
  return text;
}

// Of a function that is a stage by itself.
std::string LayersText(ir::Function forward) {
  StageFunction part{.function = std::move(forward), .origins = {}};
  for (int32_t v = 0; v < part.function.value_limit(); ++v) part.origins.emplace_back(v);
  const StageFunction* parts[] = {&part};
  return LayersText(part.function, FindLayers(parts)[0]);
}

ir::Function Step(absl::string_view family, absl::string_view keys) {
  ir::Function step = ir::BuildModel(family, keys, 4);
  EXPECT_TRUE(MakeTrainingStep(step, {}).ok());
  return step;
}

// Of all stages; a line between them.
std::string LayersOf(const PipelinedStep& step) {
  std::vector<const StageFunction*> forwards;
  for (const PipelineStage& stage : step.stages) forwards.push_back(&stage.forward);
  const auto layers = FindLayers(forwards);
  std::string text;
  for (size_t s = 0; s < forwards.size(); ++s) {
    absl::StrAppend(&text, s == 0 ? "" : "\n", LayersText(forwards[s]->function, layers[s]));
  }
  return text;
}

// Of the step, parallelized in that way.
std::string LayersOf(const ir::Function& step, const ParallelPlan& plan = {}) {
  const PlainPrices prices(MakeMesh(plan).value(), {});
  const auto pipelined =
      ParallelTransform3d(step, ByFlops(plan), {.prices = plan.by_pattern() ? &prices : nullptr});
  EXPECT_TRUE(pipelined.ok()) << pipelined.status();
  return pipelined.ok() ? LayersOf(*pipelined) : "";
}

constexpr char kGpt[] = "layers=3,hidden=8,heads=2,seq=4,vocab=8,tied_embeddings=0";

// Attention and feed-forward are one layer; embedding and head are none.
TEST(FindLayers, OfATransformer) {
  const std::string expected = R"(h.0.ln_1 .. h.0.mlp.residual
h.1.ln_1 .. h.1.mlp.residual
h.2.ln_1 .. h.2.mlp.residual
)";
  EXPECT_EQ(LayersOf(Step("gpt", kGpt)), expected);
  EXPECT_EQ(LayersOf(Step("gpt", absl::StrCat(kGpt, ",dropout=0.1,qkv=packed"))), expected);
  EXPECT_EQ(LayersOf(Step("gpt", absl::StrCat(kGpt, ",mlp=swiglu,ffn=8,flash=1"))), expected);
  EXPECT_EQ(LayersOf(Step("gpt", "layers=2,hidden=8,heads=2,seq=4,vocab=8,experts=4")),
            R"(h.0.ln_1 .. h.0.mlp.residual
h.1.ln_1 .. h.1.mlp.residual
)");
}

// What repeats is long, and itself repetition: its layers are those of the pattern.
TEST(FindLayers, OfSeveralKinds) {
  EXPECT_EQ(
      LayersOf(Step("hybrid",
                    "pattern=M-M-*-M-M-*-M-,hidden=8,heads=2,seq=4,vocab=8,ffn=16,mamba_heads="
                    "4,mamba_dim=2,groups=2,state=2")),
      R"(h.0.ln_1 .. h.0.residual
h.1.ln_1 .. h.1.residual
h.2.ln_1 .. h.2.residual
h.3.ln_1 .. h.3.residual
h.4.ln_1 .. h.4.residual
h.5.ln_1 .. h.5.residual
h.6.ln_1 .. h.6.residual
h.7.ln_1 .. h.7.residual
h.8.ln_1 .. h.8.residual
h.9.ln_1 .. h.9.residual
h.10.ln_1 .. h.10.residual
h.11.ln_1 .. h.11.residual
h.12.ln_1 .. h.12.residual
h.13.ln_1 .. h.13.residual
)");
}

// Norms that come last belong to the layer before them.
TEST(FindLayers, OfAnEncoder) {
  EXPECT_EQ(LayersOf(Step("bert", "layers=2,hidden=8,heads=2,seq=4,vocab=8,classes=4")),
            R"(layer.0.attn.q .. layer.0.mlp.norm
layer.1.attn.q .. layer.1.mlp.norm
pooler .. pooler.act
classifier .. classifier
)");
}

TEST(FindLayers, AreTheSameHoweverAStepIsSharded) {
  const ir::Function step = Step("gpt", kGpt);
  const std::string whole = LayersOf(step);
  EXPECT_EQ(LayersOf(step, {.dp = 2, .hp = 2}), whole);
  EXPECT_EQ(LayersOf(step, {.microbatches = 2}), whole);
  EXPECT_EQ(LayersOf(step, {.hp = 2, .sequence_parallel = SequenceParallel::kOn}), whole);
  const ir::Function mlp = ir::Mlp({.layers = 3, .dim = 4, .batch = 4}).value();
  EXPECT_EQ(LayersOf(mlp), "y0 .. a0\ny1 .. a1\ny2 .. a2\n");
  // Sums of row products stay with them.
  EXPECT_EQ(LayersOf(mlp, {.hp = 2}), "y0 .. a0\ny1.partial .. a1\ny2 .. a2\n");
}

// What is a layer shows in the whole model. One that stages share is a layer in each.
TEST(FindLayers, OfStages) {
  const ir::Function step = Step("gpt", kGpt);
  EXPECT_EQ(LayersOf(step, {.pp = 2}), R"(h.0.ln_1 .. h.0.mlp.residual
h.1.ln_1 .. h.1.attn.residual

h.1.attn.residual .. h.1.mlp.residual
h.2.ln_1 .. h.2.mlp.residual
)");
  EXPECT_EQ(LayersOf(step, {.pp = 3}), R"(h.0.ln_1 .. h.0.mlp.residual

h.0.mlp.residual .. h.1.mlp.residual

h.1.mlp.residual .. h.2.mlp.residual
)");
}

// Two pipelines are two models with the same layers.
TEST(FindLayers, OfTwoPipelines) {
  const ir::Function step = Step("gpt", kGpt);
  const std::string one = LayersOf(step, {.pp = 2, .microbatches = 2});
  const PipelinedStep both =
      ParallelTransform3d(step, ByFlops({.pp = 2, .microbatches = 2}),
                          {.chunks = 2, .placement = StagePlacement::kTwoWay})
          .value();
  ASSERT_EQ(both.stages.size(), 4u);
  EXPECT_EQ(LayersOf(both), absl::StrCat(one, "\n", one));
}

// Blocks of another width do not repeat, and each is a layer all the same.
TEST(FindLayers, OfAConvolutionalNet) {
  EXPECT_EQ(LayersOf(Step("resnet", "depth=18,image=32,width=2,classes=4")), R"(conv1 .. maxpool
layer1.0.conv1 .. layer1.0.bn2
layer1.1.conv1 .. layer1.1.bn2
layer2.0.downsample.conv .. layer2.0.bn2
layer2.1.conv1 .. layer2.1.bn2
layer3.0.downsample.conv .. layer3.0.bn2
layer3.1.conv1 .. layer3.1.bn2
layer4.0.downsample.conv .. layer4.0.bn2
layer4.1.conv1 .. avgpool
fc .. fc
)");
}

TEST(FindLayers, OfARecurrentNet) {
  EXPECT_EQ(LayersOf(Step("lstm", "layers=2,hidden=16,seq=3,vocab=8")), R"(lstm.0 .. lstm.0.y
lstm.1 .. lstm.1.y
head .. head
)");
}

// A mask that is made of data crosses all layers, and what an encoder has made all of the decoder.
constexpr char kMasked[] = R"(func @masked (
  %x: f32[4,6,8] data,
  %m: f32[4,6] data,
  %w0: f32[8,8] parameter,
  %w1: f32[8,8] parameter,
  %w2: f32[8,8] parameter,
  %w3: f32[8,8] parameter,
  %z: f32[4,6,8] data
) {
  %mask: f32[4,6,1] = Reshape(%m) {shape=[4, 6, 1]}
  %soft: f32[4,6,1] = Scale(%mask) {factor=2.0}
  %p0: f32[4,6,8] = MatMul(%x, %w0)
  %q0: f32[4,6,8] = Mul(%p0, %soft)
  %y0: f32[4,6,8] = Add(%x, %q0)
  %p1: f32[4,6,8] = MatMul(%y0, %w1)
  %q1: f32[4,6,8] = Mul(%p1, %soft)
  %y1: f32[4,6,8] = Add(%y0, %q1)
  %p2: f32[4,6,8] = MatMul(%y1, %w2)
  %q2: f32[4,6,8] = Mul(%p2, %soft)
  %y2: f32[4,6,8] = Add(%y1, %q2)
  %p3: f32[4,6,8] = MatMul(%y2, %w3)
  %q3: f32[4,6,8] = Mul(%p3, %soft)
  %y3: f32[4,6,8] = Add(%y2, %q3)
  %l: f32[4,6,8] = Loss(%y3, %z) {batch=4}
  return %l: loss
}
)";

TEST(FindLayers, ThatReadOneMask) {
  EXPECT_EQ(LayersText(ir::ParseFunction(kMasked).value()), R"(p0 .. y0
p1 .. y1
p2 .. y2
p3 .. y3
)");
}

// An encoder of narrow layers, and a decoder whose layers read what it has made.
TEST(FindLayers, OfTwoPartsThatRepeat) {
  std::string text = "func @both (\n  %x: f32[4,8] data,\n  %t: f32[4,8] data,\n";
  for (int i = 0; i < 9; ++i) absl::StrAppend(&text, "  %w", i, ": f32[8,8] parameter,\n");
  absl::StrAppend(&text, "  %z: f32[4,8] data\n) {\n");
  std::string x = "x";
  for (int i = 0; i < 3; ++i) {
    absl::StrAppend(&text, "  %a", i, ": f32[4,8] = MatMul(%", x, ", %w", i, ")\n  %b", i,
                    ": f32[4,8] = Relu(%a", i, ")\n");
    x = absl::StrCat("b", i);
  }
  std::string y = "t";
  for (int i = 0; i < 3; ++i) {
    absl::StrAppend(&text, "  %c", i, ": f32[4,8] = MatMul(%", y, ", %w", 3 + 2 * i, ")\n  %d", i,
                    ": f32[4,8] = MatMul(%", x, ", %w", 4 + 2 * i, ")\n  %e", i,
                    ": f32[4,8] = Mul(%c", i, ", %d", i, ")\n  %f", i, ": f32[4,8] = Add(%", y,
                    ", %e", i, ")\n");
    y = absl::StrCat("f", i);
  }
  absl::StrAppend(&text, "  %l: f32[4,8] = Loss(%", y, ", %z) {batch=4}\n  return %l: loss\n}\n");
  EXPECT_EQ(LayersText(ir::ParseFunction(text).value()), R"(a0 .. b0
a1 .. b1
a2 .. b2
c0 .. f0
c1 .. f1
c2 .. f2
)");
}

// Nothing is narrow in between: one layer of all.
TEST(FindLayers, WithoutACutPoint) {
  EXPECT_EQ(LayersText(ir::ParseFunction(R"(func @wide (
  %x: f32[4,8] data,
  %w0: f32[8,8] parameter,
  %w1: f32[8,8] parameter,
  %z: f32[4,8] data
) {
  %a: f32[4,8] = MatMul(%x, %w0)
  %b: f32[4,8] = MatMul(%x, %w1)
  %c: f32[4,8] = Relu(%b)
  %y: f32[4,8] = Mul(%a, %c)
  %l: f32[4,8] = Loss(%y, %z) {batch=4}
  return %l: loss
}
)")
                           .value()),
            "a .. y\n");
  EXPECT_EQ(LayersText(ir::Function()), "");
}

}  // namespace
}  // namespace forward_layers_test_cc
}  // namespace orrery::transforms
