#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/results_test_util.h"
#include "ir/tensor.h"

// What the ops of neural nets compute, by hand; what they cost; how their gradients are made; and
// what they say when they cannot. That gradients are derivatives is for op_gradient_test.cc to say.

namespace orrery::ir {
namespace neural_test_cc {
namespace {

Tensor F(Dims dims, std::vector<double> values) {
  return Tensor::OfFloats(DType::kF32, std::move(dims), std::move(values));
}
Tensor I(Dims dims, std::vector<int64_t> values) {
  return Tensor::OfInts(DType::kI64, std::move(dims), std::move(values));
}
// 1, 2, 3 …
Tensor Counted(Dims dims) {
  Tensor tensor(DType::kF32, std::move(dims));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetNumber(i, static_cast<double>(i) + 1);
  return tensor;
}
Tensor Filled(Dims dims, double value) {
  Tensor tensor(DType::kF32, std::move(dims));
  for (double& element : tensor.floats()) element = value;
  return tensor;
}

struct Application {
  TypeList results;
  std::string error;
  double flops = 0;
};

Application Infer(OpKind kind, const std::vector<TensorType>& operands,
                  const AttributeSet& attributes = {}) {
  std::vector<const TensorType*> pointers;
  for (const TensorType& operand : operands) pointers.push_back(&operand);
  const Mesh mesh;
  const OpTypes op = {.attributes = attributes, .operands = pointers, .mesh = mesh};
  Application application;
  const absl::Status status = InferTypes(kind, op, application.results);
  application.error = std::string(status.message());
  if (status.ok() && GetOpInfo(kind).flops != nullptr) {
    application.flops = GetOpInfo(kind).flops(op, application.results);
  }
  return application;
}

std::string Error(OpKind kind, const std::vector<Dims>& shapes,
                  const AttributeSet& attributes = {}) {
  std::vector<TensorType> types;
  for (const Dims& dims : shapes) types.push_back({DType::kF32, dims, {}});
  return Infer(kind, types, attributes).error;
}

// The ops of the gradient of an op with all operands wanted, in order: "MatMul ReduceSum".
std::string GradientKinds(OpKind kind, const std::vector<Dims>& shapes,
                          const AttributeSet& attributes = {}, uint32_t wanted = ~0U) {
  Builder b("f");
  std::vector<ValueId> operands, seeds;
  for (size_t i = 0; i < shapes.size(); ++i) {
    operands.push_back(b.Parameter(absl::StrCat("x", i), {DType::kF32, shapes[i], {}}));
  }
  const OpId op = b.Ops(kind, operands, {}, attributes);
  EXPECT_TRUE(b.status().ok()) << b.status();
  const TensorType type = b.type(b.function().result(op));
  seeds.push_back(b.Data("dy", type));
  for (int32_t j = 1; j < b.function().result_count(op); ++j) seeds.push_back(ValueId());
  IdTable<ValueId, char> needed(b.function().value_limit(), 0);
  for (size_t i = 0; i < operands.size(); ++i) needed[operands[i]] = (wanted >> i & 1) != 0;
  GradientContext context(b, op, seeds, needed);
  EXPECT_TRUE(GetOpInfo(kind).gradient(context).ok());
  std::vector<std::string> kinds;
  for (const OpId made : b.function().order()) {
    if (made != op) kinds.emplace_back(b.function().info(made).name);
  }
  return absl::StrJoin(kinds, " ");
}

AttributeSet Equation(const char* equation) { return {{"equation", std::string(equation)}}; }

TEST(MatMul, BroadcastsLeadingDimensions) {
  const Tensor x = Counted({2, 1, 1, 2}), w = Counted({2, 2, 1});
  EXPECT_EQ(Results(OpKind::kMatMul, {x, w})[0], F({2, 2, 1, 1}, {5, 11, 11, 25}));
  const Tensor whole = Results(OpKind::kMatMul, {I({1, 2}, {3, -4}), I({2, 1}, {5, 2})})[0];
  EXPECT_EQ(whole, I({1, 1}, {7}));
}

TEST(MatMul, OfMatricesWithoutElementsIsZero) {
  EXPECT_EQ(Results(OpKind::kMatMul, {F({2, 0}, {}), F({0, 1}, {})})[0], F({2, 1}, {0, 0}));
}

TEST(MatMul, HasFusedGradientsForAPlainWeight) {
  const AttributeSet flip = {{"transpose_x", int64_t{1}}};
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{2, 3, 4}, {4, 5}}), "MatMulGrad");
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{2, 4, 3}, {4, 5}}, flip), "MatMulGrad");
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{2, 3, 4}, {4, 5}}, {}, 0b10), "MatMulWeightGrad");
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{3, 4}, {4, 5}}, {}, 0b10), "MatMul");
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{2, 3, 4}, {4, 5}}, {}, 0b01), "MatMul");
}

