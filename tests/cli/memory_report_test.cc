#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/run.h"

// What simulate says of memory and of the bubble.

namespace orrery::cli {
namespace memory_report_test_cc {
namespace {

using nlohmann::json;

const std::string kMlp = "--model mlp:layers=4,dim=64 --batch-size 48 --cluster uniform:8@200Gbps";

double Sum(const json& bubble) {
  return bubble["warm_up_s"].get<double>() + bubble["steady_s"].get<double>() +
         bubble["cool_down_s"].get<double>() + bubble["imbalance_s"].get<double>();
}

TEST(SimulateMemory, PartsOfTheBubbleAddUp) {
  Clear();
  ASSERT_EQ(Execute("simulate " + kMlp + " --dp 2 --pp 4 --micro-batches 6 --json r.json").code, 0);
  const json report = json::parse(Contents("r.json"));
  const double bubble_s =
      report["bubble_fraction"].get<double>() * report["step_time_s"].get<double>();
  EXPECT_NEAR(Sum(report["bubble"]), bubble_s, 1e-12);
  double sum = 0;
  for (const json& device : report["devices"]) sum += Sum(device["bubble"]);
  EXPECT_NEAR(sum / 8, bubble_s, 1e-12);
}

// Of runs of kernels, and kernel by kernel.
TEST(SimulateMemory, TimelinesHaveThePeaks) {
  for (const char* trace : {"", " --trace t.json"}) {
    Clear();
    const std::string step = "simulate " + kMlp + " --dp 2 --pp 4 --micro-batches 6 --json r.json";
    ASSERT_EQ(Execute(step + trace).code, 0);
    const json report = json::parse(Contents("r.json"));
    EXPECT_EQ(report["memory_timeline"].size(), 4u);
    for (const json& entry : report["memory_timeline"]) {
      const auto bytes = entry["bytes"].get<std::vector<int64_t>>();
      EXPECT_EQ(bytes.size(), entry["time_s"].size());
      EXPECT_EQ(entry["ranks"].size(), 2u);
      const auto most = static_cast<size_t>(std::ranges::max_element(bytes) - bytes.begin());
      for (const json& rank : entry["ranks"]) {
        const json& device = report["devices"][rank.get<size_t>()];
        EXPECT_EQ(bytes[most], device["peak_memory_bytes"]) << trace;
        EXPECT_EQ(entry["time_s"][most], device["peak_time_s"]) << trace;
        EXPECT_THAT(device["peak_task"].get<std::string>(), testing::HasSubstr(" on stage "));
      }
    }
  }
}

TEST(SimulateMemory, WhatDoesNotFitSaysWhatWould) {
  const Finished finished = Execute("simulate " + kMlp + " --memory-limit 280KiB");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, testing::ContainsRegex("needs [0-9.]+ KiB on rank 0; the limit is 280 "
                                                   "KiB; [0-9.]+ KiB too much: optimizer "));
  EXPECT_THAT(finished.out, testing::HasSubstr("would fit with "));
}

TEST(SimulateMemory, OverheadIsAdded) {
  Clear();
  ASSERT_EQ(Execute("simulate " + kMlp + " --dp 2 --json a.json").code, 0);
  ASSERT_EQ(Execute("simulate " + kMlp +
                    " --dp 2 --memory-overhead framework=1MiB,communicator=2MiB --json b.json")
                .code,
            0);
  const auto peak = [](const std::string& file) {
    return json::parse(Contents(file))["peak_memory_bytes"].get<int64_t>();
  };
  EXPECT_EQ(peak("b.json") - peak("a.json"), 3 << 20);
  EXPECT_THAT(Execute("simulate " + kMlp + " --memory-overhead lots").err,
              testing::HasSubstr("--memory-overhead: 'lots': wanted none, usual, or framework="));
}

TEST(SimulateMemory, AsynchronousSchedulesTellTheirVersions) {
  Clear();
  const Finished finished = Execute("simulate " + kMlp +
                                    " --pp 4 --micro-batches 8 --schedule pipedream --timeline "
                                    "--json r.json");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, testing::HasSubstr("3 2 1 0 updates late, by stage"));
  EXPECT_THAT(finished.out, testing::HasSubstr("4 3 2 1, by stage"));
  EXPECT_THAT(finished.out, testing::HasSubstr("as simulated, in the steady state:"));
  const json versions = json::parse(Contents("r.json"))["weight_versions"];
  ASSERT_EQ(versions.size(), 4u);
  EXPECT_EQ(versions[1]["staleness"], 2);
  EXPECT_EQ(versions[1]["weight_versions"], 3);
}

}  // namespace
}  // namespace memory_report_test_cc
}  // namespace orrery::cli
