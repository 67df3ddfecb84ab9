#include "cluster/names/device_list.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace orrery::cluster {
namespace device_list_test_cc {
namespace {

std::string Parsed(const std::string& text, int32_t devices = 64) {
  const auto list = ParseDevices(text, devices);
  if (!list.ok()) return std::string(list.status().message());
  std::string numbers;
  for (const DeviceId device : *list) {
    absl::StrAppend(&numbers, numbers.empty() ? "" : " ", device.index());
  }
  return numbers;
}

TEST(DeviceList, HasDevicesRangesAndStrides) {
  EXPECT_EQ(Parsed("3"), "3");
  EXPECT_EQ(Parsed("8-11,2,63"), "8 9 10 11 2 63");
  EXPECT_EQ(Parsed("1-63:16"), "1 17 33 49");
  EXPECT_EQ(Parsed("0-32:16,8-8:5"), "0 16 32 8");
  EXPECT_EQ(Parsed("", 4), "0 1 2 3");
}

TEST(DeviceList, SaysWhatItIsNot) {
  for (const std::string text : {"x", "3-1", "-1", "0-3:0", "0-3:x", "4:2", "0-3:1:1", "0-1-2"}) {
    EXPECT_EQ(Parsed(text),
              absl::StrCat("'", text, "' is no device or range; wanted such as 0-7 or 0,8,16"));
  }
  EXPECT_EQ(Parsed("0,64"), "device 64 is not of the cluster; wanted 0 to 63");
  EXPECT_EQ(Parsed("0-64:8"), "device 64 is not of the cluster; wanted 0 to 63");
}

}  // namespace
}  // namespace device_list_test_cc
}  // namespace orrery::cluster