TEST(MatMul, OfBatchesHasProductsAsGradients) {
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{2, 3, 4}, {2, 4, 5}}), "MatMul MatMul");
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{2, 3, 4}, {1, 4, 5}}), "MatMul MatMul ReduceSum");
  EXPECT_EQ(GradientKinds(OpKind::kMatMul, {{3, 4}, {2, 4, 5}}), "MatMul ReduceSum MatMul");
}

TEST(Einsum, ReadsItsEquation) {
  const Tensor x = Counted({2, 2});
  EXPECT_EQ(Results(OpKind::kEinsum, {x}, Equation("ii->i"))[0], F({2}, {1, 4}));
  EXPECT_EQ(Results(OpKind::kEinsum, {x}, Equation("ij->ji"))[0], F({2, 2}, {1, 3, 2, 4}));
  EXPECT_EQ(Results(OpKind::kEinsum, {x, x}, Equation("ij,ij->"))[0], F({}, {30}));
  EXPECT_EQ(Error(OpKind::kEinsum, {{2, 2}}, Equation("ij")),
            "equation \"ij\" has no one arrow; wanted letters as in \"bik,bkj->bij\"");
  EXPECT_EQ(Error(OpKind::kEinsum, {{2, 3}, {2, 3}}, Equation("ij,jk->ik")),
            "'j' has size 3 and size 2");
  EXPECT_EQ(Error(OpKind::kEinsum, {{2, 3}}, Equation("ij->ik")),
            "equation \"ij->ik\" makes its result of letters that no operand has; wanted letters "
            "as in \"bik,bkj->bij\"");
}

TEST(Einsum, HasEinsumsAsGradients) {
  EXPECT_EQ(GradientKinds(OpKind::kEinsum, {{2, 3}, {3, 4}}, Equation("ij,jk->ki")),
            "Einsum Einsum");
  EXPECT_EQ(GradientKinds(OpKind::kEinsum, {{2, 3}, {3, 4}}, Equation("ij,jk->i")),
            "Einsum EinsumGrad");
}

TEST(Conv, SumsOverTheWindow) {
  const Tensor x = Counted({1, 1, 3, 3}), w = Filled({1, 1, 2, 2}, 1);
  EXPECT_EQ(Results(OpKind::kConv, {x, w})[0], F({1, 1, 2, 2}, {12, 16, 24, 28}));
  EXPECT_EQ(Results(OpKind::kConv, {x, w, F({1}, {1})},
                    {{"strides", std::vector<int64_t>{2, 2}},
                     {"pads", std::vector<int64_t>{1, 1, 0, 0}}})[0],
            F({1, 1, 2, 2}, {2, 6, 12, 29}));
}

TEST(Conv, OfGroupsKeepsThemApart) {
  const Tensor x = Counted({1, 2, 2}), w = F({2, 1, 2}, {1, 1, 10, 10});
  EXPECT_EQ(Results(OpKind::kConv, {x, w}, {{"group", int64_t{2}}})[0], F({1, 2, 1}, {3, 70}));
}

