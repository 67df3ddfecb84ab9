#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/run.h"
#include "tools/reports/gzip_test_util.h"

// The Chrome trace of a real run, read back.

namespace orrery::cli {
namespace trace_test_cc {
namespace {

using nlohmann::json;

const std::string kCommand =
    "simulate --model mlp:layers=4,dim=64 --batch-size 48 --cluster uniform:8@200Gbps --dp 2 --hp "
    "2 "
    "--pp 2 --micro-batches 3 --optimizer sgd ";

json Trace(const std::string& flags) {
  Clear();
  const Finished finished = Execute(kCommand + flags + " --trace t.json");
  EXPECT_EQ(finished.code, 0) << finished.err;
  const json trace = json::parse(Contents("t.json"));
  return trace.is_array() ? trace : trace["traceEvents"];
}

TEST(Trace, HasAProcessARank) {
  std::set<std::string> names;
  for (const json& event : Trace("--no-fold")) {
    if (event["ph"] == "M" && event["name"] == "process_name")
      names.insert(event["args"]["name"].dump());
  }
  EXPECT_EQ(names.size(), 9u);  // and one of the network
}

TEST(Trace, TasksSayWhatTheyAre) {
  int kernels = 0, flops = 0;
  for (const json& event : Trace("")) {
    if (event["ph"] != "X" || event["cat"] != "kernel") continue;
    ++kernels;
    const json& args = event["args"];
    for (const char* key : {"bytes", "microbatch", "stage"}) {
      const bool once_a_step =
          std::string(key) == "microbatch" && args.value("phase", "") == "update";
      EXPECT_TRUE(args.contains(key) || once_a_step) << event;
    }
    flops += args.contains("flops");
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_GE(event["ts"].get<double>(), 0);
  }
  EXPECT_GT(kernels, 50);
  EXPECT_GT(flops, 30);
}

TEST(Trace, TasksOfOneThreadDoNotOverlap) {
  std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<double, double>>> spans;
  for (const json& event : Trace("")) {
    if (event["ph"] != "X") continue;
    const double start = event["ts"], duration = event["dur"];
    spans[{event["pid"], event["tid"]}].emplace_back(start, start + duration);
  }
  EXPECT_GE(spans.size(), 4u);
  for (auto& [thread, list] : spans) {
    std::sort(list.begin(), list.end());
    for (size_t i = 1; i < list.size(); ++i) EXPECT_LE(list[i - 1].second, list[i].first + 1e-6);
  }
}

TEST(Trace, EveryFlowThatStartsEnds) {
  std::map<std::string, std::pair<int, int>> flows;  // starts, ends
  for (const json& event : Trace("")) {
    if (event["ph"] == "s") ++flows[event["id"].dump()].first;
    if (event["ph"] == "f") ++flows[event["id"].dump()].second;
  }
  EXPECT_GE(flows.size(), 6u);  // three microbatches, there and back
  for (const auto& [id, ends] : flows) EXPECT_EQ(ends, std::make_pair(1, 1)) << id;
}

// Kernel by kernel: the report's runs of kernels may take more at once, never less.
TEST(Trace, CountsMemory) {
  for (const std::string flags : {"", "--blocking "}) {
    double largest = 0;
    for (const json& event : Trace(flags + "--json r.json")) {
      if (event["ph"] != "C") continue;
      double sum = 0;
      for (const auto& [kind, bytes] : event["args"].items()) sum += bytes.get<double>();
      largest = std::max(largest, sum);
    }
    const auto peak = json::parse(Contents("r.json"))["peak_memory_bytes"].get<double>();
    EXPECT_LE(largest, peak);
    EXPECT_GE(largest, flags.empty() ? 0.8 * peak : peak);
  }
}

TEST(Trace, EndsWhenTheStepDoes) {
  double end = 0;
  for (const json& event : Trace("--json r.json")) {
    if (event["ph"] == "X")
      end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_NEAR(end * 1e-6, json::parse(Contents("r.json"))["step_time_s"].get<double>(), 1e-9);
}

TEST(Trace, PackedIsTheSame) {
  Clear();
  ASSERT_EQ(Execute(kCommand + "--trace plain.json").code, 0);
  ASSERT_EQ(Execute(kCommand + "--trace packed.json.gz").code, 0);
  const std::string plain = Contents("plain.json"), packed = Contents("packed.json.gz");
  EXPECT_LT(packed.size(), plain.size() / 4);
  EXPECT_EQ(tools::Unpacked(packed), plain);
}

TEST(Trace, OverwritesNothingThatIsNamedBeside) {
  Clear();
  Write("7.orr", "not touched");
  for (const auto& [flags, error] :
       {std::pair{"--trace 'r{rank}.json' --json r0.json", "two outputs go to this file"},
        {"--trace 'r{rank}.json' --memory-snapshot r12.json", "two outputs go to this file"},
        {"--trace '{rank}.orr' --schedule-file 7.orr", "is the file that --schedule-file reads"},
        {"--trace t.json --memory-snapshot 'm{rank}.pickle'", "is of one rank"}}) {
    const Finished finished = Execute(kCommand + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_THAT(finished.err, testing::HasSubstr(error)) << flags;
  }
  EXPECT_EQ(Contents("7.orr"), "not touched");
}

TEST(Trace, RefusesWhatItCannotShow) {
  Clear();
  for (const auto& [flags, error] :
       {std::pair{"--trace-ranks 8", "got rank 8; wanted ranks from 0 to 7, or all"},
        {"--trace-ranks ''", "--trace-ranks '': wanted a value"},
        {"--trace-microbatches 3", "got 3; the run has 0 to 2"},
        {"--trace-microbatches 2-", "wanted numbers and ranges"},
        {"--trace-level deep", "wanted stage, op or flow"}}) {
    const Finished finished = Execute(kCommand + "--trace t.json " + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_THAT(finished.err, testing::HasSubstr(error)) << flags;
    EXPECT_FALSE(std::filesystem::exists(Folder() + "/t.json")) << flags;
  }
}

}  // namespace
}  // namespace trace_test_cc
}  // namespace orrery::cli
