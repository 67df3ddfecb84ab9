#include "cluster/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cluster/cluster.h"

namespace orrery::cluster {
namespace resize_test_cc {
namespace {

using testing::HasSubstr;

TEST(ResizedSpec, IsTheSameClusterWithOtherDevices) {
  const struct {
    const char* spec;
    int64_t devices;
    const char* resized;
  } cases[] = {
      {"uniform:16@200Gbps", 5, "uniform:5@200Gbps"},
      {"uniform:16@200Gbps,device=a100-80gb", 64, "uniform:64@200Gbps,device=a100-80gb"},
      {"dgx-h100:8", 128, "dgx-h100:16"},
      {"dgx-h100:8,nic=hdr,rails", 8, "dgx-h100:1,nic=hdr,rails"},
      {"dgx-h100:8", 4, "dgx-h100:1,used=4"},
      {"dgx-h100:8,used=4", 16, "dgx-h100:4,used=4"},
      {"dgx-h100:8,used=4", 2, "dgx-h100:1,used=2"},
      {"tpu-v4:4", 64, "tpu-v4:16"},
      {"ring:8@50GB/s,latency=500ns", 3, "ring:3@50GB/s,latency=500ns"},
      {"fat-tree:1024@50GB/s,radix=64", 512, "fat-tree:512@50GB/s,radix=64"},
      {"rails:16x8@450GB/s,nic=50GB/s", 64, "rails:8x8@450GB/s,nic=50GB/s"},
      {"nodes:4x8@450GB/s,nic=50GB/s", 2, "nodes:1x2@450GB/s,nic=50GB/s"},
      {"torus:4x4@50GB/s", 16, "torus:4x4@50GB/s"},
  };
  for (const auto& [spec, devices, resized] : cases) {
    const absl::StatusOr<std::string> found = ResizedSpec(spec, devices);
    ASSERT_TRUE(found.ok()) << spec << ": " << found.status();
    EXPECT_EQ(*found, resized);
    EXPECT_EQ(ParseCluster(*found)->size(), devices);
    EXPECT_EQ(ParseCluster(*found)->device.name, ParseCluster(spec)->device.name);
  }
}

TEST(ResizedSpec, SaysWhyItCannotBe) {
  const struct {
    const char* spec;
    int64_t devices;
    const char* error;
  } cases[] = {
      {"dgx-h100:8", 12, "12 devices are no whole number of nodes; wanted a multiple of 8"},
      {"tpu-v4:4", 2, "2 devices are no whole number of nodes; wanted a multiple of 4"},
      {"rails:16x8@450GB/s,nic=50GB/s", 20, "wanted a multiple of 8"},
      {"torus:4x4@50GB/s", 8, "its shape says more than its size; wanted a cluster whose size"},
      {"product:ring(4)@100GB/s,switch(8)@50GB/s", 8, "its shape says more than its size"},
      {"dgx-h100:8", 0, "wanted 1 to "},
      {"dgx-h100:8", int64_t{1} << 40, "wanted 1 to "},
      {"nothing:8", 8, "got kind 'nothing'"},
  };
  for (const auto& [spec, devices, error] : cases) {
    const absl::StatusOr<std::string> found = ResizedSpec(spec, devices);
    ASSERT_FALSE(found.ok()) << spec << " " << devices << ": " << *found;
    EXPECT_THAT(std::string(found.status().message()), HasSubstr(error));
  }
}

// Every preset and topology, by its own example: to its half, or an error.
TEST(ResizedSpec, NeverHasAnotherSize) {
  int resized = 0;
  for (const ClusterSpelling& spelling : ListClusters()) {
    const absl::StatusOr<Cluster> own = ParseCluster(spelling.example);
    if (!own.ok()) continue;  // a file
    for (const int64_t devices : {int64_t{1}, int64_t{own->size()} / 2, int64_t{own->size()} * 2}) {
      const absl::StatusOr<std::string> spec = ResizedSpec(spelling.example, devices);
      if (!spec.ok()) {
        EXPECT_TRUE(absl::IsInvalidArgument(spec.status())) << spec.status();
        continue;
      }
      ++resized;
      EXPECT_EQ(ParseCluster(*spec)->size(), devices) << *spec;
    }
  }
  EXPECT_GT(resized, 20);
}

TEST(ResizedSpec, LeavesShapesThatSayMore) {
  for (const char* spec : {"tpu-v4:2x2x32", "torus:4x4@50GB/s"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ResizedSpec(spec, 64).status())) << spec;
  }
}

TEST(SmallerSizes, AreThoseThatDivide) {
  EXPECT_EQ(SmallerSizes("dgx-h100:6").value(),
            (std::vector<int64_t>{1, 2, 3, 4, 6, 8, 16, 24, 48}));
  EXPECT_EQ(SmallerSizes("uniform:6@1GB/s").value(), (std::vector<int64_t>{1, 2, 3, 6}));
  EXPECT_EQ(SmallerSizes("tpu-v4:4").value(), (std::vector<int64_t>{4, 8, 16}));
  EXPECT_FALSE(SmallerSizes("torus:4x4@50GB/s").ok());
}

}  // namespace
}  // namespace resize_test_cc
}  // namespace orrery::cluster
