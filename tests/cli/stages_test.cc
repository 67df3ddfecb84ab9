#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// Where pipeline stages begin, as users ask for it.

namespace orrery::cli {
namespace stages_test_cc {
namespace {

using ::testing::HasSubstr;

const std::string kGpt =
    "simulate --model gpt:layers=8,hidden=256,heads=4,seq=128,vocab=1024,tied_embeddings=0 "
    "--batch-size 32 --cluster dgx-a100:1 --pp 4 --micro-batches 8 ";

double StepSeconds(const std::string& command) {
  const Finished finished = Execute(command + " --json report.json");
  EXPECT_EQ(finished.code, 0) << command << "\n" << finished.err;
  if (finished.code != 0) return 0;
  return nlohmann::json::parse(Contents("report.json"))["step_time_s"];
}

std::string Error(const std::string& command) {
  const Finished finished = Execute(command);
  EXPECT_EQ(finished.code, 1) << command;
  EXPECT_EQ(finished.out, "");
  return finished.err;
}

TEST(Stages, AreWhatTheUserSays) {
  const double equal = StepSeconds(kGpt + "--stages-by layers");
  EXPECT_EQ(StepSeconds(kGpt + "--layers-per-stage 2,2,2,2"), equal);
  EXPECT_EQ(StepSeconds(kGpt + "--split-at 'h[.][246][.]ln_1$'"), equal);
  EXPECT_EQ(StepSeconds(kGpt + "--split-at 'h[.][246][.]'"), equal);
  EXPECT_GT(StepSeconds(kGpt + "--layers-per-stage 1,2,2,3"), equal);
}

TEST(Stages, ThatCannotBeSayWhy) {
  EXPECT_EQ(Error(kGpt + "--layers-per-stage 2,2,2,3"),
            "simulate: infeasible (divisibility): --layers-per-stage 2,2,2,3 adds up to 9 layers; "
            "the model has 8\n");
  EXPECT_EQ(Error(kGpt + "--layers-per-stage 4,4"),
            "simulate: infeasible (divisibility): --layers-per-stage 4,4 is for 2 stages; wanted "
            "4\n");
  EXPECT_EQ(Error(kGpt + "--split-at 'h[.][46][.]'"),
            "simulate: infeasible (divisibility): --split-at 'h[.][46][.]' matches at 2 positions: "
            "h.4.ln_1, h.6.ln_1; wanted 3 for 4 stages\n");
  EXPECT_EQ(Error(kGpt + "--layers-per-stage 2,0"),
            "simulate: --layers-per-stage '2,0': wanted a number of at least 1 for each stage, as "
            "in 23,24,24,25\n");
  EXPECT_EQ(Error(kGpt + "--split-at '('"),
            "simulate: --split-at '(': missing ): (; wanted a regular expression\n");
  EXPECT_EQ(Error(kGpt + "--stages-by size"),
            "simulate: --stages-by 'size': wanted cost, ops, layers, flops or distir\n");
  for (const char* by : {"cost", "flops"}) {
    EXPECT_EQ(Error(kGpt + "--layers-per-stage 2,2,2,2 --stages-by " + by),
              absl::StrCat("simulate: --stages-by ", by,
                           ": wanted one word on where stages begin: split-at and "
                           "layers-per-stage are others\n"));
  }
  EXPECT_EQ(Error(kGpt + "--split-at h --layers-per-stage 2,2,2,2"),
            "simulate: --split-at: a pattern of first ops and layers of each stage each say where "
            "stages begin; wanted one\n");
}

// The default, by cost, is never slower than equally many layers.
TEST(Stages, ByCostAreNoSlowerThanEquallyManyLayers) {
  struct Case {
    std::string model;
    int faster = 0;
  };
  for (const Case& c : CasesToWalk<Case>({{"$MODELS/gpt2_small.onnx --batch-size 128", 6},
                                          {"$MODELS/bert_base.onnx --batch-size 128", 1},
                                          {"$MODELS/llama_4layer.onnx --batch-size 64", 0},
                                          {"$MODELS/resnet50.onnx --batch-size 256", 4},
                                          {"gpt3-175b:seq=2048 --batch-size 64", 0},
                                          {"llama3-8b --batch-size 64", 6}})) {
    int faster = 0;
    for (const int pp : {2, 4, 8}) {
      for (const int microbatches : {4, 16}) {
        const std::string command = absl::StrCat(
            "simulate --model ", c.model, " --dtype bf16 --cluster dgx-a100:1 --memory-limit none",
            " --pp ", pp, " --micro-batches ", microbatches);
        const double cost = StepSeconds(command);
        const double layers = StepSeconds(command + " --stages-by layers");
        EXPECT_LE(cost, layers * 1.003) << command;
        faster += cost < 0.99 * layers ? 1 : 0;
      }
    }
    EXPECT_GE(faster, c.faster) << c.model;
  }
}

// 49 products of GPT-2 are stages of parts of a layer where there are more stages than layers.
TEST(Stages, AreCutWithinLayersWhereThereAreTooFew) {
  EXPECT_GT(StepSeconds("simulate --model $MODELS/gpt2_small.onnx --batch-size 128 --cluster "
                        "dgx-a100:2 --pp 16 --micro-batches 16"),
            0);
}

TEST(Stages, AreMovedWhereMemoryIsShort) {
  // Four microbatches are in flight on the first stage, one on the last.
  const std::string command =
      "simulate --model gpt:layers=16,hidden=256,heads=4,seq=512,vocab=1024,tied_embeddings=0 "
      "--batch-size 64 --cluster dgx-a100:1 --pp 4 --micro-batches 8 ";
  EXPECT_THAT(Execute(command + "--stages-by layers --memory-limit 1.4GB").out,
              HasSubstr("DOES NOT FIT"));
  EXPECT_THAT(Execute(command + "--memory-limit 1.4GB").out, HasSubstr(", fits"));
}

TEST(Stages, ThatPipeDreamPlans) {
  const Finished finished = Execute(
      "simulate --model mlp:layers=4,dim=256 --batch-size 64 --micro-batches 4 --cluster "
      "uniform:4@1Gbps --plan pipedream");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("PipeDream's plan: 4 layers on 4 devices, minibatches of 16 "
                                      "samples\n"));
  EXPECT_THAT(finished.out, HasSubstr("samples/s\n"));
  EXPECT_THAT(finished.out, HasSubstr("--stage-meshes 1x1,1x1,1x1,1x1\n"));
  EXPECT_THAT(finished.out, HasSubstr("  step time "));
  EXPECT_THAT(Error("simulate --model mlp:layers=4,dim=8 --batch-size 8 --cluster uniform:4@1Gbps "
                    "--plan pipedream --micro-batches 0"),
              HasSubstr("0 microbatches; wanted a divisor"));
}

TEST(Stages, ThatAlpaPlans) {
  const std::string model =
      "simulate --model mlp:layers=4,dim=256 --batch-size 64 --micro-batches 4 --cluster "
      "uniform:4@1Gbps ";
  // Whatever hp it chooses, the flag is none that means nothing.
  EXPECT_EQ(Execute(model + "--plan alpa --uneven split").code, 0);
  const Finished finished = Execute(model + "--plan alpa");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("Alpa's plans: "));
  EXPECT_THAT(finished.out, HasSubstr(" optimum "));
  EXPECT_THAT(finished.out, HasSubstr("  step time "));
}

TEST(Stages, WithRanksOfTheirOwnSayWhatIsWanted) {
  const std::string model =
      "simulate --model mlp:layers=4,dim=256 --batch-size 64 --micro-batches 4 --cluster "
      "uniform:4@1Gbps ";
  const std::vector<std::pair<std::string, std::string>> errors = {
      {"--plan dreams", "--plan 'dreams': wanted pipedream or alpa"},
      {"--plan alpa --dp 2", "--plan alpa: it says itself what --dp is; wanted none"},
      {"--stage-meshes 2x1,2x1@1",
       "--stage-meshes: device 1 is of stages 0 and 1; wanted each of one"},
      {"--stage-meshes 2x1,3x1", "uniform:4@1Gbps has 4 devices; "},
      {"--stage-meshes 2x1,2x1 --dp 2", "degrees dp, hp, cp and ep of all stages; wanted none"},
      {"--dp 2 --shares 1,2", "1,2 adds up to 3 microbatches; wanted the 4"},
      {"--shares round-robin", "wanted dp of at least 2"},
      {"--stage-meshes 1x1,1x1 --jitter rank=1%", "wanted none of these"},
      {"--stage-meshes 1x1,1x1 --order pp,hp,dp", "follow each other; wanted one that has pp last"},
  };
  for (const auto& [flags, text] : errors) {
    const Finished finished = Execute(model + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    EXPECT_THAT(finished.err, HasSubstr(text)) << flags;
    EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << finished.err;
  }
}

TEST(Stages, PipeDreamSaysHowManyMicrobatchesItsReplicasWant) {
  const Finished finished =
      Execute("simulate --model gpt2-small --batch-size 64 --cluster dgx-a100:1 --plan pipedream");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.out, HasSubstr("PipeDream's plan: 12 layers on 8 devices"));
  EXPECT_THAT(finished.err,
              testing::ContainsRegex("--plan pipedream: a stage has [58] replicas, each of which "
                                     "runs whole microbatches; wanted --micro-batches of at least "
                                     "as many\n$"));
}

// No replica waits for another before the end of a step, which the gradient of positions once did.
TEST(Stages, OfAFileAreDealt) {
  const std::string model =
      "simulate --model $MODELS/gpt2_small.onnx --batch-size 8 --cluster dgx-a100:1 "
      "--micro-batches 4 ";
  const double whole = StepSeconds(model + "--dp 2 --pp 2");
  const double dealt = StepSeconds(model + "--dp 2 --pp 2 --shares round-robin");
  EXPECT_GT(dealt, 0.8 * whole);
  EXPECT_LT(dealt, 1.5 * whole);
}

TEST(Stages, OrdersOfAFileAreNotDealt) {
  Write("orders.csv",
        "0F0,0F1,0B0,0B1,0F2,0B2,0F3,0B3\n"
        "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
  EXPECT_THAT(Error("simulate --model mlp:layers=4,dim=64 --batch-size 16 --cluster "
                    "uniform:4@1Gbps --dp 2 --pp 2 --micro-batches 4 --shares round-robin "
                    "--schedule-file orders.csv"),
              HasSubstr("--schedule-file has orders of all microbatches"));
}

TEST(Stages, ASearchTriesThemWithWhatElseIsListed) {
  const std::string search =
      "grid_search --model gpt:layers=4,hidden=128,heads=4,seq=64,vocab=512 --batch-size 24 "
      "--cluster uniform:4@100Gbps --micro-batches 6 --csv rows.csv ";
  const auto rows = [&](const std::string& flags) {
    const Finished finished = Execute(search + flags);
    EXPECT_EQ(finished.code, 0) << finished.err;
    std::vector<std::string> with;
    for (const absl::string_view line : absl::StrSplit(Contents("rows.csv"), '\n')) {
      if (absl::StrContains(line, "x1@") || absl::StrContains(line, "1x1,") ||
          absl::StrContains(line, "2x1,") || absl::StrContains(line, "1x2,")) {
        with.emplace_back(line);
      }
    }
    return with;
  };
  bool full = false, none = false;
  for (const std::string& row : rows("--unequal-stages --recompute full,none --no-prune")) {
    full = full || absl::StrContains(row, ",full,");
    none = none || absl::StrContains(row, ",none,");
  }
  EXPECT_TRUE(full && none);
  int64_t single = 0;  // of stages that share nothing: once, whatever the stage of ZeRO
  for (const std::string& row : rows("--unequal-stages --zero 0,1,3 --no-prune")) {
    single += absl::StrContains(row, "1x1,1x1,1x1,1x1") ? 1 : 0;
  }
  EXPECT_EQ(single, 1);
  EXPECT_EQ(rows("--stage-meshes 2x1,2x1").size(), 1u);
  EXPECT_THAT(Error(search + "--unequal-stages --schedule interleaved"),
              HasSubstr("wanted one such as 1f1b among them"));
  EXPECT_THAT(Error(search + "--unequal-stages --layers-per-stage 2,2"), HasSubstr("wanted none"));
}

// Changes of such a plan that make none are left out of what might help.
TEST(Stages, WithRanksOfTheirOwnAreExplained) {
  const Finished finished = Execute(
      "simulate --model mlp:dim=64,layers=4 --batch-size 16 --cluster dgx-a100:1 "
      "--stage-meshes 2x1,1x1 --micro-batches 4 --explain");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("what helps most"));
}

// What each process of a trace is called, and the ranks of the groups that it exchanges with.
struct TracedProcess {
  std::string name;
  std::map<std::string, std::set<std::string>> groups;  // by collective
};

std::map<int, TracedProcess> ProcessesOf(const std::string& trace) {
  std::map<int, TracedProcess> processes;
  const nlohmann::json parsed = nlohmann::json::parse(trace);
  for (const nlohmann::json& event : parsed["traceEvents"]) {
    TracedProcess& process = processes[event.value("pid", -1)];
    const nlohmann::json args = event.value("args", nlohmann::json::object());
    if (event["name"] == "process_name") process.name = args["name"];
    if (!args.contains("Process Group Ranks")) continue;
    process.groups[args["Collective name"]].insert(args["Process Group Ranks"]);
  }
  return processes;
}

// Traces and JSON are those of any other plan: replicas of the first stage are beside each other,
// shards of the second are.
TEST(Stages, WithRanksOfTheirOwnAreTracedLikeOthers) {
  const Finished finished = Execute(
      "simulate --model gpt:layers=2,hidden=64,heads=4,seq=16,vocab=128 --batch-size 24 "
      "--cluster uniform:4@1Gbps --stage-meshes 2x1,1x2 --micro-batches 6 --trace unequal.json "
      "--json unequal_report.json --report unequal.html --timeline");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("slowest path"));
  const std::map<int, TracedProcess> processes = ProcessesOf(Contents("unequal.json"));
  const std::vector<std::string> names = {
      "rank 0 · dp0 hp0 pp0 · device0", "rank 1 · dp1 hp0 pp0 · device1",
      "rank 2 · dp0 hp0 pp1 · device2", "rank 3 · dp0 hp1 pp1 · device3", "network"};
  using Groups = std::map<std::string, std::set<std::string>>;
  const Groups replicas = {{"allreduce", {"[0, 1]"}}}, shards = {{"_allgather_base", {"[2, 3]"}}};
  const std::vector<Groups> groups = {replicas, replicas, shards, shards, {}};
  ASSERT_EQ(processes.size(), names.size());
  for (const auto& [rank, process] : processes) {
    EXPECT_EQ(process.name, names.at(static_cast<size_t>(rank)));
    EXPECT_EQ(process.groups, groups.at(static_cast<size_t>(rank))) << rank;
  }
  const nlohmann::json report = nlohmann::json::parse(Contents("unequal_report.json"));
  EXPECT_EQ(report["devices"].size(), 4U);
  EXPECT_TRUE(absl::StrContains(Contents("unequal.html"), "on uniform:4@1Gbps</title>"));
}

