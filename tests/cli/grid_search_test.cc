#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/run.h"

namespace orrery::cli {
namespace grid_search_test_cc {
namespace {

const std::string kGrid =
    "grid_search --model mlp:layers=4,dim=64 --batch-size 16 --cluster uniform:4@200Gbps --zero 0 ";

// Columns of further axes come last.
constexpr char kHeader[] =
    "model,world_size,batch_size,dp,hp,pp,num_microbatches,chunks,schedule,recompute,zero,"
    "step_time_s,throughput_samples_per_s,tokens_per_s,mfu,communication_overhead,"
    "exposed_communication_s,bubble_fraction,peak_memory_bytes,fits,reason,cp,ep,slices,"
    "schedule_file,zero_group,prefetch,offload,offload_prefetch,sharding,sequence_parallel,"
    "context_attention,shard,stages_by,split_at,layers_per_stage,order,blocking,bucket_size,"
    "algorithm,dtype";

// What stands behind cp and ep, of the default.
const std::string kBehind =
    ",equal,,0,1,none,1,auto,auto,auto,,cost,,,\"hp,dp,pp\",0,25MiB,auto,model";

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(GridSearch, WritesOneRowACandidate) {
  Clear();
  const Finished finished = Execute(kGrid + "--micro-batches 1,3 --csv grid.csv --json grid.json");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");  // progress is for terminals
  const std::vector<std::string> lines = Lines(Contents("grid.csv"));
  EXPECT_THAT(lines[0], testing::StartsWith(kHeader));
  ASSERT_EQ(lines.size(), 1u + 6 * 2);  // dp hp pp multiply to 4 in 6 ways
  EXPECT_THAT(lines[1], testing::StartsWith("\"mlp:layers=4,dim=64\",4,16,1,1,4,1,1,1f1b,none,0,"));
  EXPECT_THAT(lines[2],
              testing::HasSubstr("1f1b,none,0,,,,,,,,,false,divisibility: a batch of 16 does not "
                                 "divide into 3 microbatches,1,1" +
                                 kBehind));
  const auto rows = nlohmann::ordered_json::parse(Contents("grid.json"));
  ASSERT_EQ(rows.size(), 12u);
  std::string keys;
  for (const auto& [key, value] : rows[0].items()) keys += (keys.empty() ? "" : ",") + key;
  EXPECT_THAT(keys, testing::StartsWith(kHeader));
  EXPECT_TRUE(rows[1]["step_time_s"].is_null());
}

TEST(GridSearch, VariesFurtherAxes) {
  Clear();
  const Finished finished =
      Execute(kGrid + "--cp 2 --ep 1,2 --dp 1 --hp 1 --pp 1 --micro-batches 1 --csv g.csv");
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::vector<std::string> lines = Lines(Contents("g.csv"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1], testing::HasSubstr(",2,1" + kBehind));
  EXPECT_THAT(lines[2], testing::HasSubstr(",2,2" + kBehind));
  EXPECT_THAT(finished.out, testing::HasSubstr("  cp 2  ep 2\n"));
}

// Each type has a training step of its own: figures are those of simulate with that type.
TEST(GridSearch, VariesTheDType) {
  Clear();
  const std::string model = "--model mlp:layers=4,dim=64 --batch-size 16 --cluster dgx-h100:1 ";
  const std::string plan = "--dp 2 --hp 2 --pp 2 --micro-batches 2 ";
  const Finished grid =
      Execute("grid_search " + model + plan + "--dtype fp32,bf16,fp8-mixed --json grid.json");
  ASSERT_EQ(grid.code, 0) << grid.err;
  const auto rows = nlohmann::json::parse(Contents("grid.json"));
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) {
    const std::string dtype = row["dtype"].get<std::string>();
    ASSERT_EQ(
        Execute(absl::StrCat("simulate ", model, plan, "--json one.json --dtype ", dtype)).code, 0);
    const auto one = nlohmann::json::parse(Contents("one.json"));
    for (const char* key : {"step_time_s", "mfu", "tokens_per_s", "peak_memory_bytes"}) {
      EXPECT_EQ(row[key], one[key]) << dtype << " " << key;
    }
  }
  EXPECT_LT(rows[1]["peak_memory_bytes"], rows[0]["peak_memory_bytes"]);
  EXPECT_NE(rows[2]["mfu"], rows[1]["mfu"]);
  EXPECT_THAT(grid.out, testing::ContainsRegex("\nbest: --dp 2 .* --dtype "));
}

// What would fit is asked of the step that came closest, not of the first.
TEST(GridSearch, SaysWhatWouldFitOfTheClosestDType) {
  const Finished finished =
      Execute(kGrid + "--micro-batches 1 --memory-limit 50KiB --dtype fp32,bf16");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.out, testing::ContainsRegex("\nclosest: --dp .* --dtype bf16\n"));
}

// One candidate of which a pin cannot be kept is one that is infeasible.
TEST(GridSearch, PinsMakeCandidatesInfeasible) {
  const Finished finished = Execute(kGrid + "--micro-batches 1 --shard 'w0=hp@0'");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, testing::HasSubstr("candidates are infeasible"));
}

