#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// `--stack` of simulate and grid_search, by name and from a file.

namespace orrery::cli {
namespace stack_test_cc {
namespace {

using testing::HasSubstr;

const std::string kModel =
    "--model gpt:layers=4,hidden=256,heads=4,seq=64,vocab=512 --batch-size 16 --dtype bf16 "
    "--cluster dgx-h100:1 --cost-model kernels ";
const std::string kPlan = "--dp 4 --hp 2 --pp 1 --micro-batches 2 --zero 1 --sharding megatron ";

double StepOf(const std::string& stack) {
  const Finished finished =
      Execute(absl::StrCat("simulate ", kModel, kPlan, "--stack ", stack, " --json step.json"));
  EXPECT_EQ(finished.code, 0) << finished.err;
  return nlohmann::json::parse(Contents("step.json"))["step_time_s"];
}

TEST(Stack, ComesFromAFile) {
  Clear();
  Write("same.json", R"({"like": "nemo"})");
  Write("slow.json", R"({"like": "nemo", "launch_us": 100})");
  const double nemo = StepOf("nemo");
  EXPECT_EQ(StepOf("same.json"), nemo);
  EXPECT_GT(StepOf("slow.json"), 2 * nemo);
}

// The flag, or a stack that says so: nothing is left of the launches of the host.
TEST(Stack, MayCaptureGraphs) {
  Clear();
  Write("graphs.json", R"({"like": "nemo", "launch_us": 100, "cuda_graphs": true})");
  Write("slow.json", R"({"like": "nemo", "launch_us": 100})");
  const double nemo = StepOf("nemo"), graphs = StepOf("nemo --cuda-graphs");
  EXPECT_LT(graphs, nemo);
  EXPECT_EQ(StepOf("graphs.json"), graphs);
  EXPECT_EQ(StepOf("slow.json --cuda-graphs"), graphs);
  const Finished search = Execute(
      absl::StrCat("grid_search ", kModel, kPlan, "--stack nemo --cuda-graphs --json grid.json"));
  EXPECT_EQ(search.code, 0) << search.err;
  EXPECT_EQ(nlohmann::json::parse(Contents("grid.json"))[0]["step_time_s"], graphs);
}

TEST(Stack, IsTheSameInASearch) {
  Clear();
  const double nemo = StepOf("nemo");
  for (const std::string stack : {"nemo", "ideal"}) {
    const Finished finished = Execute(
        absl::StrCat("grid_search ", kModel, kPlan, "--stack ", stack, " --json grid.json"));
    EXPECT_EQ(finished.code, 0) << finished.err;
    const auto grid = nlohmann::json::parse(Contents("grid.json"));
    EXPECT_EQ(grid[0]["step_time_s"].get<double>() == nemo, stack == "nemo");
  }
}

TEST(Stack, SaysWhatIsWrong) {
  Clear();
  Write("mine.json", R"({"like": "nemo", "lunch_us": 100})");
  for (const std::string program : {"simulate ", "grid_search "}) {
    const Finished unknown = Execute(absl::StrCat(program, kModel, kPlan, "--stack abacus"));
    EXPECT_EQ(unknown.code, 1);
    EXPECT_THAT(unknown.err, HasSubstr("--stack: there is no stack 'abacus'; wanted one of ideal"));
    const Finished key = Execute(absl::StrCat(program, kModel, kPlan, "--stack mine.json"));
    EXPECT_THAT(key.err, HasSubstr("--stack: mine.json: found 'lunch_us'; wanted one of like, "));
    const Finished none = Execute(absl::StrCat(program, kModel, kPlan, "--stack none.json"));
    EXPECT_EQ(none.code, 1);
    EXPECT_THAT(none.err, HasSubstr("none.json"));
  }
  // An output is no input.
  const Finished over =
      Execute(absl::StrCat("simulate ", kModel, kPlan, "--stack mine.json --json mine.json"));
  EXPECT_EQ(over.code, 1);
  EXPECT_EQ(Contents("mine.json"), R"({"like": "nemo", "lunch_us": 100})");
}

}  // namespace
}  // namespace stack_test_cc
}  // namespace orrery::cli