// PipeDream's plan in its own schedule, and in one that drains.
TEST(Stages, ThatPipeDreamPlansNeverDrain) {
  const std::string model =
      "simulate --model gpt:layers=8,hidden=256,heads=4,seq=128,vocab=1024,tied_embeddings=0 "
      "--batch-size 128 --cluster uniform:8@40Gbps --micro-batches 16 --plan pipedream ";
  const double flushed = StepSeconds(model);
  const Finished finished = Execute(
      model +
      "--schedule pipedream --timeline --explain --trace rounds.json --json rounds_report.json");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("--schedule pipedream"));
  EXPECT_THAT(finished.out, testing::ContainsRegex("microbatches +in turn to [0-9 ]+ replicas"));
  EXPECT_THAT(finished.out, HasSubstr("updates late, by stage"));
  EXPECT_THAT(finished.out, HasSubstr("as simulated, in the steady state"));
  EXPECT_EQ(finished.out.find("in unit times"), std::string::npos);  // those of no replicas
  const nlohmann::json report = nlohmann::json::parse(Contents("rounds_report.json"));
  EXPECT_LT(report["step_time_s"].get<double>(), flushed);
  EXPECT_GE(report["weight_versions"].size(), 1U);
  EXPECT_FALSE(ProcessesOf(Contents("rounds.json")).empty());
}

