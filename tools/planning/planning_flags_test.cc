#include "tools/planning/planning_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "search/settings/setting_test_util.h"
#include "transforms/plan/axis.h"

namespace orrery::tools {
namespace planning_flags_test_cc {
namespace {

using Sizes = std::vector<int64_t>;

TEST(ParseAmount, ReadsUnits) {
  EXPECT_EQ(ParseAmount("15T").value(), 15e12);
  EXPECT_EQ(ParseAmount("300B").value(), 300e9);
  EXPECT_EQ(ParseAmount("1.5e12").value(), 1.5e12);
  EXPECT_EQ(ParseAmount("90M").value(), 90e6);
  EXPECT_EQ(ParseAmount("64k").value(), 64e3);
  EXPECT_EQ(ParseAmount("1000").value(), 1000);
  for (const char* text : {"", "T", "0", "-1", "0.5", "15Q", "nan", "inf", "1e30", "15 T"}) {
    EXPECT_FALSE(ParseAmount(text).ok()) << text;
  }
  EXPECT_EQ(ParseAmount("many").status().message(),
            "'many': wanted a number of at least 1, as in 15T, 300B or 1.5e12");
}

TEST(ParseSizes, ReadsListsAndRanges) {
  EXPECT_EQ(ParseSizes("64,128,256").value(), (Sizes{64, 128, 256}));
  EXPECT_EQ(ParseSizes("64..1024").value(), (Sizes{64, 128, 256, 512, 1024}));
  EXPECT_EQ(ParseSizes("64..1000").value(), (Sizes{64, 128, 256, 512}));
  EXPECT_EQ(ParseSizes("64..256:64").value(), (Sizes{64, 128, 192, 256}));
  EXPECT_EQ(ParseSizes("8").value(), (Sizes{8}));
  for (const char* text : {"", "0", "8,8", "16,8", "64..8", "a..b", "8..64:0", "8..64:8:8",
                           "1..99:1", "8..", "1,2x", "99999999999"}) {
    EXPECT_FALSE(ParseSizes(text).ok()) << text;
  }
}

TEST(RunSamples, CountsSamplesOfTheTokens) {
  search::Setting setting = search::MlpSetting();
  EXPECT_EQ(RunSamples({}, setting).value(), 0);
  EXPECT_EQ(RunSamples({.samples = "1M"}, setting).value(), 1'000'000);
  const auto none = RunSamples({.tokens = "1M"}, setting);
  EXPECT_EQ(none.status().message(),
            "--tokens 1M: samples of mlp:layers=4,dim=64 are no sequences of tokens; wanted "
            "--samples");
  setting.tokens_a_sample = 1024;
  EXPECT_EQ(RunSamples({.tokens = "1M"}, setting).value(), 977);  // 976.6
}

TEST(CheckPlanning, SaysWhatIsWrong) {
  const auto error = [](const PlanningFlags& flags) {
    return std::string(CheckPlanning(flags).message());
  };
  EXPECT_EQ(error({}), "");
  EXPECT_EQ(error({.goal = "speed"}), "--goal: 'speed': wanted throughput, time, memory or price");
  EXPECT_THAT(error({.goal = "price"}), testing::HasSubstr("wanted --price"));
  EXPECT_EQ(error({.price = "2", .goal = "price"}), "");
  EXPECT_THAT(error({.tokens = "1T", .samples = "1M"}), testing::HasSubstr("wanted one of them"));
  EXPECT_THAT(error({.gpus = "8..1"}), testing::HasSubstr("--gpus: '8..1': wanted numbers"));
  EXPECT_THAT(error({.emit = {"jax"}}), testing::HasSubstr("--emit: 'jax': wanted megatron, "));
  EXPECT_THAT(error({.emit = {"megatron="}}), testing::HasSubstr("wanted the name of a file"));
}

TEST(WidenFor, TriesRecomputationWhereTheLeastMemoryIsWanted) {
  const transforms::AxisInfo& recompute = *transforms::FindAxis("recompute");
  search::Space space;
  EXPECT_TRUE(WidenFor(search::Goal::kMemory, space).ok());
  EXPECT_TRUE(space.Values(recompute).empty());  // what is listed is all that is tried
  space.SaveMemory();
  EXPECT_TRUE(WidenFor(search::Goal::kTime, space).ok());
  EXPECT_TRUE(space.Values(recompute).empty());
  EXPECT_TRUE(WidenFor(search::Goal::kMemory, space).ok());
  EXPECT_EQ(space.Values(recompute).size(), 3u);
}

TEST(RunNote, SaysWhoseDaysTheyAre) {
  EXPECT_THAT(RunNote("ideal"), testing::HasSubstr("whose software adds nothing"));
  EXPECT_EQ(RunNote("nemo"),
            "as --stack nemo predicts the step; no stops, checkpoints or evaluations are in it\n");
}

}  // namespace
}  // namespace planning_flags_test_cc
}  // namespace orrery::tools
