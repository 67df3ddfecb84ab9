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
