#include <gtest/gtest.h>

#include <numeric>

#include "cluster/topologies.h"
#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"

// DistIR's figures, worked out by hand from its formulas: T = 1.4e13 flop/s, M = 9e11 bytes/s, and
// 10 us a kernel. In picoseconds, rounded up.

namespace orrery::cost_models {
namespace distir_test_cc {
namespace {

using cluster::DeviceId;
using ir::DType;
using ir::OpKind;

constexpr double kFlops = 1.4e13;
constexpr double kMemory = 9e11;
constexpr double kLaunch = 1e-5;

class DistIrTest : public ::testing::Test {
 protected:
  // Seconds that the model rounded up, as exactly as `expected_s` says.
  void ExpectTime(const OpFixture& op, double expected_s, int64_t expected_ps) {
    ASSERT_TRUE(op.status().ok()) << op.status();
    const Duration time = model_->Compute(op.view(), cluster::Device());
    EXPECT_EQ(time.picoseconds(), expected_ps);
    EXPECT_GE(time.seconds(), expected_s * (1 - 1e-12));
    EXPECT_LE(time.seconds(), expected_s * (1 + 1e-12) + 1e-12);
  }
  int64_t Collective(CollectiveKind kind, Bytes size, std::vector<DeviceId> group,
                     absl::string_view spec) {
    const auto cluster = cluster::ParseCluster(spec);
    return model_->Collective(kind, size, group, cluster->topology).picoseconds();
  }

