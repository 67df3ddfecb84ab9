#include "tools/emitters/model_shape.h"

#include <gtest/gtest.h>

#include <string>

#include "importer/builtin_models.h"

namespace orrery::tools {
namespace model_shape_test_cc {
namespace {

// All that a decoder without experts is made of, from its shape alone.
int64_t ParametersOf(const ModelShape& s) {
  const int64_t queries = s.heads * s.head_dim, keys = s.kv_heads * s.head_dim;
  const int64_t attention = s.hidden * (queries + 2 * keys) + queries * s.hidden;
  const int64_t feed_forward = (s.swiglu ? 3 : 2) * s.hidden * s.ffn;
  const int64_t norm = s.hidden * (s.bias ? 2 : 1);
  const int64_t biases =
      s.bias ? queries + 2 * keys + 2 * s.hidden + s.ffn : 0;  // of four and two products
  const int64_t tables =
      s.vocab * s.hidden * (s.tied ? 1 : 2) + (s.learned ? s.sequence * s.hidden : 0);
  return s.layers * (attention + feed_forward + 2 * norm + biases) + norm + tables;
}

// What it says comes to the parameters that the model has.
TEST(ModelShape, IsThatOfTheModel) {
  for (const std::string model :
       {"gpt2-small", "gpt3-1.3b", "llama2-7b", "llama3-8b",
        "gpt:layers=3,hidden=96,heads=4,kv_heads=2,mlp=swiglu,vocab=100,seq=8",
        "gpt:layers=2,hidden=64,heads=4,head_dim=32,norm=rms,bias=0,position=none,vocab=64,seq="
        "8"}) {
    const auto shape = ShapeOfModel(model);
    ASSERT_TRUE(shape.has_value()) << model;
    const ir::Function function = importer::BuildBuiltinModel(model, 1, ir::DType::kBF16).value();
    int64_t parameters = 0;
    for (const ir::Input& input : function.inputs()) {
      if (input.role != ir::InputRole::kParameter) continue;
      parameters += ir::ElementCount(function.type(input.value).dims);
    }
    EXPECT_EQ(ParametersOf(*shape), parameters) << model;
  }
}

TEST(ModelShape, IsKnownOfBuiltInDecodersAlone) {
  EXPECT_FALSE(ShapeOfModel("mlp:layers=4,dim=64").has_value());
  EXPECT_FALSE(ShapeOfModel("model.onnx").has_value());
  EXPECT_FALSE(ShapeOfModel("gpt:no=1").has_value());
  const auto mixture = ShapeOfModel("gpt:experts=8,topk=3,shared_ffn=64,dense_layers=1");
  EXPECT_EQ(mixture->experts, 8);
  EXPECT_EQ(mixture->topk, 3);
  EXPECT_EQ(mixture->expert_ffn, mixture->ffn);
}

}  // namespace
}  // namespace model_shape_test_cc
}  // namespace orrery::tools