TEST(Conv, TransposedSpreadsEachElement) {
  const Tensor x = F({1, 1, 2}, {1, 10}), w = F({1, 1, 3}, {1, 2, 3});
  EXPECT_EQ(
      Results(OpKind::kConvTranspose, {x, w},
              {{"strides", std::vector<int64_t>{2}}, {"spatial", std::vector<int64_t>{5}}})[0],
      F({1, 1, 5}, {1, 2, 13, 20, 30}));
}

// The first convolution of resnet-50: 118 million multiply-adds an image.
TEST(Conv, CostsTwoAMultiplyAdd) {
  const TensorType image = {DType::kF32, {1, 3, 224, 224}, {}};
  const TensorType weight = {DType::kF32, {64, 3, 7, 7}, {}};
  const AttributeSet sliding = {{"strides", std::vector<int64_t>{2, 2}},
                                {"pads", std::vector<int64_t>{3, 3, 3, 3}}};
  const Application forward = Infer(OpKind::kConv, {image, weight}, sliding);
  EXPECT_EQ(forward.results[0].dims, Dims({1, 64, 112, 112}));
  EXPECT_EQ(forward.flops, 2.0 * 118013952);
  AttributeSet data = sliding, weights = sliding;
  data.Set("spatial", std::vector<int64_t>{224, 224});
  weights.Set("kernel", std::vector<int64_t>{7, 7});
  EXPECT_EQ(Infer(OpKind::kConvDataGrad, {forward.results[0], weight}, data).flops, forward.flops);
  EXPECT_EQ(Infer(OpKind::kConvWeightGrad, {image, forward.results[0]}, weights).flops,
            forward.flops);
}

