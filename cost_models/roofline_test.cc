#include <gtest/gtest.h>

#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

namespace orrery::cost_models {
namespace roofline_test_cc {
namespace {

using cluster::DeviceId;
using ir::DType;
using ir::OpKind;

// Round figures, so that what is expected can be worked out in the head: a flop takes 1 ps on the
// vector units, 1/4 ps in half and 1/8 ps in quarter precision; a byte of memory 10 ps.
const cluster::Device kDevice = {.name = "test",
                                 .fp32 = FlopRate(1e12),
                                 .fp16 = FlopRate(4e12),
                                 .fp8 = FlopRate(8e12),
                                 .fp4 = FlopRate(16e12),
                                 .memory = Bytes(1'000'000'000),
                                 .memory_bandwidth = Bandwidth(100'000'000'000),
                                 .launch_overhead = Duration(1'000)};

int64_t Picoseconds(const OpFixture& op) {
  EXPECT_TRUE(op.status().ok()) << op.status();
  return (*MakeCostModel("roofline"))->Compute(op.view(), kDevice).picoseconds();
}

OpFixture Square(int64_t n, DType dtype) {
  return OpFixture(OpKind::kMatMul, {Tensor({n, n}, dtype), Tensor({n, n}, dtype)});
}

TEST(Roofline, ALargeProductIsBoundByArithmetic) {
  EXPECT_EQ(Picoseconds(Square(1024, DType::kF32)), 1'000 + 2'147'483'648);
}

TEST(Roofline, TheTypeOfAProductChoosesThePeak) {
  EXPECT_EQ(Picoseconds(Square(1024, DType::kF16)), 1'000 + 2'147'483'648 / 4);
  EXPECT_EQ(Picoseconds(Square(1024, DType::kBF16)), 1'000 + 2'147'483'648 / 4);
  EXPECT_EQ(Picoseconds(Square(1024, DType::kF8)), 1'000 + 2'147'483'648 / 8);
  EXPECT_EQ(Picoseconds(Square(1024, DType::kF64)), 1'000 + 2'147'483'648);
}

TEST(Roofline, ProductsRunInTheTypeThatTheyRead) {
  const OpFixture product(OpKind::kMatMul,
                          {Tensor({1024, 1024}, DType::kF8), Tensor({1024, 1024}, DType::kF8)},
                          {{"out", std::string("bf16")}});
  EXPECT_EQ(Picoseconds(product), Picoseconds(Square(1024, DType::kF8)));
}

// 3 * 16 bytes against 2 * 8 flops.
TEST(Roofline, ASmallProductIsBoundByMemory) {
  EXPECT_EQ(Picoseconds(Square(2, DType::kF32)), 1'000 + 10 * 48);
}

TEST(Roofline, TheBackwardOfAProductIsTwoKernels) {
  const ir::TensorType x = Tensor({1024, 1024});
  EXPECT_EQ(Picoseconds(OpFixture(OpKind::kMatMulGrad, {x, x, x})), 2'000 + 2 * 2'147'483'648);
}

TEST(Roofline, AnElementwiseKernelReadsAndWrites) {
  EXPECT_EQ(Picoseconds(OpFixture(OpKind::kRelu, {Tensor({100})})), 1'000 + 10 * 800);
  EXPECT_EQ(Picoseconds(OpFixture(OpKind::kAdd, {Tensor({100}), Tensor({100})})),
            1'000 + 10 * 1200);
  EXPECT_EQ(Picoseconds(OpFixture(OpKind::kTranspose, {Tensor({10, 10})})), 1'000 + 10 * 800);
}

// A hundred flops at 1 ps against 2 * 100 bytes at 0.1 ps.
TEST(Roofline, AnElementwiseKernelDoesNotRunOnMatrixUnits) {
  cluster::Device device = kDevice;
  device.memory_bandwidth = Bandwidth(10'000'000'000'000);
  const OpFixture relu(OpKind::kRelu, {Tensor({100}, DType::kF8)});
  const Duration time = (*MakeCostModel("roofline"))->Compute(relu.view(), device);
  EXPECT_EQ(time, Duration(1'000 + 100));
}

TEST(Roofline, AnOptimizerIsOneKernel) {
  const ir::TensorType w = Tensor({100});
  EXPECT_EQ(Picoseconds(OpFixture(OpKind::kSgd, {w, w, w, w}, {{"parameters", int64_t{2}}})),
            1'000 + 10 * (4 * 400 + 2 * 400));
}

TEST(Roofline, AViewIsFree) {
  EXPECT_EQ(Picoseconds(OpFixture(OpKind::kIdentity, {Tensor({100})})), 0);
  EXPECT_EQ(Picoseconds(OpFixture(OpKind::kCollect, {Tensor({4, 2}), Tensor({2, 2})})), 0);
}

TEST(RooflineDeathTest, ACollectiveIsNoKernel) {
  const OpFixture send(OpKind::kSend, {Tensor({100})});
  EXPECT_DEATH((*MakeCostModel("roofline"))->Compute(send.view(), kDevice), "Send is no kernel");
}

TEST(Roofline, TransferAddsTheLatency) {
  const cluster::PathInfo path = {Bandwidth(1'000'000'000), Duration(700)};
  EXPECT_EQ((*MakeCostModel("roofline"))->Transfer(Bytes(3), path), Duration(3'700));
}

// In a node: 2 * 1/2 of 300 MB at 300 GB/s and two steps of 2 us. Between nodes: 25 GB/s and 3.7
// us.
TEST(Roofline, ACollectiveAcrossNodesUsesTheirNics) {
  const auto cluster = cluster::ParseCluster("dgx-a100:2,ideal-collectives");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const auto all_reduce = [&](int32_t other) {
    const DeviceId group[] = {DeviceId(0), DeviceId(other)};
    return (*MakeCostModel("roofline"))
        ->Collective(CollectiveKind::kAllReduce, Bytes(300'000'000), group, cluster->topology)
        .microseconds();
  };
  EXPECT_DOUBLE_EQ(all_reduce(1), 1'000 + 2 * 2.0);
  EXPECT_DOUBLE_EQ(all_reduce(8), 12'000 + 2 * 3.7);
}

}  // namespace
}  // namespace roofline_test_cc
}  // namespace orrery::cost_models
