#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"
#include "transforms/schedules/schedule.h"

namespace orrery::cli {
namespace simulate_test_cc {
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
  EXPECT_THAT(finished.out,
              testing::EndsWith("\n"
                                "rank 0 | 0F0 0F1 .   .   0B0---- 0F2 0B1---- .   0B2----\n"
                                "rank 1 | .   1F0 1B0---- 1F1 1B1---- 1F2 1B2---- .   .\n"));
}

TEST(Simulate, PlaysEverySchedule) {
  const std::string command =
      "simulate --model mlp:layers=16,dim=64 --batch-size 48 --cluster uniform:8@200Gbps --pp 4 "
      "--micro-batches 8 --schedule ";
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    if (schedule->slices_sequence) continue;  // of which an MLP has none: slices_test
    const Finished finished = Execute(absl::StrCat(command, schedule->name));
    EXPECT_EQ(finished.code, 0) << schedule->name << finished.err;
  }
  EXPECT_EQ(Execute(command + "interleaved --chunks 4").code, 0);
  EXPECT_THAT(Execute(command + "zbv --chunks 3").err,
              testing::HasSubstr("--schedule zbv --chunks 3: wanted --chunks 2, or none"));
  EXPECT_THAT(Execute("simulate " + kMlp + " --pp 4 --micro-batches 4 --schedule dualpipe-v").err,
              testing::StartsWith("simulate: infeasible (schedule): schedule dualpipe-v: 4 ranks, "
                                  "4 microbatches, 2 chunks; wanted at least twice"));
}

// The notebook's step on one device, and its best configuration of sixteen.
TEST(Simulate, PlaysTheNotebook) {
  const std::string notebook =
      "simulate --preset distir --model mlp:layers=64,dim=8192 --batch-size 8192 ";
  EXPECT_THAT(Execute(notebook + "--optimizer none --cluster uniform:1@200Gbps").out,
              testing::HasSubstr("(15.255254978"));
  EXPECT_THAT(Execute(notebook + "--cluster uniform:16@200Gbps --dp 4 --hp 4").out,
              testing::HasSubstr("5491 samples/s"));
}

// A built-in model has its loss, and mlp its gradients, written out; forward alone is without them.
TEST(Simulate, PlaysTheForwardOfABuiltInModel) {
  const std::string where = " --batch-size 8 --cluster dgx-h100:1 --dp 4";
  for (const std::string model : {"mlp:layers=4,dim=512", "gpt:layers=2,hidden=512,heads=8,seq=256",
                                  "bert:layers=2,hidden=512,heads=8,seq=256", "resnet-18"}) {
    const Finished forward = Execute(absl::StrCat("simulate --loss none --model ", model, where));
    EXPECT_THAT(forward.out, testing::HasSubstr("exposed communication    0 s")) << forward.err;
    EXPECT_THAT(forward.out, testing::HasSubstr("all of them train, and this is a forward alone"));
    EXPECT_THAT(forward.out, testing::Not(testing::HasSubstr("optimizer"))) << model;
    const std::string graph = "opt --batch-size 8 --loss none " + model;
    EXPECT_EQ(Execute(graph).out, Execute(graph + " --optimizer none").out);
    const Finished step = Execute(absl::StrCat("simulate --model ", model, where));
    EXPECT_THAT(step.out, testing::HasSubstr("all-reduce dp")) << step.err;
  }
}

// One file, one model of the library: what is to be done is the same.
TEST(Simulate, PlaysTheForwardOfAFileAndOfTheSameModelAlike) {
  const std::string flags = " --loss none --batch-size 4 --no-simplify --summary";
  const std::string file =
      Execute("opt " + SourceDir() + "/examples/models/mlp_64x512.onnx" + flags).out;
  const std::string built = Execute("opt mlp:layers=64,dim=512" + flags).out;
  EXPECT_THAT(file, testing::HasSubstr("\nforward  128 ")) << file;
  EXPECT_EQ(file.substr(file.find('\n')), built.substr(built.find('\n')));
}

// What a preset says holds where nothing else is said, and switches go off again.
TEST(Simulate, TakesWhatIsSaidBesideAPreset) {
  const std::string command = "simulate --preset distir " + kMlp + " --dp 2 --pp 2 ";
  const Finished as_it_is = Execute(command);
  EXPECT_THAT(as_it_is.out,
              testing::HasSubstr("--dp 2 --hp 1 --pp 2 --micro-batches 1 --schedule distir\n"));
  EXPECT_THAT(Execute(command + "--blocking=0 --schedule gpipe").out,
              testing::HasSubstr("--schedule gpipe --blocking=0\n"));
  EXPECT_THAT(Execute(command + "--layers-per-stage 2,2").out,
              testing::HasSubstr("--layers-per-stage 2,2\n"));
  EXPECT_THAT(Execute("grid_search --preset distir " + kMlp + " --pp 2 --layers-per-stage 2,2").out,
              testing::HasSubstr("--layers-per-stage 2,2\n"));
}