// Without --zero, the stages that people train with; without --recompute, what fits where nothing
// does without.
TEST(GridSearch, ChoosesWhatSavesMemory) {
  const std::string grid =
      "grid_search --model gpt:layers=4,hidden=64,heads=4,seq=64,vocab=512 --batch-size 16 "
      "--cluster uniform:4@200Gbps --hp 1 --micro-batches 4 --schedule 1f1b ";
  const Finished open = Execute(grid + "--memory-limit 3MB --csv open.csv");
  ASSERT_EQ(open.code, 0) << open.err;
  std::map<std::string, int> rows;  // by stage of ZeRO and policy
  for (const std::string& line : Lines(Contents("open.csv"))) {
    const std::vector<std::string> cells =
        absl::StrSplit(line.substr(line.rfind('"', 60) + 1), ',');
    if (cells.size() > 10) ++rows[absl::StrCat(cells[9], " ", cells[10])];
  }
  EXPECT_EQ(rows["none 0"], 3);  // dp 1, 2 and 4, pp the rest
  EXPECT_EQ(rows["none 1"], 2);
  EXPECT_EQ(rows["none 3"], 1);
  EXPECT_GT(rows["full 0"], 0);
  const Finished given =
      Execute(grid + "--dp 2,4 --pp 1 --memory-limit 3MB --zero 0 --recompute none --csv g.csv");
  EXPECT_EQ(Lines(Contents("g.csv")).size(), 3u);
}

TEST(GridSearch, CountsWhatIsInfeasible) {
  const Finished finished = Execute(kGrid + "--micro-batches 1,3");
  EXPECT_THAT(finished.out, testing::HasSubstr("12 candidates, 6 feasible"));
  EXPECT_THAT(
      finished.out,
      testing::HasSubstr("6 of 12 candidates are infeasible:\n     6  divisibility, for example "));
  EXPECT_THAT(finished.out, testing::HasSubstr("\nbest: --dp "));
}

TEST(GridSearch, EndsWithOneWhenNothingIsFeasible) {
  const Finished finished = Execute(kGrid + "--micro-batches 3");
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.err, "grid_search: no candidate is feasible\n");
  EXPECT_THAT(finished.out, testing::HasSubstr("6 of 6 candidates are infeasible"));
}

TEST(GridSearch, SaysWhatWouldFitWhereNothingDoes) {
  const Finished finished = Execute(kGrid + "--micro-batches 1 --memory-limit 50KiB");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.out, testing::ContainsRegex("\nclosest: --dp .*\nneeds .* too much: "));
}

TEST(GridSearch, WritesTheSameBytesOnAnyNumberOfThreads) {
  Clear();
  std::vector<Finished> finished;
  for (const absl::string_view threads : {"1", "2", "7"}) {
    finished.push_back(Execute(absl::StrCat(kGrid, "--schedule gpipe,1f1b,pipedream --threads ",
                                            threads, " --csv ", threads, ".csv --json ", threads,
                                            ".json --trace ", threads, ".trace.json")));
    ASSERT_EQ(finished.back().code, 0) << finished.back().err;
    EXPECT_EQ(finished.back().out, finished.front().out);
    for (const absl::string_view end : {".csv", ".json", ".trace.json"}) {
      EXPECT_EQ(Contents(absl::StrCat(threads, end)), Contents(absl::StrCat("1", end)))
          << threads << end;
    }
  }
}

