#include "tools/measurements.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/cluster.h"
#include "cost_models/collectives/choice.h"

namespace orrery::tools {
namespace measurements_test_cc {
namespace {

using cost_models::CollectiveKind;
using cost_models::MeasuredCurve;
using cost_models::MeasuredCurves;

struct Hardware {
  std::string device, between_nodes;
  int32_t devices = 8, nodes = 1;
};

std::string Cluster(const Hardware& hardware) {
  MeasuredCurve curve;
  curve.device = hardware.device;
  curve.between_nodes = hardware.between_nodes;
  curve.devices = hardware.devices;
  curve.nodes = hardware.nodes;
  const absl::StatusOr<std::string> cluster = ClusterOf(curve);
  return cluster.ok() ? *cluster : std::string(cluster.status().message());
}

TEST(ClusterOf, IsThePresetOfTheHardware) {
  EXPECT_EQ(Cluster({"NVIDIA B300", ""}), "dgx-b300:1");
  EXPECT_EQ(Cluster({"NVIDIA GB200", "", 72}), "gb200-nvl72:1");
  EXPECT_EQ(Cluster({"B200", "EFA"}), "aws-p6-b200:1");
  EXPECT_EQ(Cluster({"B200", "NDR"}), "dgx-b200:1");
  EXPECT_EQ(Cluster({"H200", "EFA v3"}), "aws-p5en:1");
  EXPECT_EQ(Cluster({"A100-SXM4-40GB", "EFA"}), "aws-p4de:1");
  EXPECT_EQ(Cluster({"A100-SXM4-40GB", ""}), "dgx-a100-40gb:1");
  EXPECT_EQ(Cluster({"MI250X", ""}), "mi250x:1");
  EXPECT_EQ(Cluster({"Gaudi3", ""}), "no preset for 'Gaudi3'");
}

TEST(ClusterOf, HasTheNodesThatItNeedsOrMore) {
  EXPECT_EQ(Cluster({"H100", "", 1}), "dgx-h100:1");
  EXPECT_EQ(Cluster({"H100", "", 8}), "dgx-h100:1");
  EXPECT_EQ(Cluster({"H100", "", 9}), "dgx-h100:2");
  EXPECT_EQ(Cluster({"H100", "", 16, 4}), "dgx-h100:4");
  EXPECT_EQ(Cluster({"H100", "", 32, 2}), "dgx-h100:4");
  // A rack is one node, whatever its trays.
  EXPECT_EQ(Cluster({"GB200", "", 72, 18}), "gb200-nvl72:1");
  EXPECT_EQ(Cluster({"GB200", "", 73, 18}), "gb200-nvl72:2");
}

TEST(ClusterOf, HasTheLibraryThatTheRowNames) {
  MeasuredCurve curve;
  curve.device = "A100";
  curve.devices = 8;
  curve.library = "nccl-ampere-2023";
  EXPECT_EQ(*ClusterOf(curve), "dgx-a100:1,collectives=nccl-ampere-2023");
}

TEST(ClusterOf, HasTheNicsOfItsTime) {
  EXPECT_EQ(Cluster({"A100", "RoCE", 16, 2}), "dgx-a100:2,nic=200gbe");
  EXPECT_EQ(Cluster({"H100", "400G RoCE v2", 16, 2}), "dgx-h100:2,nic=400gbe");
  EXPECT_EQ(Cluster({"MI300X", "RoCE", 16, 2}), "mi300x:2");  // has no other
}

// What the group of `devices` would take on `cluster`.
double Predicted(const std::string& cluster, const std::vector<int32_t>& devices, Bytes size,
                 const std::string& algorithm = "auto") {
  const cluster::Cluster made = cluster::ParseCluster(cluster).value();
  std::vector<cluster::DeviceId> group;
  for (const int32_t device : devices) group.push_back(cluster::DeviceId(device));
  return cost_models::ChooseCollective(
             {.kind = CollectiveKind::kAllReduce, .size = size, .group = group}, made.topology,
             cost_models::CollectiveChoice::Parse(algorithm).value())
      .value()
      .time.seconds();
}

MeasuredCurve Sweep(const std::string& id, int32_t devices, int32_t nodes) {
  MeasuredCurve curve;
  curve.id = id;
  curve.split = "holdout";
  curve.devices = devices;
  curve.nodes = nodes;
  curve.device = "A100";
  return curve;
}

std::string Compare(const MeasuredCurve& curve, bool every_point = false) {
  const MeasuredCurves curves{.curves = {curve}};
  const std::string csv = CompareWithMeasurements(curves, every_point).value();
  return csv.substr(csv.find('\n') + 1);
}

// Of sizes from 64 KiB to 1 GiB, both included, and of all.
TEST(Measurements, AreJudgedOfSizesBetween) {
  MeasuredCurve curve = Sweep("row", 4, 1);
  struct Point {
    int64_t bytes;
    double ratio;  // predicted over measured
  };
  for (const Point& point :
       {Point{(64 << 10) - 1, 3.0}, Point{64 << 10, 1.25}, Point{1 << 20, 0.75},
        Point{1 << 30, 1.1}, Point{(int64_t{1} << 30) + 1, 0.1}}) {
    const Bytes size(point.bytes);
    curve.points.push_back({size, Predicted("dgx-a100:1", {0, 1, 2, 3}, size) / point.ratio});
  }
  // (25 + 25 + 10) / 3; and with 200 and 90, / 5.
  EXPECT_EQ(Compare(curve), "row,holdout,dgx-a100:1,4,3,20.0%,25.0%,5,70.0%,200.0%\n");
  curve.points.clear();
  EXPECT_EQ(Compare(curve), "row,holdout,dgx-a100:1,4,0,,,0,,\n");
  curve.device = "abacus";
  EXPECT_EQ(Compare(curve), "row,holdout,no preset,,,,,,,\n");
}

TEST(Measurements, AreShownPointByPoint) {
  MeasuredCurve curve = Sweep("row", 8, 1);
  const std::vector<int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const double predicted = Predicted("dgx-a100:1", all, Bytes(1 << 20));
  curve.points.push_back({Bytes(1 << 20), predicted / 0.5});
  const std::string line = Compare(curve, /*every_point=*/true);
  EXPECT_EQ(line.substr(0, 12), "row,1048576,");
  EXPECT_EQ(line.substr(line.find(',', line.find(',', 12) + 1)),
            absl::StrFormat(",%.2f,%.2f,-50.0%%\n", 2e6 * predicted, 1e6 * predicted));
}

// A sweep that is named after its algorithm is held to it; else the switch reduces.
TEST(Measurements, AreOfTheRingWhereTheySaySo) {
  const std::vector<int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const Bytes size(1 << 30);
  const double ring = Predicted("dgx-h100:1", all, size, "ring");
  ASSERT_GT(ring, 1.01 * Predicted("dgx-h100:1", all, size));
  for (const char* id : {"row-Ring", "row"}) {
    MeasuredCurve curve = Sweep(id, 8, 1);
    curve.device = "H100";
    curve.points.push_back({size, ring});
    EXPECT_EQ(Compare(curve).find(",1,0.0%") != std::string::npos, curve.id == "row-Ring");
  }
}

// As many of each node, where they divide; else the first.
TEST(Measurements, AreOfDevicesOfAllNodes) {
  struct Case {
    int32_t devices, nodes;
    std::vector<int32_t> group;
  };
  const Case kCases[] = {
      {4, 2, {0, 1, 8, 9}}, {2, 2, {0, 8}}, {3, 2, {0, 1, 2}}, {4, 1, {0, 1, 2, 3}}};
  for (const Case& c : kCases) {
    MeasuredCurve curve = Sweep("row", c.devices, c.nodes);
    const std::string cluster = absl::StrCat("dgx-a100:", c.nodes);
    const Bytes size(1 << 24);
    curve.points.push_back({size, Predicted(cluster, c.group, size)});
    EXPECT_EQ(Compare(curve),
              absl::StrCat("row,holdout,", cluster, ",", c.devices, ",1,0.0%,0.0%,1,0.0%,0.0%\n"));
  }
}

TEST(Measurements, HaveColumns) {
  EXPECT_EQ(CompareWithMeasurements({}, true).value(),
            "row,bytes,algorithm,protocol,measured_us,predicted_us,error\n");
  EXPECT_EQ(CompareWithMeasurements({}, false).value(),
            "row,split,cluster,devices,points_64KiB_1GiB,mean_error,worst_error,all_points,"
            "mean_error,worst_error\n");
}

}  // namespace
}  // namespace measurements_test_cc
}  // namespace orrery::tools
