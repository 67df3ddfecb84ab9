#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/cli/run.h"

// Devices of groups of ops, as users ask for them.

namespace orrery::cli {
namespace placement_test_cc {
namespace {

using ::testing::HasSubstr;

const std::string kTowers =
    "--model $MODELS/two_towers.orr --batch-size 4096 --cluster dgx-a100:1 ";

// What follows "in unit times:".
std::string UnitTimes(const std::string& flags) {
  const Finished finished = Execute("simulate " + flags + " --timeline");
  EXPECT_EQ(finished.code, 0) << finished.err;
  const std::vector<std::string> parts = absl::StrSplit(finished.out, "\nin unit times:\n");
  EXPECT_EQ(parts.size(), 2u) << finished.out;
  return parts.back();
}

// The picture is of the orders that were played: a set that has two stages runs both.
TEST(Placement, IsDrawnInUnitTimes) {
  EXPECT_EQ(UnitTimes(kTowers + "--micro-batches 2 --placement '^user=0;^item=1;*=0'"),
            "rank 0 | 0F0 2F0 2B0---- 0B0---- 0F1 2F1 2B1---- 0B1----\n"
            "rank 1 | 1F0 1F1 .   .   1B0---- .   .   .   .   1B1----\n");
  const std::string chain =
      "--model mlp:layers=4,dim=64 --batch-size 48 --cluster uniform:2@200Gbps --micro-batches 3 ";
  EXPECT_EQ(UnitTimes(chain + "--placement '^[ya][01]=0;*=1'"), UnitTimes(chain + "--pp 2"));
}

TEST(Placement, HasSizesOfStages) {
  const Finished finished = Execute(
      "simulate --model gpt:layers=2,hidden=64,heads=4,seq=16,vocab=128 --batch-size 8 "
      "--cluster uniform:2@200Gbps --placement 'mlp=1;*=0' --json placed.json");
  ASSERT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json stages = nlohmann::json::parse(Contents("placed.json"))["stages"];
  ASSERT_EQ(stages.size(), 5u);
  EXPECT_EQ(stages[0].dump(), R"({"layers":1,"parameters":26112,"pipeline_rank":1,"stage":0})");
}

// What is advised helps. Megatron's pattern, which has been tried by then, does not.
TEST(Placement, OfShardsThatDoNotMatchSaysWhatHelps) {
  for (const char* more : {"", " --sharding megatron"}) {
    EXPECT_EQ(Execute("simulate " + kTowers + "--placement '^user=1x2@0;*=2'" + more).err,
              "simulate: infeasible (unsupported): stages 0 and 2, with hp 2 and 1, are sharded so "
              "that the one sends 2 values and the other takes 1; try the same hp on both\n");
    EXPECT_EQ(Execute("simulate " + kTowers + "--placement '^user=1x2@0;*=1x2@2'" + more).code, 0);
  }
}

// A placement without groups is none that somebody wants.
TEST(Placement, WithoutGroupsIsAnError) {
  for (const char* program : {"simulate", "grid_search"}) {
    const Finished finished =
        Execute(std::string(program) +
                " --model mlp:layers=4,dim=64 --batch-size 16 --cluster uniform:2@200Gbps "
                "--placement ';'");
    EXPECT_EQ(finished.code, 1);
    EXPECT_THAT(finished.err,
                HasSubstr("--placement ';': wanted a pattern and its devices, as in text=0-3;"));
  }
}

}  // namespace
}  // namespace placement_test_cc
}  // namespace orrery::cli
