#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/cli/run.h"

// Questions of a plan: what is wanted, how long a run takes, what more devices buy, what holds it,
// and how to go on from there.

namespace orrery::cli {
namespace planning_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kModel =
    "--model gpt:layers=4,hidden=64,heads=4,seq=64,vocab=512 --batch-size 16 --dtype bf16 ";
const std::string kGrid = absl::StrCat("grid_search ", kModel, "--cluster uniform:4@200Gbps ");

// What stands behind the label, without the folder of the program.
std::string Behind(const std::string& out, const std::string& label) {
  const size_t at = out.find("\n" + label);
  if (at == std::string::npos) return "";
  const size_t begin = at + 1 + label.size();
  std::string command = out.substr(begin, out.find('\n', begin) - begin);
  command.erase(0, command.find_first_not_of(' '));
  const size_t program = command.substr(0, command.find(' ')).rfind('/');
  return program == std::string::npos ? command : command.substr(program + 1);
}

std::vector<nlohmann::json> Rows(const std::string& file) {
  return nlohmann::json::parse(Contents(file)).get<std::vector<nlohmann::json>>();
}

// The commands it ends with play the winner and the second, to the picosecond.
TEST(Planning, EndsWithCommandsThatSayTheSame) {
  Clear();
  const Finished grid =
      Execute(kGrid + "--stack nemo --memory-limit '2 GB' --micro-batches 2,4 --json grid.json");
  ASSERT_EQ(grid.code, 0) << grid.err;
  std::vector<double> times;
  for (const auto& row : Rows("grid.json")) {
    if (row["fits"] == true) times.push_back(row["step_time_s"]);
  }
  std::ranges::sort(times);
  ASSERT_GE(times.size(), 2u);
  const std::string play = Behind(grid.out, "play it:");
  EXPECT_THAT(play, HasSubstr("--memory-limit '2 GB'"));
  ASSERT_EQ(Execute(play + " --json one.json").code, 0) << play;
  EXPECT_EQ(nlohmann::json::parse(Contents("one.json"))["step_time_s"], times[0]);
  const std::string compare = Behind(grid.out, "compare:");
  ASSERT_EQ(Execute(compare + " --json two.json").code, 0) << compare;
  std::vector<double> compared;
  for (const auto& row : Rows("two.json")) compared.push_back(row["step_time_s"]);
  EXPECT_THAT(compared, testing::Contains(times[0]));
  EXPECT_THAT(compared, testing::Contains(times[1]));
  EXPECT_THAT(grid.out, HasSubstr("\ntrain so:  --emit megatron, torchtitan or deepspeed"));
}

// By each goal the same plan wins whether some are pruned or all are played.
TEST(Planning, PrunesNoWinner) {
  for (const std::string goal : {"memory", "price"}) {
    const std::string grid =
        absl::StrCat(kGrid, "--price 2 --dp 1,2 --hp 1 --pp 1,2 --schedule 1f1b --micro-batches ",
                     "2,4,8 --zero 0 --recompute none,full --top 1 --goal ", goal);
    const Finished some = Execute(grid), all = Execute(grid + " --no-prune");
    ASSERT_EQ(some.code, 0) << some.err;
    EXPECT_EQ(Behind(some.out, "best: "), Behind(all.out, "best: ")) << goal;
    EXPECT_NE(Behind(some.out, "best: "), "") << goal;
  }
}

// The least memory of what fits; recomputation is among what is tried.
TEST(Planning, FindsTheLeastMemory) {
  Clear();
  const Finished grid =
      Execute(kGrid + "--goal memory --hp 1 --micro-batches 4 --no-prune --json all.json");
  ASSERT_EQ(grid.code, 0) << grid.err;
  int64_t least = int64_t{1} << 60;
  for (const auto& row : Rows("all.json")) {
    if (row["fits"] == true) least = std::min(least, row["peak_memory_bytes"].get<int64_t>());
  }
  ASSERT_EQ(Execute(Behind(grid.out, "play it:") + " --json one.json").code, 0);
  EXPECT_EQ(nlohmann::json::parse(Contents("one.json"))["peak_memory_bytes"], least);
  EXPECT_THAT(Contents("all.json"), HasSubstr("\"recompute\": \"full\""));
}

TEST(Planning, TellsDaysAndPriceOfTheRun) {
  const Finished grid =
      Execute(kGrid + "--dp 4 --hp 1 --pp 1 --micro-batches 1 --zero 0 --tokens 1B --price 2");
  ASSERT_EQ(grid.code, 0) << grid.err;
  // 976,562.5 steps of 16 samples of 64 tokens.
  EXPECT_THAT(grid.out, HasSubstr("\nthe whole run: 976563 steps of 1024 tokens\n"));
  EXPECT_THAT(grid.out, HasSubstr(" days  device-hours         price\n"));
  EXPECT_THAT(grid.out, HasSubstr("\nas --stack ideal predicts the step, whose software adds "));
  ASSERT_EQ(Execute(kGrid + "--dp 4 --hp 1 --pp 1 --micro-batches 1 --zero 0 --tokens 1B --price 2 "
                            "--json days.json --csv days.csv")
                .code,
            0);
  const auto row = nlohmann::json::parse(Contents("days.json"))[0];
  const double days = 976563 * row["step_time_s"].get<double>() / 86400;
  EXPECT_NEAR(row["run_days"].get<double>(), days, 1e-9 * days);
  EXPECT_NEAR(row["run_price"].get<double>(), days * 24 * 4 * 2, 1e-8 * days);
  EXPECT_THAT(Contents("days.csv"), HasSubstr(",price_per_sample,run_days,run_price,"));
  const Finished none = Execute(
      "grid_search --model mlp:layers=4,dim=64 --batch-size 16 --cluster uniform:2@200Gbps "
      "--tokens "
      "1B");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("are no sequences of tokens; wanted --samples"));
}