TEST(Stages, ThatNeverDrainSayWhatIsWanted) {
  const std::string model =
      "simulate --model mlp:layers=4,dim=256 --batch-size 64 --micro-batches 4 --cluster "
      "uniform:4@1Gbps ";
  const std::vector<std::pair<std::string, std::string>> errors = {
      {"--stage-meshes 2x1,1x1 --shares round-robin --schedule ampnet",
       "--schedule ampnet for microbatches that are dealt to replicas; wanted pipedream"},
      {"--dp 2 --pp 2 --shares 3,1 --schedule pipedream",
       "--shares 3,1: with --schedule pipedream an update is one of a microbatch of each replica; "
       "wanted round-robin"},
      {"--dp 2 --pp 2 --shares speed --schedule pipedream", "wanted round-robin"},
      {"--dp 2 --pp 2 --shares round-robin --schedule pipedream --zero 1",
       "wanted a synchronous one, such as 1f1b"},
  };
  for (const auto& [flags, text] : errors) {
    const Finished finished = Execute(model + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    EXPECT_THAT(finished.err, HasSubstr(text)) << flags;
    EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << finished.err;
  }
}

// Searches have such plans, whatever runs them.
TEST(Stages, ThatNeverDrainAreSearched) {
  const std::string search =
      "grid_search --model mlp:layers=4,dim=256 --batch-size 64 --micro-batches 8,16 --cluster "
      "uniform:4@10Gbps --stage-meshes 2x1,1x1 --shares round-robin --schedule pipedream,1f1b ";
  const auto rows = [&](const std::string& flags) {
    const Finished finished = Execute(search + flags + " --csv rounds.csv");
    EXPECT_EQ(finished.code, 0) << finished.err;
    return Contents("rounds.csv");
  };
  const std::string one = rows("--threads 1");
  EXPECT_THAT(one, HasSubstr("pipedream"));
  EXPECT_EQ(rows("--threads 4"), one);
  EXPECT_EQ(rows("--threads 2 --no-skip"), one);
}

// Long before there are orders for them.
TEST(Stages, MoreThanThereAreOpsAreRefused) {
  for (const char* chunks : {"1000", "1000000", "1000000000", "9223372036854775807"}) {
    EXPECT_THAT(Error(absl::StrCat(kGpt, "--schedule interleaved --chunks ", chunks)),
                testing::ContainsRegex("do not cut into|at most 1048576 stages"));
  }
}

// Sums of four replicas' gradients take longer than what they compute, and are beside it: prices
// add them up, so all cuts are played.
TEST(Stages, OfReplicasInTurnAreCutWhereItIsFastest) {
  const std::string command =
      "simulate --model mlp:layers=5,dim=1024 --batch-size 14 --schedule pipedream --shares "
      "round-robin --stage-meshes 4x1,1x1 --micro-batches 7 --cluster "
      "nodes:6x2@300GB/s,nic=100Gbps,device=a100-80gb ";
  const double open = JsonOf(command)["step_time_s"];
  for (const char* layers : {"1,4", "2,3", "3,2", "4,1"}) {
    const double given =
        JsonOf(absl::StrCat(command, "--layers-per-stage ", layers))["step_time_s"];
    EXPECT_LE(open, given) << layers;
  }
}

// The last stage updates its copy when the first has sent its part of the gradient, and nobody
// waits for it: a step takes what it takes with embeddings of their own.
TEST(Stages, WithATiedEmbeddingAreAsynchronous) {
  for (const char* flags : {"pipedream --pp 4", "pipedream-2bw --pp 4", "ampnet --pp 4",
                            "pipedream --pp 4 --dp 2 --hp 2", "pipedream --stage-meshes 4x1,1x4"}) {
    std::vector<double> seconds;
    for (const char* tied : {"0", "1"}) {
      const nlohmann::json report = JsonOf(absl::StrCat(
          "simulate --model gpt:layers=8,hidden=512,heads=8,seq=256,vocab=8192,tied_embeddings=",
          tied, " --batch-size 64 --cluster dgx-a100:2 --micro-batches 8 --schedule ", flags));
      seconds.push_back(report.value("step_time_s", 0.0));
    }
    EXPECT_LT(seconds[1], 1.02 * seconds[0]) << flags;
    EXPECT_GT(seconds[1], seconds[0]) << flags;
  }
}

}  // namespace
}  // namespace stages_test_cc
}  // namespace orrery::cli