// As far as predictions of measured steps like it were; of a step like none, that there is none.
TEST(Simulate, SaysHowFarOffItMayBe) {
  Clear();
  const auto report = [](const std::string& words, const std::string& line) {
    const Finished finished =
        Execute("simulate --batch-size 128 --memory-limit none " + words + " --json r.json");
    EXPECT_THAT(finished.out, testing::ContainsRegex("\n  error bar +" + line));
    return json::parse(Contents("r.json"));
  };
  const json near = report(
      "--model llama3-8b --dtype bf16 --cluster dgx-h100:1 --dp 8 --micro-batches 16 --stack nemo",
      "[0-9.]+ s to [0-9.]+ s \\([0-9.]+ %\\), which 68 % of the [0-9]+ nearest measured steps "
      "keep");
  EXPECT_LT(near["step_time_low_s"], near["step_time_s"]);
  EXPECT_GT(near["step_time_high_s"], near["step_time_s"]);
  ASSERT_GE(near["nearest_measured"].size(), 5u);
  EXPECT_LE(near["nearest_measured"][0]["distance"], near["nearest_measured"][4]["distance"]);
  EXPECT_TRUE(near["nearest_measured"][0]["id"].is_string());
  EXPECT_TRUE(near["nearest_measured"][0]["error"].is_number());
  const json far = report("--model mlp:layers=2,dim=64 --cluster uniform:1@200Gbps",
                          "no measured step is near: ");
  EXPECT_TRUE(far["step_time_low_s"].is_null());
  EXPECT_TRUE(far["step_time_high_s"].is_null());
  EXPECT_TRUE(far["nearest_measured"].empty());
}

