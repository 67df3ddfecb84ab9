#include "cluster/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "cluster/device.h"

namespace orrery::cluster {
namespace quantity_test_cc {
namespace {

TEST(Quantity, ReadsWhatPeopleWrite) {
  EXPECT_EQ(ParseDuration("1.8us").value(), Duration(1'800'000));
  EXPECT_EQ(ParseDuration("500ns").value(), Duration(500'000));
  EXPECT_EQ(ParseDuration("7ps").value(), Duration(7));
  EXPECT_EQ(ParseDuration("2ms").value(), Duration(2'000'000'000));
  EXPECT_EQ(ParseDuration("1s").value(), Duration(1'000'000'000'000));
  EXPECT_EQ(ParseDuration("0us").value(), Duration(0));
  EXPECT_EQ(ParseFlopRate("989Tflops").value(), FlopRate(989e12));
  EXPECT_EQ(ParseFlopRate("1.25Pflops").value(), FlopRate(1.25e15));
}

TEST(Quantity, RefusesTheRest) {
  for (const char* text : {"", "us", "-1us", "1", "1.8 us", "nanus", "infus", "1e3us", "0x1us",
                           "1.8.2us", ".us", "100000s", "99999999999999999999999999999999us"}) {
    EXPECT_EQ(ParseDuration(text).status().message(),
              absl::StrCat("'", text, "' is no duration; wanted 0 or more with a unit, such as ",
                           "1.8us or 500ns"));
  }
  for (const char* text :
       {"", "0Tflops", "-1Tflops", "nanTflops", "5", "5flops", "9999999Pflops"}) {
    EXPECT_THAT(std::string(ParseFlopRate(text).status().message()),
                testing::StartsWith(absl::StrCat("'", text, "' is no rate of compute; wanted")));
  }
}

TEST(Quantity, PrintsWhatPeopleRead) {
  EXPECT_EQ(Print(Duration(1'850'000)), "1.85us");
  EXPECT_EQ(Print(Duration(0)), "0us");
  EXPECT_EQ(Print(Duration(7)), "7ps");
  EXPECT_EQ(Print(Bytes(80'000'000'000)), "80GB");
  EXPECT_EQ(Print(Bandwidth(450'000'000'000)), "450GB/s");
  EXPECT_EQ(Print(Bandwidth(3'350'000'000'000)), "3.35TB/s");
  EXPECT_EQ(Print(Bandwidth(1)), "0.000001MB/s");
  EXPECT_EQ(Print(FlopRate(494.5e12)), "494.5Tflops");
  EXPECT_EQ(Print(FlopRate(67e12)), "67Tflops");
}

TEST(Quantity, ReadsBackWhatItPrints) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto value = static_cast<int64_t>(random() >> (17 + random() % 45));  // below 2^47
    EXPECT_EQ(ParseDuration(Print(Duration(value))).value(), Duration(value));
    EXPECT_EQ(ParseBytes(Print(Bytes(value))).value(), Bytes(value));
    const Bandwidth rate(value + 1);
    EXPECT_EQ(ParseBandwidth(Print(rate)).value(), rate);
  }
  for (const Device& device : AllDevices()) {
    EXPECT_EQ(ParseFlopRate(Print(device.fp32)).value(), device.fp32) << device.name;
    EXPECT_EQ(ParseFlopRate(Print(device.tf32)).value(), device.tf32) << device.name;
  }
}

}  // namespace
}  // namespace quantity_test_cc
}  // namespace orrery::cluster
