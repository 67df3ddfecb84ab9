#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// Why a step takes as long as it does, as the programs tell it.

namespace orrery::cli {
namespace explain_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kModel =
    "--model mlp:layers=4,dim=64 --batch-size 48 --cluster uniform:8@200Gbps ";

// A search of a moment.
const std::string kFew = "--pp 1 --micro-batches 1 --zero 0,1 ";

TEST(Explain, NamesWhatHelpsMost) {
  Clear();
  const Finished step =
      Execute("simulate " + kModel + "--dp 2 --hp 2 --pp 2 --micro-batches 4 --explain");
  EXPECT_EQ(step.code, 0) << step.err;
  for (const char* text : {"where the time goes ", "critical path ", "alone would take ",
                           "single changes of the plan", "busiest links, by level:"}) {
    EXPECT_THAT(step.out, HasSubstr(text));
  }
}

// A flag that one program has and another has not is where the other says it is.
TEST(Explain, FlagsAreWhereOthersSayTheyAre) {
  for (const char* flag : {"diff", "emit", "fits-on", "goal", "gpus", "price", "samples", "space",
                           "tokens", "top", "explain", "timeline"}) {
    const bool of_search =
        Execute(absl::StrCat("grid_search --", flag)).err.find("has it") == std::string::npos;
    const std::string home = of_search ? "grid_search" : "simulate";
    const std::string other = of_search ? "simulate" : "grid_search";
    EXPECT_THAT(Execute(home + " --help").out, HasSubstr(absl::StrCat("--", flag, " ")));
    EXPECT_THAT(Execute(absl::StrCat(other, " --", flag)).err, HasSubstr(home + " has it"));
  }
}

TEST(Explain, SaysWhereAnAxisSplitsNothing) {
  const std::string step =
      "simulate --model gpt:layers=2,hidden=64,heads=2,seq=16 --batch-size 8 "
      "--cluster dgx-h100:1 ";
  EXPECT_THAT(Execute(step + "--hp 5").out, HasSubstr("nothing: all 5 ranks do the same\n"));
  EXPECT_THAT(Execute(step + "--hp 2").out, Not(HasSubstr("nothing: all")));
  EXPECT_THAT(Execute(step).out, HasSubstr("  software                 none: "));
  EXPECT_THAT(Execute(step + "--stack nemo").out, HasSubstr("  software                 nemo\n"));
  EXPECT_THAT(Execute(step + "--cost-model roofline").out, Not(HasSubstr("  software ")));
}

// What it promises is what one gets.
TEST(Explain, ChangesTakeAsLongAsTold) {
  Clear();
  const std::string step = "simulate " + kModel;
  const Finished explained = Execute(step + "--dp 2 --hp 2 --pp 2 --micro-batches 4 --explain");
  const size_t line = explained.out.find("\n  --", explained.out.find("what helps most"));
  ASSERT_NE(line, std::string::npos) << explained.out;
  const std::string row = explained.out.substr(line + 3, explained.out.find('\n', line + 1) - line);
  const std::string change = row.substr(0, row.find("  "));
  const std::string time = row.substr(row.find_first_not_of(' ', change.size()));
  // Flags that are given twice are an error, so those of the plan that change are left out.
  std::string flags;
  for (const std::string flag : {"--dp 2 ", "--hp 2 ", "--pp 2 ", "--micro-batches 4 "}) {
    if (change.find(flag.substr(0, flag.find(' ') + 1)) == std::string::npos) flags += flag;
  }
  const Finished played = Execute(step + flags + change);
  EXPECT_EQ(played.code, 0) << played.err;
  EXPECT_THAT(played.out, HasSubstr(time.substr(0, time.find(' ', time.find(' ') + 1)))) << row;
}

TEST(Diff, TellsWhyOneIsFaster) {
  Clear();
  const Finished search = Execute("grid_search " + kModel + kFew + "--no-prune --diff 1 2");
  EXPECT_EQ(search.code, 0) << search.err;
  EXPECT_THAT(search.out, HasSubstr("why 1 is "));
  EXPECT_THAT(search.out, HasSubstr("step of 2 "));
  EXPECT_THAT(search.out, HasSubstr("memory of 1 "));
  const Finished named =
      Execute("grid_search " + kModel + kFew + "--no-prune --diff 'dp=8' 'tp=8 pp=1'");
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_THAT(named.out, HasSubstr("A has --dp 8 --hp 1"));
}

TEST(Diff, SaysWhatItWants) {
  Clear();
  for (const auto& [flags, error] :
       {std::pair{"--diff 1", "wanted two candidates"},
        {"--diff 1 2 3", "wanted two candidates"},
        {"--diff 1 9999", "got place 9999; wanted 1 to"},
        {"--diff 1 best", "'best': wanted a place, as in 1, or values of axes"},
        {"--diff 1 ' '", "wanted a place, as in 1, or values of axes"},
        {"--diff 1 dp=3", "none that was played and fits"}}) {
    const Finished search = Execute("grid_search " + kModel + kFew + flags);
    EXPECT_EQ(search.code, 1) << flags;
    EXPECT_THAT(search.err, HasSubstr(error)) << flags;
  }
}

}  // namespace
}  // namespace explain_test_cc
}  // namespace orrery::cli
