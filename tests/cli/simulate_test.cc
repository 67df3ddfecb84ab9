#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run.h"

namespace orrery::cli {
namespace {

using nlohmann::json;

const std::string kMlp = "--model mlp:layers=4,dim=64 --batch-size 48 --cluster uniform:8@200Gbps";

std::vector<std::string> Keys(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(Simulate, DrawsTheTimeline) {
  const Finished finished =
      Execute("simulate " + kMlp + " --timeline --schedule 1f1b --pp 2 --micro-batches 3");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, testing::EndsWith("\n"
                                              "stage 0 | F0 F1 .  B0 F2 B1 .  B2\n"
                                              "stage 1 | .  F0 B0 F1 B1 F2 B2 .\n"));
}

// The notebook's step on one device, and its best configuration of sixteen.
TEST(Simulate, PlaysTheNotebook) {
  const std::string notebook =
      "simulate --preset distir --model mlp:layers=64,dim=8192 --batch-size 8192 ";
  EXPECT_THAT(Execute(notebook + "--optimizer none --cluster uniform:1@200Gbps").out,
              testing::HasSubstr("(15.255254978"));
  EXPECT_THAT(Execute(notebook + "--cluster uniform:16@200Gbps --dp 4 --hp 4").out,
              testing::HasSubstr("5491.04 samples/s"));
}

TEST(Simulate, WritesTheReportAsJson) {
  Clear();
  ASSERT_EQ(
      Execute("simulate " + kMlp + " --dp 2 --hp 2 --pp 2 --micro-batches 3 --json r.json").code,
      0);
  const json report = json::parse(Contents("r.json"));
  EXPECT_THAT(
      Keys(report),
      testing::IsSupersetOf({"bubble_fraction", "bytes_reduced", "bytes_sent", "communication",
                             "communication_overhead", "devices", "exposed_communication_s", "fits",
                             "hfu", "mfu", "peak_memory_bytes", "simulated_tasks", "step_time_s",
                             "throughput_samples_per_s", "tokens_per_s", "wall_time_s"}));
  double exposed = 0;
  for (const json& row : report["communication"]) {
    EXPECT_THAT(Keys(row),
                testing::ElementsAre("bytes", "exposed_s", "hidden_s", "kind", "level", "total_s"));
    exposed += row["exposed_s"].get<double>();
  }
  EXPECT_NEAR(exposed, report["exposed_communication_s"].get<double>(), 1e-15);
  ASSERT_EQ(report["devices"].size(), 8u);
  for (size_t rank = 0; rank < 8; ++rank) {
    const json& device = report["devices"][rank];
    EXPECT_EQ(device["rank"], rank);
    EXPECT_THAT(Keys(device), testing::IsSupersetOf({"busy_s", "communication_s", "finish_s",
                                                     "memory", "peak_memory_bytes", "rank"}));
    EXPECT_THAT(Keys(device["memory"]),
                testing::IsSupersetOf(
                    {"activations", "buffers", "gradients", "optimizer", "other", "parameters"}));
    int64_t sum = 0;
    for (const auto& [kind, bytes] : device["memory"].items()) sum += bytes.get<int64_t>();
    EXPECT_EQ(sum, device["peak_memory_bytes"]);
    EXPECT_LE(device["finish_s"], report["step_time_s"]);
  }
}

// Wall time apart, the same bytes whatever is folded.
TEST(Simulate, FoldingChangesNothingThatIsReported) {
  Clear();
  const std::string command =
      "simulate " + kMlp + " --dp 2 --hp 2 --pp 2 --micro-batches 3 --json ";
  ASSERT_EQ(Execute(command + "folded.json").code, 0);
  ASSERT_EQ(Execute(command + "unfolded.json --no-fold").code, 0);
  json folded = json::parse(Contents("folded.json")),
       unfolded = json::parse(Contents("unfolded.json"));
  EXPECT_LT(folded["simulated_tasks"], unfolded["simulated_tasks"]);
  for (const char* key : {"wall_time_s", "simulated_tasks"}) {
    folded.erase(key);
    unfolded.erase(key);
  }
  EXPECT_EQ(folded.dump(1), unfolded.dump(1));
}

TEST(Simulate, SaysWhenMemoryDoesNotSuffice) {
  const Finished finished = Execute("simulate " + kMlp + " --memory-limit 10kB");
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out, testing::HasSubstr("DOES NOT FIT"));
}

TEST(Simulate, ReadsAnOnnxFile) {
  const Finished finished = Execute(
      "simulate --model $MODELS/mlp_64x512.onnx --batch-size 8192 --cluster dgx-a100:2 --dp 4 --hp "
      "2 "
      "--pp 2 --micro-batches 8");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, testing::HasSubstr("of 2 rank classes"));
}

}  // namespace
}  // namespace orrery::cli
