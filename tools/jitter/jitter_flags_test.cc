#include "tools/jitter/jitter_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"

namespace orrery::tools {
namespace jitter_flags_test_cc {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::optional<search::StepsQuestion>> Read(const JitterFlags& flags) {
  return ReadJitterFlags(flags, cluster::ParseCluster("dgx-a100:2")->topology, 16);
}

std::string ErrorOf(const JitterFlags& flags) {
  const auto question = Read(flags);
  EXPECT_FALSE(question.ok());
  return std::string(question.status().message());
}

TEST(JitterFlags, AskNothingWhereNoneIsGiven) { EXPECT_FALSE(Read({})->has_value()); }

TEST(JitterFlags, AreRead) {
  const auto read =
      Read({.jitter = {"kernel=lognormal:2%,rank=0.01", "gc=together:20ms/30s,link=nic:50%"},
            .slow = {"rank=5:1.3,rank=15:0.9"},
            .seed = 7,
            .steps = 50});
  ASSERT_TRUE(read.ok()) << read.status();
  const search::StepsQuestion& question = **read;
  const simulator::Disturbances& of = question.disturbances;
  EXPECT_EQ(of.kernel->of->name, "lognormal");
  EXPECT_DOUBLE_EQ(of.kernel->spread, 0.02);
  EXPECT_EQ(of.rank->of->name, "normal");
  EXPECT_DOUBLE_EQ(of.rank->spread, 0.01);
  EXPECT_EQ(of.pauses->length, Duration(20'000'000'000));
  EXPECT_EQ(of.pauses->every, Duration(30'000'000'000'000));
  EXPECT_TRUE(of.pauses->together);
  ASSERT_EQ(of.slow.size(), 2);
  EXPECT_EQ(of.slow[1].rank, 15);
  EXPECT_DOUBLE_EQ(of.slow[1].factor, 0.9);
  EXPECT_EQ(of.seed, 7);
  EXPECT_EQ(question.steps, 50);
  ASSERT_EQ(question.links.size(), 1);
  EXPECT_EQ(question.links[0].links.size(), 32);
  EXPECT_DOUBLE_EQ(question.links[0].share, 0.5);
  const auto usual = Read({.slow = {"rank=0:1.1"}});
  EXPECT_EQ((*usual)->steps, kUsualSteps);
  EXPECT_EQ((*usual)->disturbances.seed, 1);
}

// One line each: what was found, and what was wanted.
TEST(JitterFlags, SayWhatIsWrong) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> jitter = {
      {"kernel=-120%", {"--jitter 'kernel=-120%'", "-120 %", "more than 0 %"}},
      {"kernel=0%", {"0 %", "more than 0 %"}},
      {"rank=30%", {"30 %", "at most 25 % of normal", "lognormal"}},
      {"rank=nan", {"'nan'", "such as 2%"}},
      {"rank=inf", {"'inf'"}},
      {"rank=lognormal:", {"''", "such as 2%"}},
      {"rank=lognormel:2%", {"lognormel", "did you mean lognormal", "list-jitter"}},
      {"kernels=2%", {"kernels", "did you mean kernel"}},
      {"rank", {"'rank'", "rank=1%"}},
      {"", {"no source of jitter ''"}},
      {"rank=1%,rank=2%", {"rank twice"}},
      {"gc=20ms", {"'20ms'", "20ms/30s"}},
      {"gc=-20ms/30s", {"'-20ms/30s'"}},
      {"gc=30s/20ms", {"30.0 s every 20.0 ms", "shorter"}},
      {"gc=1us/10us", {"at least 1 ms"}},
      {"link=nic", {"'nic'", "nic:0.5"}},
      {"link=nic:0", {"a share of 0", "more than 0"}},
      {"link=nic:1.5", {"1.5", "at most 1"}},
      {"link=nic:-1", {"-1", "more than 0"}},
      {"link=uplink:0.5", {"uplink", "nic", "port"}},
      {"link=nic:0.5,link=nic:0.6", {"nic twice"}},
  };
  for (const auto& [text, parts] : jitter) {
    const std::string error = ErrorOf({.jitter = {text}});
    for (const std::string& part : parts) EXPECT_THAT(error, HasSubstr(part));
    EXPECT_THAT(error, testing::Not(HasSubstr("\n")));
  }
  const std::vector<std::pair<std::string, std::vector<std::string>>> slow = {
      {"rank=5:1.3,rank=5:2", {"--slow 'rank=5:1.3,rank=5:2'", "rank 5 twice", "each rank once"}},
      {"rank=16:1.3", {"no rank 16", "0 to 15"}},
      {"rank=-1:1.3", {"no rank -1"}},
      {"rank=5:-1", {"a factor of -1", "more than 0"}},
      {"rank=5:0", {"a factor of 0"}},
      {"rank=5:nan", {"a factor of nan"}},
      {"rank=5:1e9", {"at most 1000"}},
      {"rank=5", {"'rank=5'", "rank=5:1.3"}},
      {"5:1.3", {"'5:1.3'", "rank=5:1.3"}},
      {"", {"''"}},
  };
  for (const auto& [text, parts] : slow) {
    const std::string error = ErrorOf({.slow = {text}});
    for (const std::string& part : parts) EXPECT_THAT(error, HasSubstr(part));
  }
  EXPECT_THAT(ErrorOf({.steps = 0}), HasSubstr("--steps 0; wanted 1 to 1000000"));
  EXPECT_THAT(ErrorOf({.steps = -3}), HasSubstr("--steps -3"));
  EXPECT_THAT(ErrorOf({.seed = -3, .steps = 3}), HasSubstr("--seed -3"));
  EXPECT_THAT(ErrorOf({.seed = 3}), HasSubstr("--seed: nothing is drawn"));
}

// Whatever the listing names is what the flag takes.
TEST(JitterListing, NamesWhatIsRead) {
  const Listing listing = JitterListing();
  EXPECT_GE(listing.things().size(), 10);
  for (const NamedThing& thing : listing.things()) {
    EXPECT_TRUE(Read({.jitter = {thing.name}}).ok()) << thing.name;
    EXPECT_FALSE(thing.summary.empty());
  }
}

}  // namespace
}  // namespace jitter_flags_test_cc
}  // namespace orrery::tools