// Multiply-adds of a convolution with padding as half its kernel; `size` becomes that of its maps.
double MultiplyAdds(int64_t channels, int64_t maps, int64_t kernel, int64_t stride, int64_t& size) {
  const int64_t pad = kernel / 2;
  const Application conv = Infer(OpKind::kConv,
                                 {{DType::kF32, {1, channels, size, size}, {}},
                                  {DType::kF32, {maps, channels, kernel, kernel}, {}}},
                                 {{"strides", std::vector<int64_t>{stride, stride}},
                                  {"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
  size = conv.results[0].dims[2];
  return conv.flops / 2;
}

// He et al. 2015 with the stride in the middle of a block, as frameworks have it: 4.09 billion.
TEST(Conv, MakesResnet50) {
  int64_t size = 224, channels = 64;
  double total = MultiplyAdds(3, 64, 7, 2, size);
  size = 56;  // behind the pool
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      int64_t skipped = size;
      if (block == 0) total += MultiplyAdds(channels, 4 * width, 1, stride, skipped);
      total += MultiplyAdds(channels, width, 1, 1, size);
      total += MultiplyAdds(width, width, 3, stride, size);
      total += MultiplyAdds(width, 4 * width, 1, 1, size);
      channels = 4 * width;
    }
  }
  EXPECT_EQ(size, 7);
  EXPECT_NEAR(total + 2048 * 1000, 4.09e9, 0.005e9);
}

TEST(Conv, SaysWhatDoesNotFit) {
  EXPECT_EQ(Error(OpKind::kConv, {{1, 3, 4, 4}, {2, 2, 3, 3}}),
            "got 3 channels in 1 groups and weights for 2 channels a group");
  EXPECT_EQ(Error(OpKind::kConv, {{1, 3, 4, 4}, {2, 3, 5, 3}}),
            "a window that reaches over 5 does not fit into spatial dimension 0 of 4 with padding "
            "0 and 0");
  EXPECT_EQ(Error(OpKind::kConv, {{1, 3, 4, 4}, {2, 3, 3}}),
            "got shapes [1,3,4,4] and [2,3,3]; wanted as many dimensions");
  EXPECT_EQ(Error(OpKind::kConv, {{1, 3, 4}, {2, 3, 3}}, {{"strides", std::vector<int64_t>{0}}}),
            "strides=[0]; wanted 1 numbers of at least 1");
  EXPECT_EQ(Error(OpKind::kConv, {{1, 3, 4}, {2, 3, 3}}, {{"group", int64_t{2}}}),
            "group=2 does not divide 3 channels and 2 maps");
}

AttributeSet Kernel(int64_t size, int64_t stride) {
  return {{"kernel", std::vector<int64_t>{size}}, {"strides", std::vector<int64_t>{stride}}};
}

TEST(Pools, LookAtWindows) {
  const Tensor x = F({1, 1, 5}, {1, 5, 2, 0, 3});
  EXPECT_EQ(Results(OpKind::kMaxPool, {x}, Kernel(2, 2))[0], F({1, 1, 2}, {5, 2}));
  AttributeSet attributes = Kernel(2, 2);
  attributes.Set("ceil_mode", int64_t{1});
  attributes.Set("indices", int64_t{1});
  const std::vector<Tensor> maximum = Results(OpKind::kMaxPool, {x}, attributes);
  EXPECT_EQ(maximum[0], F({1, 1, 3}, {5, 2, 3}));
  EXPECT_EQ(maximum[1], I({1, 1, 3}, {1, 2, 4}));
  EXPECT_EQ(Results(OpKind::kMaxUnpool, {maximum[0], maximum[1]},
                    {{"spatial", std::vector<int64_t>{5}}})[0],
            F({1, 1, 5}, {0, 5, 2, 0, 3}));
  EXPECT_EQ(Results(OpKind::kAveragePool, {x}, Kernel(2, 2))[0], F({1, 1, 2}, {3, 1}));
  EXPECT_EQ(Results(OpKind::kLpPool, {F({1, 1, 2}, {3, -4})}, Kernel(2, 1))[0], F({1, 1, 1}, {5}));
}

TEST(Pools, DivideByWhatTheyCount) {
  const Tensor x = F({1, 1, 3}, {2, 4, 6});
  AttributeSet attributes = Kernel(2, 2);
  attributes.Set("pads", std::vector<int64_t>{1, 0});
  EXPECT_EQ(Results(OpKind::kAveragePool, {x}, attributes)[0], F({1, 1, 2}, {2, 5}));
  attributes.Set("count_include_pad", int64_t{1});
  EXPECT_EQ(Results(OpKind::kAveragePool, {x}, attributes)[0], F({1, 1, 2}, {1, 5}));
}

TEST(Normalizations, CenterAndScale) {
  const Tensor x = F({2, 2}, {1, 3, -2, 2});
  const AttributeSet none = {{"epsilon", 0.0}};
  const std::vector<Tensor> rows =
      Results(OpKind::kLayerNorm, {x, Filled({2}, 2), Filled({2}, 1)}, none);
  EXPECT_EQ(rows[0], F({2, 2}, {-1, 3, -1, 3}));
  EXPECT_EQ(rows[1], F({2, 1}, {2, 0}));
  EXPECT_EQ(rows[2], F({2, 1}, {1, 0.5}));
  const Tensor one = Filled({2}, 1), zero = Filled({2}, 0);
  const std::vector<Tensor> columns =
      Results(OpKind::kBatchNorm, {F({2, 2}, {1, 4, 3, 8}), one, zero, zero, one},
              {{"epsilon", 0.0}, {"training", int64_t{1}}, {"momentum", 0.75}});
  EXPECT_EQ(columns[0], F({2, 2}, {-1, -1, 1, 1}));
  EXPECT_EQ(columns[1], F({2}, {2, 6}));
  EXPECT_EQ(columns[3], F({2}, {0.5, 1.5}));
  EXPECT_EQ(columns[4], F({2}, {1, 1.75}));
}

TEST(CrossEntropy, IsTheLikelihoodOfTheLabel) {
  const Tensor logits = F({2, 2}, {0, 0, std::log(3.0), 0}), labels = I({2}, {1, 0});
  const AttributeSet batch = {{"batch", int64_t{2}}};
  const Tensor loss = Results(OpKind::kCrossEntropy, {logits, labels}, batch)[0];
  EXPECT_NEAR(loss.Number(0), std::log(2.0) / 2, 1e-6);
  EXPECT_NEAR(loss.Number(1), std::log(4.0 / 3) / 2, 1e-6);
  const Tensor gradient = Results(OpKind::kCrossEntropyGrad, {logits, labels}, batch)[0];
  const double expected[] = {0.25, -0.25, -0.125, 0.125};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(gradient.Number(i), expected[i], 1e-6);
}

// One unit, one step: all weights one, no bias.
TEST(Recurrent, NetsTakeAStep) {
  const Tensor x = F({1, 1, 1}, {1}), h = F({1, 1, 1}, {1});
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double rnn = std::tanh(2.0);
  EXPECT_NEAR(Results(OpKind::kRnn, {x, Filled({1, 1, 1}, 1), Filled({1, 1, 1}, 1), h},
                      {{"given", "initial_h"}})[0]
                  .Number(0),
              rnn, 1e-6);
  const double gate = sigmoid(2);
  const double cell = gate * 0.5 + gate * rnn;
  const std::vector<Tensor> lstm = Results(
      OpKind::kLstm, {x, Filled({1, 4, 1}, 1), Filled({1, 4, 1}, 1), h, F({1, 1, 1}, {0.5})},
      {{"given", "initial_h,initial_c"}});
  EXPECT_NEAR(lstm[0].Number(0), gate * std::tanh(cell), 1e-6);
  EXPECT_NEAR(lstm[2].Number(0), cell, 1e-6);
  const double candidate = std::tanh(1 + gate);
  EXPECT_NEAR(Results(OpKind::kGru, {x, Filled({1, 3, 1}, 1), Filled({1, 3, 1}, 1), h},
                      {{"given", "initial_h"}})[0]
                  .Number(0),
              (1 - gate) * candidate + gate, 1e-6);
}

TEST(Recurrent, SequencesEndWhereTheySay) {
  const Tensor x = Filled({3, 2, 1}, 1), w = Filled({1, 1, 1}, 1);
  const Tensor lengths = I({2}, {1, 3});
  const std::vector<Tensor> results =
      Results(OpKind::kRnn, {x, w, w, lengths},
              {{"given", "sequence_lens"}, {"activations", "Affine"}, {"direction", "reverse"}});
  EXPECT_EQ(results[0], F({3, 1, 2, 1}, {1, 3, 0, 2, 0, 1}));
  EXPECT_EQ(results[1], F({1, 2, 1}, {1, 3}));
}

TEST(Recurrent, NetsCostTheirProducts) {
  const TensorType x = {DType::kF32, {5, 2, 3}, {}}, w = {DType::kF32, {1, 16, 3}, {}},
                   r = {DType::kF32, {1, 16, 4}, {}};
  EXPECT_EQ(Infer(OpKind::kLstm, {x, w, r}).flops, 2.0 * 5 * 2 * 16 * (3 + 4));
  EXPECT_EQ(Error(OpKind::kLstm, {{5, 2, 3}, {1, 12, 3}, {1, 16, 4}}),
            "operand 1 has shape [1,12,3]; wanted [1,16,3] [directions,gates·hidden,input]");
  EXPECT_EQ(Error(OpKind::kRnn, {{5, 2, 3}, {1, 4, 3}, {1, 4, 4}, {1, 8}}),
            "got 4 operands; wanted 3, as the attributes name them");
}

TEST(Fourier, TransformsBack) {
  const Tensor x = Counted({1, 4, 1});
  const Tensor y = Results(OpKind::kDft, {x}, {{"axis", int64_t{1}}})[0];
  const double expected[] = {10, 0, -2, 2, -2, 0, -2, -2};
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(y.Number(i), expected[i], 1e-6);
  const Tensor back =
      Results(OpKind::kDft, {y}, {{"axis", int64_t{1}}, {"inverse", int64_t{1}}})[0];
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(back.Number(2 * i), x.Number(i), 1e-6);
}

}  // namespace
}  // namespace neural_test_cc
}  // namespace orrery::ir
