#include "cluster/memory_overhead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cluster/device.h"

namespace orrery::cluster {
namespace memory_overhead_test_cc {
namespace {

std::string Parsed(absl::string_view text, absl::string_view device = "a100-80gb") {
  const absl::StatusOr<MemoryOverhead> overhead = ParseMemoryOverhead(text, device);
  if (!overhead.ok()) return std::string(overhead.status().message());
  return absl::StrCat(ToString(overhead->framework), " ", ToString(overhead->communicator), " ",
                      ToString(overhead->workspace), " ", overhead->fragmentation);
}

TEST(MemoryOverhead, IsReadFromText) {
  EXPECT_EQ(Parsed(""), "0 B 0 B 0 B 0");
  EXPECT_EQ(Parsed("none"), "0 B 0 B 0 B 0");
  EXPECT_EQ(Parsed("framework=1GiB"), "1.00 GiB 0 B 0 B 0");
  EXPECT_EQ(Parsed("fragmentation=0.05,workspace=32MiB,communicator=1KiB"),
            "0 B 1.00 KiB 32.0 MiB 0.05");
  EXPECT_EQ(Parsed("usual"), "512 MiB 240 MiB 8.00 MiB 0");
  EXPECT_EQ(Parsed("usual", "h100-80gb"), "512 MiB 240 MiB 64.0 MiB 0");
  EXPECT_EQ(Parsed("usual", "a100-80gb-pcie"), "512 MiB 40.0 MiB 8.00 MiB 0");
  EXPECT_EQ(Parsed("usual,framework=1GiB", "h100-80gb"), "1.00 GiB 240 MiB 64.0 MiB 0");
  EXPECT_EQ(Parsed("usual", "mine"), "0 B 0 B 0 B 0");
}

TEST(MemoryOverhead, WhatIsWrongIsNamed) {
  for (const char* text : {"framework", "framework=lots", "fragmentation=2", "fragmentation=-0.1",
                           "context=1GiB", "framework=1GiB,usual", "framework=1GiB,"}) {
    EXPECT_THAT(Parsed(text), testing::HasSubstr("wanted none, usual, or framework=")) << text;
  }
}

// A step must still fit: no overhead is more than a tenth of what it is in.
TEST(MemoryOverhead, IsSmallOnEveryDevice) {
  for (const Device& device : AllDevices()) {
    const MemoryOverhead overhead = UsualOverhead(device.name);
    const Bytes all = overhead.framework + overhead.communicator * 3 + overhead.workspace;
    EXPECT_GT(all, Bytes(0)) << device.name;
    EXPECT_LT(all * 10, device.memory) << device.name;
  }
}

}  // namespace
}  // namespace memory_overhead_test_cc
}  // namespace orrery::cluster
