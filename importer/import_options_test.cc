#include "importer/import_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace import_options_test_cc {
namespace {

// Its first inputs have a batch that is open; the shape of the last result is a value.
onnx::ModelProto Model() {
  return ModelOf(R"(
g (float[N,6] x, int64[2] shape) => (float[N,6] y, float[] z)
<float[6] scale = {}, float[6] bias = {}> {
  h = Mul(x, scale)
  y = Add(h, bias)
  z = Reshape(x, shape)
})");
}

std::string Head(const std::string& text) { return text.substr(0, text.find(')')); }

const ir::Tensor kShape = ir::Tensor::OfShape({-1, 3});

TEST(ImportOptions, BindTheBatchByNameOrAsSuch) {
  const std::string by_name =
      ImportText(Model(), {.symbols = {{"N", 4}}, .values = {{"shape", kShape}}});
  EXPECT_EQ(Head(by_name), R"(
func @m (
  %x: f32[4,6] data,
  %scale: f32[6] parameter,
  %bias: f32[6] parameter
)");
  // Both, and not alike: nobody knows which is meant.
  EXPECT_THAT(
      ImportText(Model(), {.symbols = {{"N", 4}}, .batch_size = 32, .values = {{"shape", kShape}}}),
      testing::HasSubstr("batch 32 and symbol 'N'=4 disagree about dimension 0 of 'x'"));
  EXPECT_NE(ImportText(Model(), {.symbols = {{"N", 8}}, .values = {{"shape", kShape}}}), by_name);
}

TEST(ImportOptions, FreezeParametersThatMatchSomewhere) {
  EXPECT_EQ(Head(ImportText(
                Model(),
                {.symbols = {{"N", 4}}, .values = {{"shape", kShape}}, .roles = {.freeze = "ia"}})),
            R"(
func @m (
  %x: f32[4,6] data,
  %scale: f32[6] parameter,
  %bias: f32[6] buffer
)");
}

}  // namespace
}  // namespace import_options_test_cc
}  // namespace orrery::importer