TEST(Planning, TellsWhatMoreDevicesBuy) {
  const Finished grid =
      Execute(kGrid + "--gpus 1..4 --hp 1 --micro-batches 4 --schedule 1f1b --zero 0 --samples 1M");
  ASSERT_EQ(grid.code, 0) << grid.err;
  const size_t table = grid.out.find("\nwhat more devices buy, gpt:");
  ASSERT_NE(table, std::string::npos);
  const std::vector<std::string> lines = absl::StrSplit(grid.out.substr(table + 1), '\n');
  ASSERT_GT(lines.size(), 4u);
  EXPECT_THAT(lines[2], testing::ContainsRegex("^ +1 .* 1\\.00x +100\\.0% "));
  EXPECT_THAT(lines[3], testing::StartsWith("       2 "));
  EXPECT_THAT(lines[4], testing::StartsWith("       4 "));
  const Finished twelve =
      Execute(absl::StrCat("grid_search ", kModel, "--cluster dgx-h100:2 --gpus 12"));
  EXPECT_EQ(twelve.code, 1);
  EXPECT_EQ(twelve.err,
            "grid_search: --gpus: --cluster 'dgx-h100:2' with 12 devices: 12 devices are no whole "
            "number of nodes; wanted a multiple of 8\n");
}

// Devices of which one is too small: the fewest that hold it, and by how much others do not.
TEST(Planning, FindsTheFewestDevicesThatHoldIt) {
  const std::string grid = kGrid + "--fits-on --micro-batches 4 --memory-limit ";
  const Finished two = Execute(grid + "2500KiB");
  ASSERT_EQ(two.code, 0) << two.err << two.out;
  EXPECT_THAT(two.out, testing::StartsWith("uniform:1@200Gbps: needs "));
  EXPECT_THAT(two.out, testing::ContainsRegex("uniform:1@200Gbps: needs .* too much: --dp 1 "));
  EXPECT_THAT(two.out, HasSubstr("\nuniform:2@200Gbps: fits\n"));
  EXPECT_THAT(two.out, Not(HasSubstr("uniform:4@200Gbps")));
  const Finished none = Execute(grid + "100KiB");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.out, HasSubstr("\nuniform:4@200Gbps: needs "));
  EXPECT_EQ(none.err, "grid_search: no candidate is feasible\n");
}

TEST(Planning, WritesThePlanForOtherSystems) {
  Clear();
  const Finished grid =
      Execute(kGrid +
              "--dp 2 --hp 2 --pp 1 --micro-batches 4 --zero 1 --sharding megatron --emit megatron "
              "--emit torchtitan=plan.toml --emit deepspeed=plan.json");
  ASSERT_EQ(grid.code, 0) << grid.err;
  EXPECT_THAT(grid.out, HasSubstr("\n  --tensor-model-parallel-size 2\n"));
  EXPECT_THAT(grid.out, HasSubstr("\n  --micro-batch-size 2\n  --global-batch-size 16\n"));
  EXPECT_THAT(Contents("plan.toml"), HasSubstr("\ntensor_parallel_degree = 2\n"));
  EXPECT_THAT(Contents("plan.toml"), HasSubstr("# no counterpart: --zero 1: FSDP shards "));
  const auto json = nlohmann::json::parse(Contents("plan.json"));
  EXPECT_EQ(json["train_micro_batch_size_per_gpu"], 2);
  EXPECT_EQ(json["zero_optimization"]["stage"], 1);
  EXPECT_THAT(grid.out, HasSubstr("plan.json\n# tensor parallelism is column and row products"));
  const Finished unknown = Execute(kGrid + "--emit jax");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(unknown.err, "grid_search: --emit: 'jax': wanted megatron, torchtitan or deepspeed\n");
}

}  // namespace
}  // namespace planning_test_cc
}  // namespace orrery::cli