// The line that it calls best is one that simulate takes, and takes as long.
TEST(GridSearch, ItsBestIsWhatSimulateSays) {
  Clear();
  const Finished grid = Execute(kGrid + "--csv grid.csv");
  const size_t best = grid.out.find("best: ");
  ASSERT_NE(best, std::string::npos);
  const std::string flags = grid.out.substr(best + 6, grid.out.find('\n', best) - best - 6);
  ASSERT_EQ(Execute("simulate --model mlp:layers=4,dim=64 --batch-size 16 --cluster "
                    "uniform:4@200Gbps --json best.json " +
                    flags)
                .code,
            0);
  double fastest = 1e30;
  for (const std::string& line : Lines(Contents("grid.csv"))) {
    // The name of the model has a comma, so that step_time_s stands one further on.
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    const bool has_time = !line.starts_with(kHeader) && !cells[12].empty();
    if (has_time) fastest = std::min(fastest, std::stod(cells[12]));
  }
  EXPECT_EQ(nlohmann::json::parse(Contents("best.json"))["step_time_s"].get<double>(), fastest);
}

// Also where a list means nothing beside the plan that is best.
TEST(GridSearch, ItsBestIsWhatSimulateTakes) {
  const std::string model = "--model gpt:layers=2,hidden=32,heads=4,seq=16,vocab=64 ";
  for (const std::string& setting : CasesToWalk<std::string>(
           {"--sequence-parallel", "--zero 0,3 --zero-group 2",
            "--slices balanced --schedule gpipe,terapipe", "--cp 1,2 --context-attention ring,auto",
            "--sharding auto,megatron --shard .=hp@whole",
            "--preset distir --sharding auto,megatron --sequence-parallel"})) {
    const std::string rest = model + "--batch-size 8 --cluster dgx-a100:1 ";
    const bool distir = setting.starts_with("--preset");
    const Finished grid =
        Execute(absl::StrCat("grid_search ", rest, "--micro-batches 1,2 ", setting));
    ASSERT_EQ(grid.code, 0) << setting << grid.err;
    const size_t best = grid.out.find("best: ");
    ASSERT_NE(best, std::string::npos);
    const std::string flags = grid.out.substr(best + 6, grid.out.find('\n', best) - best - 6);
    const Finished one =
        Execute(absl::StrCat("simulate ", rest, distir ? "--preset distir " : "", flags));
    EXPECT_EQ(one.code, 0) << flags << "\n" << one.err;
  }
}

TEST(GridSearch, PrintsAsManyAsAskedFor) {
  const auto rows = [](const std::string& flags) {
    int count = 0;
    for (const std::string& line : Lines(Execute(kGrid + flags).out)) {
      count += line.find("  1f1b ") != std::string::npos;
    }
    return count;
  };
  EXPECT_EQ(rows("--micro-batches 1 --top 2"), 2);
  EXPECT_EQ(rows("--micro-batches 1 --top 0"), 0);
  EXPECT_EQ(rows("--micro-batches 1"), 6);
}

TEST(GridSearch, ShowsProgressWhenAsked) {
  const Finished finished = Execute(kGrid + "--micro-batches 1 --progress");
  EXPECT_THAT(finished.err, testing::HasSubstr("6/6 candidates (100%), "));
  EXPECT_THAT(finished.err, testing::EndsWith("\n"));
}

// DistIR's grid of 52, as a user of the notebook runs it.
TEST(GridSearch, PlaysTheNotebook) {
  const Finished finished = Execute(
      "grid_search --preset distir --model mlp:layers=64,dim=8192 --batch-size 8192 --cluster "
      "uniform:16@200Gbps");
  EXPECT_THAT(finished.out, testing::HasSubstr("52 candidates, 52 feasible"));
  EXPECT_THAT(
      finished.out,
      testing::HasSubstr("best: --dp 4 --hp 4 --pp 1 --micro-batches 1 --schedule distir\n"));
}

}  // namespace
}  // namespace grid_search_test_cc
}  // namespace orrery::cli
