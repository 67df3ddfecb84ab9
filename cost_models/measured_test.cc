#include "cost_models/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/pricing.h"
#include "cost_models/op_fixture_test_util.h"
#include "ir/op_kind.h"
#include "support/paths_test_util.h"

namespace orrery::cost_models {
namespace measured_test_cc {
namespace {

using cluster::DeviceId;
using testing::HasSubstr;

const std::string kFile = SourceDir() + "/tests/data/measured_collectives.json";

std::vector<DeviceId> First(int32_t count) {
  std::vector<DeviceId> group;
  for (int32_t i = 0; i < count; ++i) group.push_back(DeviceId(i));
  return group;
}

MeasuredCurve Line(CollectiveKind kind, int32_t devices, int32_t nodes, double alpha, double beta) {
  MeasuredCurve curve = {.kind = kind, .devices = devices, .nodes = nodes};
  for (int power = 0; power <= 34; ++power) {
    const int64_t size = int64_t{1} << power;
    curve.points.push_back({Bytes(size), alpha + beta * static_cast<double>(size)});
  }
  return curve;
}

double Microseconds(const MeasuredCollectives& measured, const std::string& cluster,
                    int32_t devices, int64_t size,
                    CollectiveKind kind = CollectiveKind::kAllReduce) {
  const cluster::Cluster made = *cluster::ParseCluster(cluster);
  const std::vector<DeviceId> group = First(devices);
  const auto chosen =
      measured.Choose({.kind = kind, .size = Bytes(size), .group = group}, made.topology);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return chosen->time.microseconds();
}

TEST(MeasuredCollectives, TakeTheTimeThatWasMeasured) {
  const MeasuredCollectives measured({{Line(CollectiveKind::kAllReduce, 8, 1, 20e-6, 1e-11)}, {}});
  for (const char* cluster : {"dgx-a100:1", "dgx-a100:1,ideal-collectives", "switch:8@1GB/s"}) {
    EXPECT_NEAR(Microseconds(measured, cluster, 8, 0), 20, 1e-3) << cluster;
    EXPECT_NEAR(Microseconds(measured, cluster, 8, 1'000'000), 30, 1e-3) << cluster;
    EXPECT_NEAR(Microseconds(measured, cluster, 8, 1'000'000'000), 10'020, 1) << cluster;
  }
}

// Sweeps at the limits of what is read are priced like others: nothing aborts.
TEST(MeasuredCollectives, HaveATimeWhateverWasMeasured) {
  for (const double first : {1e-9, 1e-6, 1e5}) {
    for (const double last : {1e-9, 1e-6, 1e5}) {
      MeasuredCurve curve = {.devices = 8};
      curve.points = {{Bytes(1), first}, {Bytes(2), last}, {Bytes(1'000'000'000'000'000), last}};
      const MeasuredCollectives measured({{curve}, {}});
      for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{1} << 50}) {
        for (const int32_t devices : {2, 3, 16}) {
          for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kBarrier}) {
            EXPECT_GE(Microseconds(measured, "dgx-a100:2", devices, size, kind), 0);
          }
        }
      }
    }
  }
}

// β by what passes a rank, α by the steps of a tree.
TEST(MeasuredCollectives, AreCarriedOverToOtherGroups) {
  const MeasuredCollectives measured({{Line(CollectiveKind::kAllReduce, 8, 1, 20e-6, 7e-12)}, {}});
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:1", 2, 1'000'000'000), 4'000 + 20. / 3, 1);
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:1", 4, 0), 40. / 3, 1e-3);
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:1", 8, 1'000'000'000, CollectiveKind::kAllGather),
              3'520, 1);
  // Across nodes a hop is 12 times as slow.
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:2", 16, 1'000'000'000),
              12 * 7'000 * (30. / 16) / (14. / 8) + 20 * 4. / 3, 1);
}

TEST(MeasuredCollectives, TakeTheNearestSweep) {
  const MeasuredCollectives measured({{Line(CollectiveKind::kAllReduce, 2, 1, 1e-6, 0),
                                       Line(CollectiveKind::kAllReduce, 16, 2, 2e-6, 0),
                                       Line(CollectiveKind::kAllGather, 8, 1, 3e-6, 0),
                                       Line(CollectiveKind::kAllReduce, 8, 1, 4e-6, 0)},
                                      {}});
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:2", 2, 1), 1, 1e-3);
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:2", 8, 1), 4, 1e-3);
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:2", 16, 1), 2, 1e-3);
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:2", 8, 1, CollectiveKind::kAllGather), 3, 1e-3);
  EXPECT_NEAR(Microseconds(measured, "dgx-a100:2", 8, 1, CollectiveKind::kBroadcast), 4, 1e-3);
}

// Alone, a flow takes what was measured, and its links hold it.
TEST(MeasuredCollectives, FlowTakesTheMeasuredTime) {
  const MeasuredCollectives measured(*ReadMeasuredCurves(kFile));
  for (const char* spelling : {"dgx-h100:2", "dgx-a100:2,ideal-collectives", "mi300x:2"}) {
    const cluster::Cluster cluster = *cluster::ParseCluster(spelling);
    for (const CollectiveKindInfo& kind : AllCollectiveKinds()) {
      for (const int32_t devices : {2, 8, 16}) {
        for (const int64_t size : {0, 1, 1000, 1'000'003, 1 << 30}) {
          const std::vector<DeviceId> group = First(devices);
          const auto chosen = measured.Choose(
              {.kind = kind.kind, .size = Bytes(size), .group = group}, cluster.topology);
          ASSERT_TRUE(chosen.ok()) << chosen.status();
          const Bytes moved(kind.kind == CollectiveKind::kBarrier ? 0 : size);
          const CollectiveFlow flow = FlowOf(chosen->cost, moved, chosen->protocol);
          EXPECT_EQ(flow.latency + TransferTime(flow.size, flow.rate), chosen->time)
              << kind.name << " " << spelling << " " << devices << " " << size;
        }
      }
    }
  }
}

TEST(MeasuredCollectives, GrowWithSize) {
  const MeasuredCollectives measured(*ReadMeasuredCurves(kFile));
  for (const int32_t devices : {2, 5, 8, 16}) {
    double before = 0;
    for (int64_t size = 1; size <= int64_t{1} << 36; size *= 2) {
      const double time = Microseconds(measured, "dgx-a100:2", devices, size);
      EXPECT_GE(time, before * (1 - 1e-6)) << devices << " " << size;
      before = time;
    }
  }
}

TEST(ReadMeasuredCurves, TakesOnlyWhatIsAskedFor) {
  EXPECT_EQ(ReadMeasuredCurves(kFile)->curves.size(), 11u);
  const MeasuredCurves one = *ReadMeasuredCurves(kFile + ",only=EFA");
  ASSERT_EQ(one.curves.size(), 1u);
  EXPECT_EQ(one.curves[0].id, "aws-p5-16-ar");
  EXPECT_THAT(std::string(ReadMeasuredCurves(kFile + ",only=TPU").status().message()),
              HasSubstr("got no sweep with 'TPU' in its id or hw; wanted one, as in only=H100"));
  EXPECT_THAT(std::string(ReadMeasuredCurves("nowhere.json").status().message()),
              HasSubstr("nowhere.json"));
}

TEST(MeasuredCostModel, IsWhatKernelsReachBesideCollectives) {
  const auto measured = MakeCostModel("measured:" + kFile + ",only=dgxc-h100");
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_TRUE((*measured)->shares_links());
  EXPECT_FALSE((*measured)->copies_everything());
  const cluster::Cluster cluster = *cluster::ParseCluster("dgx-h100:1");
  const std::vector<DeviceId> group = First(8);
  const CollectiveRequest request{.size = Bytes(1 << 30), .group = group};
  const Duration time =
      (*measured)->Collective(request.kind, request.size, group, cluster.topology);
  EXPECT_NEAR(time.microseconds(), 4029.4, 4029.4 * 0.05);
  EXPECT_EQ((*measured)->Plan(request, cluster.topology).time, time);
  const cluster::PathInfo path = {Bandwidth(1'000'000'000), Duration(7)};
  EXPECT_EQ((*measured)->Transfer(Bytes(1000), path), Duration(1'000'007));
  const auto kernels = MakeCostModel("kernels").value();
  const ir::TensorType f32 = Tensor({1024, 1024}, ir::DType::kF32);
  const OpFixture product(ir::OpKind::kMatMul, {f32, f32});
  for (const char* name : {"h100-80gb", "tpu-v4"}) {
    const cluster::Device device = *cluster::FindDevice(name);
    EXPECT_EQ((*measured)->Compute(product.view(), device),
              kernels->Compute(product.view(), device));
    EXPECT_EQ((*measured)->Straggling(device), kernels->Straggling(device));
    EXPECT_EQ((*measured)->DoubtAbout(device), kernels->DoubtAbout(device));
  }
  EXPECT_FALSE(MakeCostModel("measured:").ok());
  EXPECT_FALSE(MakeCostModel("measured:nowhere.json").ok());
}

}  // namespace
}  // namespace measured_test_cc
}  // namespace orrery::cost_models