// Without a word about it, prices are what kernels reach. That rates of a device are assumed is a
// fact of the report, whoever asks for the cost model, and no warning.
TEST(Simulate, PricesByWhatKernelsReach) {
  Clear();
  const std::string step = "--model gpt2-small --batch-size 8 --dtype bf16 --dp 2 --cluster ";
  const std::string v100 = step + "uniform:2@200Gbps", h100 = step + "dgx-h100:1";
  const auto report = [](const std::string& words) {
    const Finished finished = Execute("simulate " + words + " --json r.json");
    EXPECT_EQ(finished.code, 0) << words;
    EXPECT_EQ(finished.err, "") << words;
    json report = json::parse(Contents("r.json"));
    const bool told = finished.out.find("\n  assumed   ") != std::string::npos;
    EXPECT_EQ(told, !report["assumed"].get<std::string>().empty()) << words;
    report.erase("wall_time_s");
    return report;
  };
  EXPECT_EQ(report(h100), report(h100 + " --cost-model kernels"));
  EXPECT_GT(report(h100)["step_time_s"], report(h100 + " --cost-model roofline")["step_time_s"]);
  EXPECT_EQ(report(h100)["assumed"], "");
  EXPECT_FALSE(report(h100 + " --cost-model roofline").contains("nearest_measured"));
  const std::string narrow =
      "--model gpt2-small --batch-size 8 --dtype fp8-mixed --dp 2 --cluster ";
  EXPECT_EQ(report(narrow + "dgx-h100:1")["assumed"], "");
  EXPECT_EQ(report(narrow + "dgx-a100:1")["assumed"],
            "a100-80gb has no products of 8 bits: they take as long as those of 16");
  const std::string blocks =
      "--model gpt2-small --batch-size 8 --dtype fp8-block --dp 2 --cluster ";
  EXPECT_EQ(report(blocks + "dgx-h100:1")["assumed"], "");
  EXPECT_EQ(report(blocks + "dgx-a100:1")["assumed"], report(narrow + "dgx-a100:1")["assumed"]);
  EXPECT_GT(report(blocks + "dgx-h100:1")["step_time_s"],
            report(narrow + "dgx-h100:1")["step_time_s"]);
  const std::string four =
      "--model gpt2-small --batch-size 8 --dtype nvfp4-mixed --dp 2 --cluster ";
  EXPECT_EQ(report(four + "dgx-b200:1")["assumed"], "");
  EXPECT_EQ(report(four + "dgx-h100:1")["assumed"],
            "h100-80gb has no products of 4 bits: they take as long as those of 8");
  EXPECT_EQ(report(four + "dgx-a100:1")["assumed"],
            "a100-80gb has no products of 4 bits: they take as long as those of 16");
  const std::string assumed =
      "rates of kernels, between those of A100, H100 and B200: none was measured on v100-32gb";
  EXPECT_EQ(report(v100)["assumed"], assumed);
  EXPECT_EQ(report(v100 + " --cost-model kernels")["assumed"], assumed);
  EXPECT_EQ(report(v100 + " --cost-model roofline")["assumed"], "");
  const Finished search = Execute("grid_search " + v100 + " --micro-batches 1");
  EXPECT_EQ(search.err, "");
  EXPECT_THAT(search.out, testing::HasSubstr("\nassumed: " + assumed + "\n"));
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

// The time that it takes apart, the same bytes whatever is folded.
TEST(Simulate, FoldingChangesNothingThatIsReported) {
  Clear();
  const std::string command =
      "simulate " + kMlp + " --dp 2 --hp 2 --pp 2 --micro-batches 3 --json ";
  ASSERT_EQ(Execute(command + "folded.json").code, 0);
  ASSERT_EQ(Execute(command + "unfolded.json --no-fold").code, 0);
  json folded = json::parse(Contents("folded.json")),
       unfolded = json::parse(Contents("unfolded.json"));
  EXPECT_LT(folded["simulated_tasks"], unfolded["simulated_tasks"]);
  for (json* report : {&folded, &unfolded}) {
    for (const char* key : {"wall_time_s", "simulated_tasks"}) report->erase(key);
    // What folded ranks do at once is one step of the timeline: its peak is the same.
    for (json& timeline : (*report)["memory_timeline"]) {
      timeline["bytes"] = *std::ranges::max_element(timeline["bytes"]);
      timeline.erase("time_s");
    }
  }
  EXPECT_EQ(folded.dump(1), unfolded.dump(1));
}

const std::string kTwoNodes =
    "simulate --model mlp:layers=4,dim=1024 --batch-size 4096 --cluster "
    "dgx-a100:2,ideal-collectives "
    "--dp 2 --hp 8 --sharding megatron ";

// Tensor parallelism across nodes costs more than within them.
TEST(Simulate, ABadOrderShows) {
  Clear();
  const auto report = [](const std::string& flags) {
    const Finished finished = Execute(kTwoNodes + flags + " --json r.json");
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.code == 0 ? json::parse(Contents("r.json")) : json();
  };
  const auto level_of = [](const json& report, const std::string& kind) {
    for (const json& row : report["communication"]) {
      if (row["kind"] == kind) return row["level"].get<std::string>();
    }
    return std::string();
  };
  const json good = report(""), same = report("--order hp,pp,dp"), bad = report("--order dp,hp,pp");
  EXPECT_EQ(good["step_time_s"], same["step_time_s"]);
  EXPECT_GT(bad["step_time_s"].get<double>(), 1.2 * good["step_time_s"].get<double>());
  EXPECT_EQ(level_of(good, "all-reduce hp"), "port");
  EXPECT_EQ(level_of(good, "all-reduce dp"), "nic");
  EXPECT_EQ(level_of(bad, "all-reduce hp"), "nic");
  EXPECT_EQ(level_of(bad, "all-reduce dp"), "port");
}

// The step time that a report begins with: "847 us".
std::string StepTime(const std::string& out) {
  const std::string label = "step time ";
  const size_t begin = out.find_first_not_of(' ', out.find(label) + label.size());
  return out.substr(begin, out.find(" (", begin) - begin);
}

// Who does what --explain says gets what it promised.
TEST(Simulate, ExplainNamesTheBusiestLinkAndWhatRelievesIt) {
  const std::string bad = kTwoNodes + "--order dp,hp,pp ";
  const Finished explained = Execute(bad + "--explain");
  ASSERT_EQ(explained.code, 0) << explained.err;
  EXPECT_EQ(StepTime(explained.out), StepTime(Execute(bad).out));
  const std::string relieved = StepTime(Execute(kTwoNodes + "--order pp,hp,dp").out);
  EXPECT_THAT(
      explained.out.substr(explained.out.find("busiest links")),
      testing::MatchesRegex(
          "busiest links, by level:\n"
          "  nic +[0-9.]+ % used, full for [0-9.]+ % of the step: device0 -> switch2 \\(nic\\) "
          "and 31 alike\n"
          " +carries all-reduce hp 100.0 %\n"
          "  port +[0-9.]+ % used, full for [0-9.]+ % of the step: .*\n"
          " +carries all-reduce hp [0-9.]+ %, all-reduce dp [0-9.]+ %\n"
          "what would relieve them \\(step time now " +
          StepTime(explained.out) +
          "\\):\n"
          "  --order pp,hp,dp +" +
          relieved +
          " +-[0-9.]+ %\n"
          "  nic links of twice the rate .* -[0-9.]+ %\n"
          "  port links of twice the rate .*\n"));
  EXPECT_EQ(Execute(kTwoNodes).out.find("busiest"), std::string::npos);
}

TEST(Simulate, ExplainWantsACostModelWithLinks) {
  const Finished finished = Execute(kTwoNodes + "--cost-model distir --explain");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, testing::HasSubstr("--explain: the distir cost model knows no links"));
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
}  // namespace simulate_test_cc
}  // namespace orrery::cli
