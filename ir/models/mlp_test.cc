#include "ir/models/mlp.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/text/text.h"
#include "ir/verifier.h"

namespace orrery::ir {
namespace mlp_test_cc {
namespace {

// What the notebook's mlp(batch_size=64, …=16, num_hidden_layers=2) writes: its wA and wB are w0
// and w1 here, its attribute N is batch, and the gradients are said to be some.
TEST(Mlp, IsTheNotebooks) {
  const auto mlp = Mlp({.layers = 2, .dim = 16, .batch = 64});
  ASSERT_TRUE(mlp.ok()) << mlp.status();
  EXPECT_EQ(Print(*mlp), R"(func @mlp (
  %x: f32[64,16] data,
  %z: f32[64,16] data,
  %w0: f32[16,16] parameter,
  %w1: f32[16,16] parameter
) {
  %y0: f32[64,16] = MatMul(%x, %w0)
  %a0: f32[64,16] = Relu(%y0)
  %y1: f32[64,16] = MatMul(%a0, %w1)
  %a1: f32[64,16] = Relu(%y1)
  %l: f32[64,16] = Loss(%a1, %z) {batch=64}
  %dl: f32[64,16] = LossGrad(%a1, %z) {batch=64}
  %da1: f32[64,16] = ReluGrad(%y1, %dl)
  %dy1: f32[64,16], %dw1: f32[16,16] = MatMulGrad(%a0, %w1, %da1)
  %da0: f32[64,16] = ReluGrad(%y0, %dy1)
  %dy0: f32[64,16], %dw0: f32[16,16] = MatMulGrad(%x, %w0, %da0)
  return %l: loss, %dw1: gradient(%w1), %dy0: result, %dw0: gradient(%w0)
}
)");
}

// The notebook's mlp(batch_size=64, input_dim=4, hidden_dim=16, output_dim=2, num_hidden_layers=3).
TEST(Mlp, HasTheNotebooksWidths) {
  const auto mlp = Mlp({.layers = 3, .input = 4, .hidden = 16, .output = 2, .batch = 64});
  ASSERT_TRUE(mlp.ok()) << mlp.status();
  EXPECT_EQ(Print(*mlp), R"(func @mlp (
  %x: f32[64,4] data,
  %z: f32[64,2] data,
  %w0: f32[4,16] parameter,
  %w1: f32[16,16] parameter,
  %w2: f32[16,2] parameter
) {
  %y0: f32[64,16] = MatMul(%x, %w0)
  %a0: f32[64,16] = Relu(%y0)
  %y1: f32[64,16] = MatMul(%a0, %w1)
  %a1: f32[64,16] = Relu(%y1)
  %y2: f32[64,2] = MatMul(%a1, %w2)
  %a2: f32[64,2] = Relu(%y2)
  %l: f32[64,2] = Loss(%a2, %z) {batch=64}
  %dl: f32[64,2] = LossGrad(%a2, %z) {batch=64}
  %da2: f32[64,2] = ReluGrad(%y2, %dl)
  %dy2: f32[64,16], %dw2: f32[16,2] = MatMulGrad(%a1, %w2, %da2)
  %da1: f32[64,16] = ReluGrad(%y1, %dy2)
  %dy1: f32[64,16], %dw1: f32[16,16] = MatMulGrad(%a0, %w1, %da1)
  %da0: f32[64,16] = ReluGrad(%y0, %dy1)
  %dy0: f32[64,4], %dw0: f32[4,16] = MatMulGrad(%x, %w0, %da0)
  return %l: loss, %dw2: gradient(%w2), %dw1: gradient(%w1), %dy0: result, %dw0: gradient(%w0)
}
)");
}

// One that is not given is dim, whatever the others are.
TEST(Mlp, WidthsFallBackToDimOneByOne) {
  const auto weights = [](const MlpShape& shape) {
    const Function mlp = Mlp(shape).value();
    std::vector<std::string> types;
    for (const Input& input : mlp.inputs()) {
      if (input.role == InputRole::kParameter) types.push_back(ToString(mlp.type(input.value), {}));
    }
    return types;
  };
  using testing::ElementsAre;
  EXPECT_THAT(weights({.layers = 2, .dim = 8, .batch = 4}), ElementsAre("f32[8,8]", "f32[8,8]"));
  EXPECT_THAT(weights({.layers = 2, .dim = 8, .input = 3, .batch = 4}),
              ElementsAre("f32[3,8]", "f32[8,8]"));
  EXPECT_THAT(weights({.layers = 2, .dim = 8, .hidden = 3, .batch = 4}),
              ElementsAre("f32[8,3]", "f32[3,8]"));
  EXPECT_THAT(weights({.layers = 2, .dim = 8, .output = 3, .batch = 4}),
              ElementsAre("f32[8,8]", "f32[8,3]"));
  EXPECT_THAT(weights({.layers = 1, .dim = 8, .input = 3, .output = 5, .batch = 4}),
              ElementsAre("f32[3,5]"));
}

TEST(Mlp, OneLayerHidesNothing) {
  EXPECT_EQ(
      Mlp({.layers = 1, .dim = 8, .hidden = 4, .batch = 4}).status().message(),
      "mlp: got hidden=4 with layers=1, which has nothing between input and output; wanted at "
      "least 2 layers; try input and output alone");
}

TEST(Mlp, VerifiesWithFourOpsALayerAndTwo) {
  for (const int64_t layers : {1, 2, 3, 64}) {
    const auto mlp = Mlp({.layers = layers, .dim = 8, .batch = 4, .dtype = DType::kBF16});
    ASSERT_TRUE(mlp.ok()) << mlp.status();
    EXPECT_TRUE(Verify(*mlp).ok()) << Verify(*mlp);
    EXPECT_EQ(mlp->order().size(), static_cast<size_t>(4 * layers + 2));
    EXPECT_EQ(mlp->inputs().size(), static_cast<size_t>(layers + 2));
  }
}

// l, dw_{L-1} … dw_1, dy_0, dw_0: the order in which the notebook's ops make what nothing uses.
TEST(Mlp, ReturnsLossThenGradientsFromTheLastLayerOn) {
  const auto mlp = Mlp({.layers = 4, .dim = 8, .batch = 4});
  ASSERT_TRUE(mlp.ok()) << mlp.status();
  std::vector<std::string> outputs;
  for (const Output& output : mlp->outputs()) {
    outputs.push_back(
        absl::StrCat(std::string(mlp->value_name(output.value)), " ", ToString(output.role)));
    if (output.of.valid()) absl::StrAppend(&outputs.back(), " ", PrintValue(*mlp, output.of));
  }
  EXPECT_THAT(outputs, testing::ElementsAre("l loss", "dw3 gradient %w3", "dw2 gradient %w2",
                                            "dw1 gradient %w1", "dy0 result", "dw0 gradient %w0"));
}

TEST(Mlp, RefusesShapesThatAreNone) {
  // Regression: a negative number of layers threw, and none left a dead op.
  EXPECT_EQ(Mlp({.layers = 0}).status().message(), "mlp: got 0 layers; wanted 1 to 1000000");
  EXPECT_EQ(Mlp({.layers = -1}).status().message(), "mlp: got -1 layers; wanted 1 to 1000000");
  EXPECT_FALSE(Mlp({.layers = int64_t{1} << 40}).ok());
  EXPECT_EQ(
      Mlp({.layers = 1, .dim = 16, .batch = 0}).status().message(),
      "mlp: input 'x' is f32[0,16]; wanted at most 30 dimensions of at least 1 and at most 2^60 "
      "bytes");
  EXPECT_FALSE(Mlp({.layers = 1, .dim = -16, .batch = 4}).ok());
}

}  // namespace
}  // namespace mlp_test_cc
}  // namespace orrery::ir
