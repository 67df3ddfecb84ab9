#include "simulator/report/report_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "nlohmann/json.hpp"
#include "simulator/engine/longest_path.h"
#include "simulator/program/program_text.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace report_json_test_cc {
namespace {

TEST(ReportJson, IsThisText) {
  const absl::StatusOr<Program> program = ParseProgram(R"(program
rank0 "pp0" members 0,2 stage 0
rank1 "pp1" members 1,3 stage 1
resident rank1 parameters 900 bytes
stream0 rank0 compute
stream1 rank1 compute
label0 "MatMul" compute forward stage 0
label1 "Send" send forward stage 0 bytes 64 level "nic \"0\""
task0 stream0 label0 takes 1500000000000 ps
task1 stream0 stream1 label1 takes 500000000000 ps
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const ModelFigures figures{.throughput_samples_per_s = 8,
                             .tokens_per_s = 0.1,
                             .mfu = 0.5,
                             .hfu = 0.75,
                             .wall_time_s = 1e-3};
  EXPECT_EQ(ReportJson(*program, Summarize(*program, RunLongestPath(*program)), figures),
            R"({
  "step_time_s": 2,
  "throughput_samples_per_s": 8,
  "tokens_per_s": 0.10000000000000001,
  "mfu": 0.5,
  "hfu": 0.75,
  "communication_overhead": 0.40000000000000002,
  "exposed_communication_s": 0.5,
  "communication": [
    {"kind": "send", "level": "nic \"0\"", "bytes": 64, "total_s": 0.5, "exposed_s": 0.5, "hidden_s": 0}
  ],
  "bubble_fraction": 0.375,
  "peak_memory_bytes": 900,
  "fits": true,
  "devices": [
    {"rank": 0, "finish_s": 2, "busy_s": 2, "communication_s": 0.5, "peak_memory_bytes": 0, "memory": {"parameters": 0, "gradients": 0, "optimizer": 0, "activations": 0, "buffers": 0, "other": 0}},
    {"rank": 1, "finish_s": 2, "busy_s": 0.5, "communication_s": 0.5, "peak_memory_bytes": 900, "memory": {"parameters": 900, "gradients": 0, "optimizer": 0, "activations": 0, "buffers": 0, "other": 0}},
    {"rank": 2, "finish_s": 2, "busy_s": 2, "communication_s": 0.5, "peak_memory_bytes": 0, "memory": {"parameters": 0, "gradients": 0, "optimizer": 0, "activations": 0, "buffers": 0, "other": 0}},
    {"rank": 3, "finish_s": 2, "busy_s": 0.5, "communication_s": 0.5, "peak_memory_bytes": 900, "memory": {"parameters": 900, "gradients": 0, "optimizer": 0, "activations": 0, "buffers": 0, "other": 0}}
  ],
  "bytes_sent": 128,
  "bytes_reduced": 0,
  "simulated_tasks": 2,
  "wall_time_s": 0.001
}
)");
}

TEST(ReportJson, ReadsBackToTheLastBit) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Program program = RandomProgram({.seed = seed});
    const Report report = Summarize(program, RunLongestPath(program));
    const ModelFigures figures{.mfu = 1.0 / (seed + 3)};
    const nlohmann::json json = nlohmann::json::parse(ReportJson(program, report, figures));
    EXPECT_EQ(json["step_time_s"].get<double>(), report.step_time.seconds());
    EXPECT_EQ(json["mfu"].get<double>(), figures.mfu);
    EXPECT_EQ(json["bubble_fraction"].get<double>(), report.bubble_fraction);
    EXPECT_EQ(json["fits"].get<bool>(), report.fits);
    EXPECT_EQ(json["devices"].size(), static_cast<size_t>(report.rank_count));
    int32_t last = -1;
    for (const nlohmann::json& device : json["devices"]) {
      EXPECT_GT(device["rank"].get<int32_t>(), last);
      last = device["rank"].get<int32_t>();
      int64_t sum = 0;
      for (const nlohmann::json& bytes : device["memory"]) sum += bytes.get<int64_t>();
      EXPECT_EQ(device["peak_memory_bytes"].get<int64_t>(), sum);
    }
  }
}

TEST(ReportJson, OfNothingParses) {
  const nlohmann::json json = nlohmann::json::parse(ReportJson(Program(), Report(), {}));
  EXPECT_TRUE(json["devices"].is_array());
  EXPECT_EQ(json["devices"].size(), 0u);
}

TEST(ReportJsonDeathTest, JsonHasNoNan) {
  const ModelFigures figures{.mfu = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_DEATH(ReportJson(Program(), Report(), figures), "JSON has no nan");
}

}  // namespace
}  // namespace report_json_test_cc
}  // namespace orrery::simulator
