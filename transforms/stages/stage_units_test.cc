#include "transforms/stages/stage_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"

// Units as text: each by the first named value of its ops; what is no layer in brackets.

namespace orrery::transforms {
namespace stage_units_test_cc {
namespace {

std::string UnitsText(const ir::Function& step, UnitSize size) {
  const ForwardChain chain = FindChain(step, FindPhases(step));
  std::string text;
  for (const StageUnit& unit : FindUnits(step, chain, size)) {
    absl::string_view name;
    for (size_t at = unit.begin; name.empty() && at < chain.ops.size(); ++at) {
      name = step.value_name(step.result(chain.ops[at]));
    }
    absl::StrAppend(&text, text.empty() ? "" : " ", unit.layer ? "" : "[", name,
                    unit.layer ? "" : "]");
  }
  return text;
}

// A block begins where nothing but the residual stream crosses, and so does its second half.
TEST(FindUnits, OfGpt) {
  const ir::Function step =
      ModelStep("gpt", "layers=3,hidden=8,heads=2,seq=4,vocab=32,tied_embeddings=0", 4);
  EXPECT_EQ(UnitsText(step, UnitSize::kLayers), "wte h.1.ln_1 h.2.ln_1 [ln_f]");
  EXPECT_EQ(UnitsText(step, UnitSize::kParts),
            "wte h.0.ln_2 h.1.ln_1 h.1.ln_2 h.2.ln_1 h.2.ln_2 ln_f");
}

// Without fused kernels there are many more ops, and the same layers.
TEST(FindUnits, OfGptOpByOp) {
  ir::Function step =
      ir::BuildModel("gpt", "layers=3,hidden=8,heads=2,seq=4,vocab=32,tied_embeddings=0", 4);
  ASSERT_TRUE(MakeTrainingStep(step, {.optimizer = "adam", .simplify = false}).ok());
  EXPECT_EQ(UnitsText(step, UnitSize::kLayers), "wte h.1.ln_1 h.2.ln_1 [ln_f]");
}

// Layers are those of the model, whatever links make of shardings: what is gathered is one value
// with its parts, and what deals out data is no part of a layer.
TEST(FindUnits, OfModelsHoweverTheyAreSharded) {
  const std::array<std::pair<const char*, const char*>, 5> models = {{
      {"gpt", "layers=2,hidden=16,heads=2,seq=4,vocab=32,mlp=swiglu,experts=4,tied_embeddings=0"},
      {"mlp", "layers=7,dim=16"},
      {"resnet", "depth=18,image=32,width=4,classes=4"},
      {"bert", "layers=3,hidden=16,heads=2,seq=4,vocab=32,classes=4"},
      {"lstm", "layers=3,hidden=8,seq=4,vocab=16"},
  }};
  for (const auto& [family, keys] : models) {
    const ir::Function step = ModelStep(family, keys, 4);
    const std::string layers = UnitsText(step, UnitSize::kLayers);
    const auto count = [](const ir::Function& of) {
      return FindUnits(of, FindChain(of, FindPhases(of)), UnitSize::kLayers).size();
    };
    for (const ir::Mesh& mesh :
         {ir::Mesh({{"dp", 1}, {"hp", 2}, {"ep", 2}}), ir::Mesh({{"dp", 2}, {"hp", 2}})}) {
      for (const double link : {1e3, 1e6, 1e9, 1e15}) {
        const PlainPrices prices(mesh, {.flops = 1e9, .bytes = 1e9, .link = link, .latency = 1e-9});
        const auto sharded = AutoShard(step, mesh, BatchedInputs(step), prices);
        ASSERT_TRUE(sharded.ok()) << sharded.status();
        EXPECT_EQ(count(*sharded), count(step))
            << family << ", " << link << ": " << UnitsText(*sharded, UnitSize::kLayers)
            << "; of one device " << layers;
      }
    }
  }
}

// Of several kinds in a long block that repeats: a layer each.
TEST(FindUnits, OfHybrids) {
  const ir::Function step =
      ModelStep("hybrid",
                "pattern=M-M-*-M-M-*-M-,hidden=8,heads=2,seq=4,vocab=32,ffn=16,mamba_heads=4,"
                "mamba_dim=2,groups=2,state=2",
                4);
  EXPECT_EQ(UnitsText(step, UnitSize::kLayers),
            "wte h.1.ln_1 h.2.ln_1 h.3.ln_1 h.4.ln_1 h.5.ln_1 h.6.ln_1 h.7.ln_1 h.8.ln_1 h.9.ln_1 "
            "h.10.ln_1 h.11.ln_1 h.12.ln_1 h.13.ln_1 [ln_f]");
}

// A norm behind the residual stream goes with what follows; that of the last layer with the pooler.
TEST(FindUnits, OfBert) {
  const ir::Function step =
      ModelStep("bert", "layers=4,hidden=8,heads=2,seq=4,vocab=32,classes=4", 4);
  EXPECT_EQ(UnitsText(step, UnitSize::kLayers),
            "embeddings.word layer.0.mlp.norm layer.1.mlp.norm layer.2.mlp.norm "
            "[layer.3.mlp.norm] [classifier]");
}

// Every other layer is wider, as where every other one has experts; each is a layer all the same.
TEST(FindUnits, OfLayersThatTakeTurns) {
  constexpr std::array<int, 6> kWidths = {4, 5, 4, 4, 6, 4};  // of each product's result
  std::string inputs = "  %x: f32[8,4] data", ops;
  std::string last = "x";
  int width = 4;
  for (size_t i = 0; i < 18; ++i) {
    const int next = kWidths[i % kWidths.size()];
    absl::StrAppend(&inputs, ",\n  %w", i, ": f32[", width, ",", next, "] parameter");
    absl::StrAppend(&ops, "  %y", i, ": f32[8,", next, "] = MatMul(%", last, ", %w", i, ")\n");
    last = absl::StrCat("y", i);
    width = next;
  }
  const ir::Function step = ir::ParseFunction(absl::StrCat("func @f (\n", inputs, "\n) {\n", ops,
                                                           "  return %", last, ": result\n}\n"))
                                .value();
  EXPECT_EQ(UnitsText(step, UnitSize::kLayers), "y0 y3 y6 y9 y12 y15");
}

// Blocks of four widths, of which no one makes up most: all are layers, and so are both ends.
TEST(FindUnits, OfResnet) {
  const ir::Function step = ModelStep("resnet", "depth=18,image=32,width=2,classes=4", 4);
  EXPECT_EQ(UnitsText(step, UnitSize::kLayers),
            "conv1 layer1.0.conv1 layer1.1.conv1 layer2.0.downsample.conv layer2.1.conv1 "
            "layer3.0.downsample.conv layer3.1.conv1 layer4.0.downsample.conv layer4.1.conv1 "
            "avgpool");
}

TEST(FindUnits, OfProducts) {
  const ir::Function mlp = ir::Mlp({.layers = 4, .dim = 4, .batch = 4}).value();
  for (const UnitSize size : {UnitSize::kLayers, UnitSize::kParts, UnitSize::kProducts}) {
    EXPECT_EQ(UnitsText(mlp, size), "y0 y1 y2 y3");
  }
}

TEST(CountLayers, CountsThoseThatBeginInAStage) {
  const ir::Function step =
      ModelStep("gpt", "layers=6,hidden=16,heads=2,seq=8,vocab=64,tied_embeddings=0", 4);
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(step);
  const ForwardChain chain = FindChain(step, phase);
  const std::vector<StageUnit> units = FindUnits(step, chain, UnitSize::kLayers);
  ASSERT_EQ(units.size(), 7u);  // a classifier is none
  EXPECT_EQ(CountLayers(step, chain, {}), (std::vector<int64_t>{6}));
  EXPECT_EQ(CountLayers(step, chain, {units[1].begin, units[5].begin}),
            (std::vector<int64_t>{1, 4, 1}));
  EXPECT_EQ(CountLayers(step, chain, {units[1].begin + 1, units[6].begin}),
            (std::vector<int64_t>{2, 4, 0}));
}

}  // namespace
}  // namespace stage_units_test_cc
}  // namespace orrery::transforms
