#include "tools/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace orrery::tools {
namespace plan_file_test_cc {
namespace {

// "dp=3 zero=2": the flags of a file, or what is wrong with it.
std::string FlagsOf(const std::string& text) {
  const absl::StatusOr<std::vector<FlagText>> flags = ParsePlanFile(text);
  if (!flags.ok()) return std::string(flags.status().message());
  std::string line;
  for (const FlagText& flag : *flags) {
    absl::StrAppend(&line, line.empty() ? "" : " ", flag.flag, "=", flag.text);
  }
  return line;
}

TEST(PlanFile, HasAFlagALineBehindWhatItIsAbout) {
  EXPECT_EQ(PlanFileText({.dp = 2, .pp = 4, .zero = 1}, "what it is\nand was"),
            "# what it is\n# and was\n--dp 2\n--hp 1\n--pp 4\n--micro-batches 1\n--schedule 1f1b\n"
            "--zero 1\n");
}

// What it does not say is open, though a plan has some value of it.
TEST(PlanFile, SaysWhatStandsThere) {
  const transforms::ParallelPlan plan = {.dp = 3, .hp = 2, .microbatches = 5, .zero = 2};
  EXPECT_EQ(FlagsOf(PlanFileText(plan, "")), "dp=3 hp=2 pp=1 micro-batches=5 schedule=1f1b zero=2");
  EXPECT_EQ(FlagsOf("#\n  # --dp 7\n--dp 3 --tp 2\n\n--zero=2\n"), "dp=3 hp=2 zero=2");
  EXPECT_EQ(FlagsOf("--stage-meshes 2x1,2x1\n--blocking"), "stage-meshes=2x1,2x1 blocking=1");
  EXPECT_EQ(FlagsOf("--shard 'a --dp 2=hp@0'\n--shard b=hp@1"), "shard=a --dp 2=hp@0 shard=b=hp@1");
}

TEST(PlanFile, SaysWhatIsNoPlan) {
  EXPECT_EQ(FlagsOf("\n#\n"), "no plan; wanted its flags, as in --dp 4 --pp 2");
  EXPECT_EQ(FlagsOf("--csv x"), "'--csv': wanted the flag of an axis, as in --dp 4");
  EXPECT_THAT(FlagsOf("--dp two"), testing::HasSubstr("dp"));
  EXPECT_EQ(FlagsOf("--dp 4\n--dp 2"), "--dp is there twice; wanted it once");
  EXPECT_EQ(FlagsOf("--tp 4\n--hp 2"), "--hp is there twice; wanted it once");
}

TEST(FlagsOfPlanFile, AreNoneWithoutAFile) {
  EXPECT_TRUE(FlagsOfPlanFile({{"dp", "2"}}).value().empty());
}

}  // namespace
}  // namespace plan_file_test_cc
}  // namespace orrery::tools
