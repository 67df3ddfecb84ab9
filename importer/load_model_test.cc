#include "importer/load_model.h"

#include <gtest/gtest.h>

#include "importer/builtin_models.h"
#include "importer/onnx_test_util.h"
#include "ir/models/mlp.h"
#include "ir/verifier.h"

namespace orrery::importer {
namespace load_model_test_cc {
namespace {

std::string Load(const ModelSpec& spec) { return TextOf(LoadModel(spec)); }

constexpr char kText[] = R"(
func @f (
  %x: f32[8,16] data,
  %w: f32[16,4] parameter
) {
  %y: f32[8,4] = MatMul(%x, %w)
  return %y: result
}
)";

TEST(LoadModel, BuiltinMlp) {
  const auto expected = ir::Mlp({.layers = 2, .dim = 16, .batch = 4, .dtype = ir::DType::kBF16});
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(Load({.model = "mlp:layers=2,dim=16", .batch_size = 4, .dtype = ir::DType::kBF16}),
            absl::StrCat("\n", ir::Print(*expected)));
}

TEST(LoadModel, BuiltinDefaults) {
  const auto expected = ir::Mlp({});  // the notebook's: 64 layers of 8192, batch 8192, f32
  ASSERT_TRUE(expected.ok());
  const std::string text = absl::StrCat("\n", ir::Print(*expected));
  EXPECT_EQ(Load({.model = "mlp:layers=64,dim=8192"}), text);
  EXPECT_EQ(Load({.model = "mlp"}), text);
}

TEST(LoadModel, LargestMlp) {  // what the bounds let through verifies
  const auto function = LoadModel({.model = "mlp:layers=1,dim=16777216",
                                   .batch_size = int64_t{1} << 32,
                                   .dtype = ir::DType::kF64});
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_TRUE(ir::Verify(*function).ok());
}

TEST(LoadModel, BuiltinErrors) {
  EXPECT_EQ(Load({.model = "mlp:layer=2"}),
            "mlp:layer=2: unknown key 'layer'; wanted layers, dim, input, hidden, output");
  EXPECT_EQ(Load({.model = "mlp:"}),
            "mlp:: unknown key ''; wanted layers, dim, input, hidden, output");
  EXPECT_EQ(Load({.model = "mlp:layers=2,"}),
            "mlp:layers=2,: unknown key ''; wanted layers, dim, input, hidden, output");
  EXPECT_EQ(Load({.model = "mlp:layers=1,layers=2"}),
            "mlp:layers=1,layers=2: layers stands twice; wanted it once");
  const auto layers = [](const std::string& value) {
    return absl::StrCat("mlp:layers", value, ": layers is '", value.empty() ? "" : value.substr(1),
                        "'; wanted a whole number from 1 to 1000000");
  };
  for (const std::string value :
       {"", "=", "=x", "=1.5", "=2x", "=0", "=-1", "=1000001", "=99999999999999999999"}) {
    EXPECT_EQ(Load({.model = absl::StrCat("mlp:layers", value)}), layers(value));
  }
  EXPECT_EQ(Load({.model = "mlp", .batch_size = -1}), "mlp: batch is -1; wanted at least 1");
  EXPECT_EQ(Load({.model = "mlp", .batch_size = int64_t{1} << 33}),
            "mlp: batch is 8589934592; wanted 1 to 4294967296");
  EXPECT_EQ(Load({.model = "mlp", .symbols = {{"batch", 8}}}),
            "mlp: has no dynamic dimensions; symbol 'batch' is for an ONNX file");
}

TEST(LoadModel, NoModel) {
  EXPECT_EQ(Load({.model = "MLP:layers=1"}),
            "MLP:layers=1: is no model; did you mean mlp? `list-models` names all");
  for (const std::string name : {"", "yolo9", "model.pb", "onnx"}) {
    EXPECT_EQ(Load({.model = name}),
              absl::StrCat(name, ": is no model; wanted FILE.onnx, FILE.orr or a built-in one: ",
                           BuiltinModels()));
  }
}

TEST(LoadModel, TextFile) {
  const std::string path = WriteTestFile("f.orr", kText);
  EXPECT_EQ(Load({.model = path}), kText);
  EXPECT_EQ(Load({.model = path, .batch_size = 32, .dtype = ir::DType::kBF16}), R"(
func @f (
  %x: bf16[32,16] data,
  %w: bf16[16,4] parameter
) {
  %y: bf16[32,4] = MatMul(%x, %w)
  return %y: result
}
)");
}

TEST(LoadModel, TextErrors) {
  EXPECT_EQ(Load({.model = "/nowhere/f.orr"}), "/nowhere/f.orr: no such file");
  EXPECT_EQ(Load({.model = WriteTestFile("bad.orr", "func @f (\n  %x: f99[8] data\n")}),
            "bad.orr:2:7: found 'f99'; wanted a type, such as f32[8,16]");
  EXPECT_EQ(Load({.model = WriteTestFile("none.orr", "// nothing\n")}),
            "none.orr: found 0 functions; wanted one");
  EXPECT_EQ(Load({.model = WriteTestFile("dead.orr",
                                         "func @f (%x: f32[8] data) {\n  %y: f32[8] = Relu(%x)\n"
                                         "  return %x: result\n}\n")}),
            "dead.orr: f: %y (Relu): nothing uses its results; wanted no dead op; opt FILE.orr "
            "--passes dead-code prints the text without it");
}

onnx::ModelProto Onnx(const std::string& batch) {
  return ModelOf(absl::StrCat("g (float[", batch, ",16] x) => (float[", batch,
                              ",4] y) <float[16,4] w = {}> { y = MatMul(x, w) }"));
}

TEST(LoadModel, OnnxBatch) {
  const std::string fixed = WriteTestFile("f.onnx", Onnx("8").SerializeAsString());
  EXPECT_EQ(Load({.model = fixed}), kText);
  const std::string rebound = Load({.model = fixed, .batch_size = 32});
  EXPECT_NE(rebound.find("%y: f32[32,4] = MatMul"), std::string::npos) << rebound;
  const std::string dynamic = WriteTestFile("f.onnx", Onnx("N").SerializeAsString());
  EXPECT_EQ(Load({.model = dynamic, .batch_size = 32}), rebound);
  EXPECT_EQ(Load({.model = dynamic, .batch_size = 32, .symbols = {{"N", 4}}}),
            "f.onnx: batch 32 and symbol 'N'=4 disagree about dimension 0 of 'x', which is the "
            "batch; try one of both, or batch_first=True where dimension 0 is time");
  EXPECT_EQ(Load({.model = dynamic}),
            "f.onnx: no value for the dynamic dimension 'N' (dimension 0 of 'x'); try `batch-size` "
            "N");
}

TEST(LoadModel, OnnxThatFixesItsBatchInside) {
  const std::string path = WriteTestFile(
      "f.onnx",
      ModelOf("g (float[8,16] x) => (float[16,4] y) <float[8,4] w = {}> { t = Transpose(x)\n"
              "y = MatMul(t, w) }")
          .SerializeAsString());
  EXPECT_EQ(Load({.model = path, .batch_size = 32}),
            "f.onnx: batch 32 in place of 8: f: MatMul 'y' cannot follow the batch: inner "
            "dimensions differ; got 16 and 8; try "
            "to export the model with a dynamic batch: torch.onnx.export(…, dynamic_axes={'x': {0: "
            "'batch'}})");
}

}  // namespace
}  // namespace load_model_test_cc
}  // namespace orrery::importer
