#include "tools/validation/rows/row_cluster.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cluster/cluster.h"

namespace orrery::tools {
namespace row_cluster_test_cc {
namespace {

TEST(RowCluster, IsOfTheDevice) {
  const auto cluster = [](const std::string& device, int64_t devices) {
    MeasuredStep row;
    row.device = device;
    row.devices = devices;
    const absl::StatusOr<std::string> cluster = ClusterOf(row);
    return cluster.ok() ? *cluster : std::string(cluster.status().message());
  };
  EXPECT_EQ(cluster("H100 80GB HBM3", 8), "dgx-h100:1");
  EXPECT_EQ(cluster("H100 80GB HBM3", 9), "dgx-h100:2");
  EXPECT_EQ(cluster("H100 96GB HBM2e", 16), "h100-torchtitan:2");
  EXPECT_EQ(cluster("GB200", 72), "gb200-nvl72:1");
  EXPECT_EQ(cluster("GB200", 73), "gb200-nvl72:2");
  EXPECT_EQ(cluster("GB200", 128), "gb200-nvl72:2,used=64");
  EXPECT_EQ(cluster("B300", 1), "dgx-b300:1");
  EXPECT_EQ(cluster("B200", 8), "dgx-b200:1");
  EXPECT_EQ(cluster("H200", 8), "dgx-h200:1");
  EXPECT_EQ(cluster("A100-SXM4-40GB", 8), "dgx-a100-40gb:1,collectives=nccl-ampere-2023");
  EXPECT_EQ(cluster("A100-SXM4-80GB", 8), "dgx-a100:1,collectives=nccl-ampere-2023");
  EXPECT_EQ(cluster("V100", 8), "dgx-v100:1");
  EXPECT_EQ(cluster("GB300", 72), "gb300-nvl72:1");
  EXPECT_EQ(cluster("TPU v5p", 512), "tpu-v5p:128");
  EXPECT_EQ(cluster("L40S", 16), "l40s:2");
  EXPECT_EQ(cluster("MI300X", 8), "no cluster for device 'MI300X'");
  EXPECT_EQ(cluster("GH200-96GB", 8), "gh200:2");
  EXPECT_EQ(cluster("RTX-3090/Titan-RTX", 4),
            "what joins devices of several kinds is not said ('RTX-3090/Titan-RTX')");
}

// NVLink unless the row says otherwise.
TEST(RowCluster, MayHavePcieAlone) {
  MeasuredStep row;
  row.device = "V100-class (simulator constants 13.8 TFLOP/s fp32, 700 GB/s DRAM)";
  row.links = "PCIe (simulator constant 77 Gb/s)";
  row.devices = 4;
  EXPECT_EQ(ClusterOf(row).value(), "uniform:4@77Gbps,device=v100-16gb");
  row.devices = 1;
  EXPECT_EQ(ClusterOf(row).value(), "uniform:1@77Gbps,device=v100-16gb");
}

// Of chips with two cores a row counts cores.
TEST(RowCluster, HasTheCoresOfATorus) {
  MeasuredStep row;
  row.device = "TPU7x (Ironwood)";
  row.links = "ICI 3D torus 4x4x8";
  row.devices = 256;
  EXPECT_EQ(ClusterOf(row).value(),
            "product:fully-connected(2)@600GB/s+1us,ring(4)@50GB/s+1us,ring(4)@50GB/s+1us,"
            "ring(8)@50GB/s+1us,device=tpu-v7-core");
  EXPECT_EQ(cluster::ParseCluster(*ClusterOf(row))->size(), 256);
  row.links = "ICI 3D torus 2x2x1";
  EXPECT_EQ(cluster::ParseCluster(*ClusterOf(row))->size(), 8);
  row.links = "ICI";
  EXPECT_EQ(ClusterOf(row).status().message(), "no cluster for device 'TPU7x (Ironwood)'");
}

// NICs of several nodes, as rows say them in words; the preset's where they say the same.
TEST(RowCluster, HasTheNicsOfTheRow) {
  const auto cluster = [](const std::string& fabric, int64_t devices = 16) {
    MeasuredStep row;
    row.device = "H100";
    row.fabric = fabric;
    row.devices = devices;
    return ClusterOf(row).value();
  };
  EXPECT_EQ(cluster(""), "dgx-h100:2");
  EXPECT_EQ(cluster("RoCE (rate not printed)"), "dgx-h100:2");
  EXPECT_EQ(cluster("8x NDR IB 400 Gb/s per node (Eos / DGX H100)"), "dgx-h100:2");
  EXPECT_EQ(cluster("NDR 400 Gb/s/GPU"), "dgx-h100:2");
  EXPECT_EQ(cluster("Slingshot-11 200 Gb/s per GPU"), "dgx-h100:2,nic=200Gbps");
  EXPECT_EQ(cluster("800 Gb/s per node total"), "dgx-h100:2,nic=100Gbps");
  EXPECT_EQ(cluster("4x EFA 100 Gb/s per node"), "dgx-h100:2,nic=100Gbps,nics=4");
  EXPECT_EQ(cluster("4x EFA 100 Gb/s per node", 8), "dgx-h100:1");
  EXPECT_EQ(cluster("4x Omni-Path 100 Gb/s per node (Jean Zay)"),
            "dgx-h100:2,nic=100Gbps,nics=4,boards=2,bridge=126GB/s");
}

}  // namespace
}  // namespace row_cluster_test_cc
}  // namespace orrery::tools
