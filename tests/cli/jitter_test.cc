#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// Steps that jitter disturbs, as `simulate` tells of them.

namespace orrery::cli {
namespace jitter_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kStep =
    "simulate --model mlp:layers=4,dim=64 --batch-size 48 --cluster uniform:8@200Gbps ";

nlohmann::json Steps(const std::string& name) {
  return nlohmann::json::parse(Contents(name)).at("steps");
}

// Same seed, same bytes, on however many processors.
TEST(Jitter, IsTheSameOnAnyNumberOfThreads) {
  Clear();
  const std::string flags =
      "--dp 2 --hp 2 --pp 2 --micro-batches 4 --jitter "
      "kernel=2%,rank=lognormal:1%,device=1%,step=1%,gc=5us/1ms --slow rank=5:1.3 --steps 40 ";
  const Finished free = Execute(kStep + flags + "--json a.json");
  ASSERT_EQ(free.code, 0) << free.err;
  const Finished bound =
      Execute(absl::StrCat("simulate --version >/dev/null && taskset -cp 0 $$ >/dev/null && ",
                           BinDir(), "/", kStep, flags, "--json b.json"));
  ASSERT_EQ(bound.code, 0) << bound.err;
  EXPECT_EQ(Steps("a.json").dump(), Steps("b.json").dump());
  ASSERT_EQ(Execute(kStep + flags + "--seed 2 --json c.json").code, 0);
  EXPECT_NE(Steps("a.json").at("times_s"), Steps("c.json").at("times_s"));
  EXPECT_THAT(free.out, HasSubstr("40 steps, seed 1: "));
}

TEST(Jitter, IsNotThereWithoutItsFlags) {
  Clear();
  const Finished plain = Execute(kStep + "--dp 8 --json plain.json");
  EXPECT_THAT(plain.out, Not(HasSubstr("seed")));
  EXPECT_FALSE(nlohmann::json::parse(Contents("plain.json")).contains("steps"));
}

TEST(Jitter, TellsAStepAsItShouldBeWhereNothingDisturbsIt) {
  Clear();
  ASSERT_EQ(Execute(kStep + "--dp 8 --steps 3 --json s.json").code, 0);
  const nlohmann::json report = nlohmann::json::parse(Contents("s.json"));
  for (const nlohmann::json& time : report.at("steps").at("times_s")) {
    EXPECT_EQ(time, report.at("step_time_s"));
  }
}

TEST(Jitter, BadInputIsALine) {
  Clear();
  const std::vector<std::pair<std::string, std::string>> commands = {
      {"--jitter kernel=-120%", "simulate: --jitter 'kernel=-120%': kernel: a spread of -120 %"},
      {"--slow rank=5:1.3,rank=5:1.4", "rank 5 twice; wanted each rank once"},
      {"--slow rank=8:1.3", "no rank 8; wanted one of the plan's 8, 0 to 7"},
      {"--slow rank=5:-1", "a factor of -1; wanted more than 0"},
      {"--steps 0", "--steps 0; wanted 1 to 1000000"},
      {"--seed 3", "--seed: nothing is drawn"},
      {"--jitter link=uplink:0.5", "link 'uplink' is none of the cluster's"},
      {"--jitter link=pair:0.5 --cost-model distir", "the distir cost model knows no links"},
      {"--jitter rank=1% --plan pipedream",
       "stages or replicas have ranks or microbatches of their own"},
  };
  for (const auto& [flags, text] : commands) {
    const Finished finished = Execute(kStep + "--dp 8 " + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    EXPECT_THAT(finished.err, HasSubstr(text)) << flags;
    EXPECT_EQ(finished.err.find('\n'), finished.err.size() - 1) << finished.err;
  }
  EXPECT_EQ(Execute(kStep + "--dp 8 --steps many").code, 2);
}

}  // namespace
}  // namespace jitter_test_cc
}  // namespace orrery::cli