  const std::unique_ptr<const CostModel> model_ = *MakeCostModel("distir");
};

std::vector<DeviceId> FirstDevices(int32_t count) {
  std::vector<DeviceId> group;
  for (int32_t i = 0; i < count; ++i) group.push_back(DeviceId(i));
  return group;
}

TEST_F(DistIrTest, MatMulReadsBothOperands) {
  const double n = 8192;
  ExpectTime(OpFixture(OpKind::kMatMul, {Tensor({8192, 8192}), Tensor({8192, 8192})}),
             kLaunch + 4 * (2 * n * n) / kMemory + 2 * n * n * n / kFlops, 79'143'068'077);
  ExpectTime(OpFixture(OpKind::kMatMul, {Tensor({128, 8192}), Tensor({8192, 512})}),
             kLaunch + 4 * (128 * n + n * 512) / kMemory + 2 * 128 * n * 512 / kFlops, 109'997'534);
}

TEST_F(DistIrTest, HalfPrecisionHalvesTheBytesOnly) {
  ExpectTime(
      OpFixture(OpKind::kMatMul, {Tensor({64, 32}, DType::kF16), Tensor({32, 16}, DType::kF16)}),
      kLaunch + 2 * (64 * 32 + 32 * 16) / kMemory + 2 * 64 * 32 * 16 / kFlops, 10'010'371);
  ExpectTime(OpFixture(OpKind::kRelu, {Tensor({64, 32}, DType::kF16)}),
             kLaunch + 2 * 64 * 32 / kMemory + 64 * 32 / kFlops, 10'004'698);
}

TEST_F(DistIrTest, TransposedAndBatchedProductsAreTheSameProduct) {
  const OpFixture plain(OpKind::kMatMul, {Tensor({128, 8192}), Tensor({8192, 512})});
  const OpFixture transposed(OpKind::kMatMul, {Tensor({8192, 128}), Tensor({512, 8192})},
                             {{"transpose_x", int64_t{1}}, {"transpose_w", int64_t{1}}});
  const OpFixture batched(OpKind::kMatMul, {Tensor({4, 32, 8192}), Tensor({8192, 512})});
  const cluster::Device device;
  const Duration time = model_->Compute(plain.view(), device);
  EXPECT_EQ(model_->Compute(transposed.view(), device), time);
  EXPECT_EQ(model_->Compute(batched.view(), device), time);
}

TEST_F(DistIrTest, MatMulGradIsTwoProducts) {
  const double m = 128, k = 8192, n = 512;
  const auto product = [](double a, double b, double c) {
    return kLaunch + 4 * (a * b + b * c) / kMemory + 2 * a * b * c / kFlops;
  };
  ExpectTime(OpFixture(OpKind::kMatMulGrad,
                       {Tensor({128, 8192}), Tensor({8192, 512}), Tensor({128, 512})}),
             product(m, n, k) + product(k, m, n), 197'275'921);
}

TEST_F(DistIrTest, UnaryKernelsReadOnce) {
  const double n = 8192.0 * 8192.0;
  const double expected_s = kLaunch + 4 * n / kMemory + n / kFlops;
  const ir::TensorType x = Tensor({8192, 8192});
  for (const OpKind kind :
       {OpKind::kRelu, OpKind::kScale, OpKind::kTranspose, OpKind::kReduceSum}) {
    ExpectTime(OpFixture(kind, {x}), expected_s, 313'055'109);
  }
}

TEST_F(DistIrTest, BinaryKernelsReadTwice) {
  const double n = 8192.0 * 8192.0;
  const double expected_s = kLaunch + 2 * 4 * n / kMemory + n / kFlops;
  const ir::TensorType x = Tensor({8192, 8192});
  for (const OpKind kind : {OpKind::kReluGrad, OpKind::kAdd, OpKind::kMul, OpKind::kAccumulate}) {
    ExpectTime(OpFixture(kind, {x, x}), expected_s, 611'316'726);
  }
}

TEST_F(DistIrTest, LossesAreChargedAsUnary) {
  const double n = 8192.0 * 8192.0;
  const ir::TensorType x = Tensor({8192, 8192});
  for (const OpKind kind : {OpKind::kLoss, OpKind::kLossGrad}) {
    ExpectTime(OpFixture(kind, {x, x}, {{"batch", int64_t{8192}}}),
               kLaunch + 4 * n / kMemory + n / kFlops, 313'055'109);
  }
}

TEST_F(DistIrTest, ViewsAreFreeButConcatIsLaunched) {
  ExpectTime(OpFixture(OpKind::kIdentity, {Tensor({8, 8})}), 0, 0);
  ExpectTime(OpFixture(OpKind::kConstant, {}), 0, 0);
  ExpectTime(OpFixture(OpKind::kCollect, {Tensor({64, 8}), Tensor({16, 8})}), kLaunch, 10'000'000);
}

TEST_F(DistIrTest, OptimizersAreChargedForTheLastWeight) {
  const double n = 8192.0 * 512;
  const double expected_s = kLaunch + 2 * 4 * n / kMemory + n / kFlops;
  const ir::TensorType huge = Tensor({8192, 8192}), last = Tensor({8192, 512});
  const ir::AttributeSet two = {{"parameters", int64_t{2}}};
  ExpectTime(OpFixture(OpKind::kSgd, {huge, last, huge, last}, two), expected_s, 47'582'296);
  ExpectTime(OpFixture(OpKind::kMomentum, {huge, last, huge, last, huge, last}, two), expected_s,
             47'582'296);
  ExpectTime(OpFixture(OpKind::kAdam, {huge, last, huge, last, huge, last, huge, last}, two),
             expected_s, 47'582'296);
}

TEST_F(DistIrTest, TheDeviceIsIgnored) {
  const OpFixture relu(OpKind::kRelu, {Tensor({512, 512})});
  const Duration time = model_->Compute(relu.view(), cluster::Device());
  for (const cluster::Device& device : cluster::AllDevices()) {
    EXPECT_EQ(model_->Compute(relu.view(), device), time) << device.name;
  }
}

TEST_F(DistIrTest, TransferHasNoLatency) {
  const Bytes size(4 * 8192 * 8192);
  const cluster::PathInfo path = {Bandwidth(25'000'000'000), Duration(1'000'000)};
  EXPECT_EQ(model_->Transfer(size, path).picoseconds(), 10'737'418'240);
}

TEST_F(DistIrTest, AllReduceOverEqualPairs) {
  const Bytes size(4 * 8192 * 8192);
  const auto all_reduce = [&](int32_t ranks) {
    return Collective(CollectiveKind::kAllReduce, size, FirstDevices(ranks), "uniform:16@200Gbps");
  };
  EXPECT_EQ(all_reduce(2), 10'737'418'240);   // 2 * 1/2 * 10.7 ms
  EXPECT_EQ(all_reduce(4), 16'106'127'360);   // 2 * 3/4
  EXPECT_EQ(all_reduce(16), 20'132'659'200);  // 2 * 15/16
}

// Two NVLinks of 300 and NICs of 25 GB/s: devices 0, 1 of one node and 8 of the next have pairs of
// 300, 25 and 25, a mean of 350/3.
TEST_F(DistIrTest, AllReduceTakesTheMeanOfUnequalPairs) {
  EXPECT_EQ(Collective(CollectiveKind::kAllReduce, Bytes(4 * 8192 * 8192),
                       {DeviceId(0), DeviceId(1), DeviceId(8)}, "dgx-a100:2"),
            3'067'833'783);
}

TEST_F(DistIrTest, AllGatherTakesAPartForTheWhole) {
  const Bytes size(4 * 8192 * 8192);
  const auto all_gather = [&](int32_t ranks) {
    return Collective(CollectiveKind::kAllGather, size, FirstDevices(ranks), "uniform:16@200Gbps");
  };
  EXPECT_EQ(all_gather(2), 5'368'709'120);   // 2 * 1/2 of a part of 1/2
  EXPECT_EQ(all_gather(4), 4'026'531'840);   // 2 * 3/4 of 1/4
  EXPECT_EQ(all_gather(16), 1'258'291'200);  // 2 * 15/16 of 1/16
}

// The sum of the rates of all pairs does not fit 64 bits; their mean does.
TEST_F(DistIrTest, AllReduceOfManyFastDevices) {
  constexpr Bandwidth kRate(int64_t{1} << 60);
  const auto topology = cluster::Topology::Create(cluster::kFullyConnectedTopology,
                                                  {.devices = 64, .port = {.rate = kRate}});
  ASSERT_TRUE(topology.ok());
  const Bytes size(int64_t{1} << 40);
  EXPECT_EQ(model_->Collective(CollectiveKind::kAllReduce, size, FirstDevices(64), *topology),
            TransferTime(size, 2 * 63, 64, kRate));
}

}  // namespace
}  // namespace distir_test_cc
}  // namespace orrery::cost_models
