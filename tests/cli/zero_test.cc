#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// --zero, --zero-group and --prefetch.

namespace orrery::cli {
namespace zero_test_cc {
namespace {

using nlohmann::json;

const std::string kMlp =
    "--model mlp:layers=8,dim=512 --dtype bf16 --batch-size 64 --cluster dgx-h100:1 "
    "--micro-batches 1 ";

json Report(const std::string& flags) { return JsonOf(absl::StrCat("simulate ", kMlp, flags)); }

// 8 weights of 512 x 512: 4 MiB of parameters, 24 MiB of state.
TEST(Zero, ReportsWhatARankKeeps) {
  constexpr int64_t kWeights = int64_t{8} * 512 * 512;
  const auto memory = [](const std::string& flags, const char* kind) {
    return Report(flags)["devices"][0]["memory"][kind].get<int64_t>();
  };
  for (const int64_t stage : {0, 1, 2, 3}) {
    const std::string flags = absl::StrCat("--dp 8 --zero ", stage);
    EXPECT_EQ(memory(flags, "parameters"), 2 * kWeights / (stage >= 3 ? 8 : 1));
    EXPECT_EQ(memory(flags, "optimizer"), 12 * kWeights / (stage >= 1 ? 8 : 1));
    EXPECT_EQ(Report(flags)["bytes_reduced"], (stage == 3 ? 3 : 2) * kWeights);
  }
  EXPECT_EQ(memory("--dp 8 --zero 3 --zero-group 2", "optimizer"), 6 * kWeights);
  EXPECT_EQ(memory("--dp 1 --zero 3", "optimizer"), 12 * kWeights);
  EXPECT_GT(memory("--dp 8 --zero 3 --prefetch 3", "buffers"),
            memory("--dp 8 --zero 3 --prefetch 0", "buffers"));
}

TEST(Zero, IsPartOfTheCandidate) {
  const Finished finished = Execute("simulate " + kMlp + "--dp 8 --zero 3");
  EXPECT_THAT(finished.out, testing::HasSubstr("--dp 8 --hp 1 --pp 1 --micro-batches 1 --schedule "
                                               "1f1b --zero 3 --dtype bf16\n"));
  EXPECT_THAT(finished.out, testing::HasSubstr("all-gather dp"));
}

TEST(Zero, IsAColumnOfASearch) {
  Clear();
  const Finished finished =
      Execute("grid_search " + kMlp + "--dp 1,8 --hp 1 --pp 1 --zero 0,2,3 --csv g.csv");
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::vector<std::string> lines = absl::StrSplit(Contents("g.csv"), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[1], testing::HasSubstr(",1,1,1,1,1,1f1b,none,0,"));
  EXPECT_THAT(lines[2], testing::HasSubstr(",8,1,1,1,1,1f1b,none,0,"));
  EXPECT_THAT(lines[3], testing::HasSubstr(",8,1,1,1,1,1f1b,none,2,"));
  EXPECT_THAT(lines[4], testing::HasSubstr(",8,1,1,1,1,1f1b,none,3,"));
  EXPECT_THAT(finished.out, testing::HasSubstr("  zero 3\n"));
}

// A model that fits on a device only in parts is found to.
TEST(Zero, MakesLargeModelsFit) {
  const std::string search =
      "grid_search --model llama3-8b --dtype bf16 --batch-size 8 --cluster dgx-h100:1 --dp 8 --hp "
      "1 "
      "--pp 1 --micro-batches 1 ";
  EXPECT_EQ(Execute(search).code, 1);
  const Finished finished = Execute(search + "--zero 0,1,2,3");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, testing::HasSubstr("best: --dp 8 --hp 1 --pp 1 --micro-batches 1 "
                                               "--schedule 1f1b --zero 3 --dtype bf16\n"));
}

struct Wrong {
  std::string flags, err;
};

TEST(Zero, SaysWhatIsWrong) {
  for (const Wrong& wrong : std::vector<Wrong>{
           {"simulate --zero 4", "simulate: --zero '4': wanted a stage from 0 to 3"},
           {"simulate --zero -1", "simulate: --zero '-1': wanted a stage from 0 to 3"},
           {"simulate --zero-group 2",
            "simulate: --zero-group 2: wanted ZeRO's stage 1, 2 or 3 beside it"},
           {"simulate --zero 1 --prefetch -1",
            "simulate: --prefetch '-1': wanted a number of at least 0"},
           {"simulate --dp 6 --batch-size 60 --zero 1 --zero-group 4",
            "simulate: infeasible (divisibility): dp=6 does not divide into groups of 4 ranks that "
            "share parameters"},
           {"simulate --dp 2 --pp 2 --schedule pipedream --zero 1",
            "simulate: infeasible (unsupported): ZeRO's stage 1 with a schedule that keeps several "
            "versions of the weights; wanted a synchronous one, such as 1f1b"},
           {"grid_search --zero 0,,1",
            "grid_search: --zero '0,,1': wanted stages from 0 to 3, each once, as in 0,1,3"},
           {"grid_search --zero 1,1",
            "grid_search: --zero '1,1': wanted stages from 0 to 3, each once, as in 0,1,3"},
           {"grid_search --zero 0,x,1", "grid_search: --zero 'x': wanted a stage from 0 to 3"},
           {"grid_search --zero 1,4", "grid_search: --zero '4': wanted a stage from 0 to 3"}}) {
    const size_t space = wrong.flags.find(' ');
    const std::string batch =
        wrong.flags.find("--batch-size") == std::string::npos ? " --batch-size 64" : "";
    const Finished finished = Execute(wrong.flags.substr(0, space) +
                                      " --model mlp:layers=8,dim=512 --cluster dgx-h100:1" + batch +
                                      wrong.flags.substr(space));
    EXPECT_EQ(finished.code, 1) << wrong.flags;
    EXPECT_EQ(finished.err, wrong.err + "\n");
  }
}

}  // namespace
}  // namespace zero_test_cc
}  // namespace orrery::cli
