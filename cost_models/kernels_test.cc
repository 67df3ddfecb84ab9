#include <gtest/gtest.h>

#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/matrix_product.h"
#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

namespace orrery::cost_models {
namespace kernels_test_cc {
namespace {

using ir::DType;
using ir::OpKind;
using ir::ProductShape;
using ir::ProductShapes;

constexpr DType kHalf = DType::kBF16;

cluster::Device H100() { return *cluster::FindDevice("h100-80gb"); }

Duration TimeOf(const OpFixture& op) {
  EXPECT_TRUE(op.status().ok()) << op.status();
  return (*MakeCostModel("kernels"))->Compute(op.view(), H100());
}

Duration Sustained(const ProductShape& shape) {
  return PriceProduct(shape, {}, H100(), H100().rates.sustained).time;
}

TEST(Kernels, AProductTakesAllRowsAtOnce) {
  const OpFixture op(OpKind::kMatMul, {Tensor({4, 512, 1024}, kHalf), Tensor({1024, 2048}, kHalf)});
  EXPECT_EQ(ProductsOf(op.view()), (ProductShapes{{.m = 2048, .n = 2048, .k = 1024}}));
  EXPECT_EQ(TimeOf(op), Sustained({.m = 2048, .n = 2048, .k = 1024}) + H100().launch_overhead);
}

TEST(Kernels, ProductsOfManyMatricesAreABatch) {
  const OpFixture op(OpKind::kMatMul, {Tensor({4, 512, 64}, kHalf), Tensor({4, 256, 64}, kHalf)},
                     {{"transpose_w", int64_t{1}}});
  EXPECT_EQ(ProductsOf(op.view()), (ProductShapes{{.batch = 4, .m = 512, .n = 256, .k = 64}}));
}

TEST(Kernels, ABackwardIsTwoProducts) {
  const OpFixture op(
      OpKind::kMatMulGrad,
      {Tensor({2, 512, 1024}, kHalf), Tensor({1024, 2048}, kHalf), Tensor({2, 512, 2048}, kHalf)});
  EXPECT_EQ(ProductsOf(op.view()),
            (ProductShapes{{.m = 1024, .n = 1024, .k = 2048}, {.m = 1024, .n = 2048, .k = 1024}}));
}

TEST(Kernels, AWeightGradientSumsOverRows) {
  const OpFixture op(OpKind::kMatMulWeightGrad,
                     {Tensor({2, 512, 1024}, kHalf), Tensor({2, 512, 256}, kHalf)});
  EXPECT_EQ(ProductsOf(op.view()), (ProductShapes{{.m = 1024, .n = 256, .k = 1024}}));
}

TEST(Kernels, WeightsOfAGroupStandSideBySide) {
  const ir::TensorType x = Tensor({512, 64}, kHalf), q = Tensor({64, 128}, kHalf),
                       k = Tensor({64, 32}, kHalf);
  const OpFixture group(OpKind::kLinearGroup, {x, q, k}, {{"count", int64_t{2}}});
  EXPECT_EQ(ProductsOf(group.view()), (ProductShapes{{.m = 512, .n = 160, .k = 64}}));
  const OpFixture back(OpKind::kLinearGroupGrad,
                       {x, q, k, Tensor({512, 128}, kHalf), Tensor({512, 32}, kHalf)},
                       {{"count", int64_t{2}}});
  EXPECT_EQ(ProductsOf(back.view()),
            (ProductShapes{{.m = 512, .n = 64, .k = 160}, {.m = 64, .n = 160, .k = 512}}));
}

// What an activation is applied to is a second result of one product.
TEST(Kernels, ALinearIsOneProduct) {
  const OpFixture op(OpKind::kLinear, {Tensor({512, 64}, kHalf), Tensor({64, 128}, kHalf)},
                     {{"activation", std::string("gelu")}});
  EXPECT_EQ(ProductsOf(op.view()), (ProductShapes{{.m = 512, .n = 128, .k = 64}}));
}

TEST(Kernels, ShapesHaveTheFlopsOfTheirOps) {
  const OpFixture ops[] = {
      OpFixture(OpKind::kMatMul, {Tensor({3, 8, 16}, kHalf), Tensor({3, 16, 4}, kHalf)}),
      OpFixture(OpKind::kMatMulGrad,
                {Tensor({3, 8, 16}, kHalf), Tensor({16, 4}, kHalf), Tensor({3, 8, 4}, kHalf)})};
  for (const OpFixture& op : ops) {
    double flops = 0;
    for (const ProductShape& s : ProductsOf(op.view())) {
      flops += 2.0 * static_cast<double>(s.batch * s.m * s.n * s.k);
    }
    EXPECT_EQ(flops, FlopsOf(op.view()).count());
  }
}

// Its figures, not its name, are what a device is priced by.
TEST(Kernels, PriceDevicesThatDifferInARateApart) {
  const auto kernels = *MakeCostModel("kernels");
  const OpFixture op(OpKind::kMatMul, {Tensor({4096, 4096}, kHalf), Tensor({4096, 4096}, kHalf)});
  const cluster::Device device = H100();
  cluster::Device slower = device;
  slower.rates.half.efficiency *= 0.5;
  EXPECT_GT(kernels->Compute(op.view(), slower), kernels->Compute(op.view(), device));
  EXPECT_FALSE(slower == device);
  cluster::Device stated = *cluster::FindDevice("v100-32gb");
  EXPECT_NE(kernels->DoubtAbout(stated), "");
  stated.rates.measured = true;
  EXPECT_EQ(kernels->DoubtAbout(stated), "");
}

// Hopper's products of 8 bits want k in a row of both operands, which Blackwell's do not.
TEST(Kernels, CopiesOfEightBitsAreMadeBothWays) {
  const auto kernels = *MakeCostModel("kernels");
  const auto time = [&](absl::string_view device, const std::string& to) {
    const OpFixture cast(OpKind::kCast, {Tensor({8192, 8192}, kHalf)}, {{"to", to}});
    EXPECT_TRUE(cast.status().ok()) << cast.status();
    const cluster::Device of = *cluster::FindDevice(device);
    const double rate =
        static_cast<double>(of.memory_bandwidth.bytes_per_second()) * of.rates.half.memory;
    return (kernels->Compute(cast.view(), of) - of.launch_overhead).seconds() * rate;
  };
  constexpr double kElements = 8192.0 * 8192.0;
  EXPECT_NEAR(time("h100-80gb", "f8") / kElements, 4, 0.01);
  EXPECT_NEAR(time("b200", "f8") / kElements, 3, 0.01);
  EXPECT_NEAR(time("h100-80gb", "f32") / kElements, 6, 0.01);
}

// Three kernels: the largest elements, the copy along rows, the copy along columns.
TEST(Kernels, CopiesOfFourBitsTakeThreePasses) {
  const auto kernels = *MakeCostModel("kernels");
  const OpFixture cast(OpKind::kCast, {Tensor({8192, 8192}, kHalf)}, {{"to", std::string("f4")}});
  const cluster::Device b200 = *cluster::FindDevice("b200");
  const double rate = static_cast<double>(b200.memory_bandwidth.bytes_per_second()) *
                      cluster::FindDevice("b200")->rates.half.memory;
  const Duration work = kernels->Compute(cast.view(), b200) - b200.launch_overhead * 3;
  EXPECT_NEAR(work.seconds() * rate / (8192.0 * 8192.0), 3 * 2 + 2 * 0.5625, 0.01);
}

TEST(Kernels, SayWhereTheyOnlyAssume) {
  const auto kernels = *MakeCostModel("kernels");
  EXPECT_EQ(kernels->DoubtAbout(H100()), "");
  EXPECT_NE(kernels->DoubtAbout(*cluster::FindDevice("tpu-v4")), "");
  EXPECT_EQ((*MakeCostModel("roofline"))->DoubtAbout(*cluster::FindDevice("tpu-v4")), "");
  cluster::Cluster cluster;
  cluster.device = H100();
  EXPECT_EQ(DoubtAbout(*kernels, cluster), "");
  cluster.other_kinds = {*cluster::FindDevice("tpu-v4"), *cluster::FindDevice("tpu-v4")};
  EXPECT_EQ(DoubtAbout(*kernels, cluster), kernels->DoubtAbout(*cluster::FindDevice("tpu-v4")));
}

TEST(Kernels, AreNeverFasterThanTheDataSheet) {
  const auto roofline = *MakeCostModel("roofline"), kernels = *MakeCostModel("kernels");
  const OpFixture ops[] = {
      OpFixture(OpKind::kMatMul, {Tensor({4096, 4096}, kHalf), Tensor({4096, 4096}, kHalf)}),
      OpFixture(OpKind::kRelu, {Tensor({4096, 4096}, kHalf)}),
      OpFixture(OpKind::kMatMul, {Tensor({1, 1}, kHalf), Tensor({1, 1}, kHalf)})};
  for (const OpFixture& op : ops) {
    for (const cluster::Device& device : cluster::AllDevices()) {
      EXPECT_GE(kernels->Compute(op.view(), device), roofline->Compute(op.view(), device))
          << device.name;
    }
  }
}

// What 23 layers of Nemotron 3 Nano take of a step over 8,192 tokens a GPU (NeMo AutoModel on 8
// H100, by nsys: 71.5 ms in kernels of causal_conv1d and mamba_ssm); and over 24,576 with forward
// twice (256.3 ms). The rate was chosen on these two.
TEST(Kernels, AMamba2LayerTakesWhatTrainingTakes) {
  const auto layer = [](int64_t tokens, int forwards) {
    const ir::TensorType x = Tensor({1, tokens, 64, 64}, kHalf),
                         dt = Tensor({1, tokens, 64}, kHalf),
                         b = Tensor({1, tokens, 8, 128}, kHalf), head = Tensor({64}, kHalf);
    const ir::TensorType wide = Tensor({1, tokens, 6144}, kHalf), w = Tensor({6144, 4}, kHalf),
                         bias = Tensor({6144}, kHalf);
    const Duration forward =
        TimeOf(OpFixture(OpKind::kCausalConv, {wide, w, bias})) +
        TimeOf(OpFixture(OpKind::kSelectiveScan, {x, dt, b, b, head, head, head}));
    return forward * forwards + TimeOf(OpFixture(OpKind::kCausalConvGrad, {wide, w, bias, wide})) +
           TimeOf(OpFixture(OpKind::kSelectiveScanGrad, {x, dt, b, b, head, head, head, x}));
  };
  EXPECT_NEAR(23 * layer(8192, 1).seconds(), 71.5e-3, 0.05 * 71.5e-3);
  EXPECT_NEAR(23 * layer(24576, 2).seconds(), 256.3e-3, 0.05 * 256.3e-3);
}

}  // namespace
}  // namespace kernels_test_cc
}  // namespace orrery::cost_models
