#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// `goodput` as a user runs it.

namespace orrery::cli {
namespace goodput_test_cc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kLlama[] =
    "goodput --step-time 7s --devices 16384 --checkpoint-bytes 5.67TB --days 54 ";

// Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 devices, over 90 % effective.
TEST(Goodput, OfLlama3IsAsPublished) {
  const json found = JsonOf(kLlama);
  EXPECT_NEAR(found["interruptions"], 419, 3 * found["interruptions_ci95"].get<double>());
  EXPECT_GT(found["effective_time_fraction"], 0.90);
  EXPECT_LT(found["effective_time_fraction"], 0.93);
}

TEST(Goodput, IsTheSameOnAnyNumberOfThreads) {
  const std::string one = JsonOf(std::string(kLlama) + "--trials 300 --threads 1").dump();
  EXPECT_EQ(JsonOf(std::string(kLlama) + "--trials 300 --threads 3").dump(), one);
  EXPECT_NE(JsonOf(std::string(kLlama) + "--trials 300 --seed 2").dump(), one);
}

TEST(Goodput, BetterThingsAreNeverWorse) {
  const auto goodput = [](const std::string& flags) {
    const json found = JsonOf(std::string(kLlama) + "--trials 400 " + flags);
    return found["goodput"].get<double>();
  };
  constexpr double kNoise = 5e-4;
  const double usual = goodput("");
  EXPECT_GT(goodput("--mtbf llama3-405b,device=200000h"), usual);
  EXPECT_GT(goodput("--detect 1m"), usual);
  EXPECT_GT(goodput("--restart 1m"), usual);
  EXPECT_GE(goodput("--spares 1000"), usual - kNoise);
  EXPECT_GT(goodput("--checkpoint neighbour,pfs"), usual);
  EXPECT_LT(goodput("--checkpoint 1m"), usual);
  EXPECT_LT(goodput("--checkpoint 1h"), usual);
  EXPECT_LT(goodput("--spares 0"), usual);
  EXPECT_LT(goodput("--preempt every=24h,away=10m"), usual);
  EXPECT_EQ(goodput("--mtbf none --checkpoint none"), 1);
}

TEST(Goodput, PlaysTheStepOfAModel) {
  const json found =
      JsonOf("goodput --model gpt2-small --batch-size 64 --cluster dgx-a100:2 --dp 8 --days 30");
  EXPECT_EQ(found["devices"], 8);
  EXPECT_EQ(found["hosts"], 1);
  EXPECT_EQ(found["spare_hosts"], 1);
  EXPECT_GT(found["step_time_s"], 0);
  EXPECT_GT(found["checkpoint_bytes"], 1e9);
}

// One microbatch after the other: the step is longer than that of any schedule.
TEST(Goodput, ObeysAScheduleFile) {
  Write("orders.csv",
        "0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3\n"
        "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
  const std::string model =
      "goodput --model gpt2-small --batch-size 64 --cluster dgx-a100:1 --pp 2 --micro-batches 4 ";
  const double usual_s = JsonOf(model)["step_time_s"];
  const double ordered_s = JsonOf(model + "--schedule-file orders.csv")["step_time_s"];
  EXPECT_GT(ordered_s, 1.2 * usual_s);
  EXPECT_THAT(Execute(model + "--schedule-file none.csv").err, HasSubstr("none.csv"));
}

TEST(Goodput, SaysInOneLineWhatIsWrong) {
  for (const auto& [flags, wanted] :
       {std::pair("--mtbf device=0", "--mtbf: device=0: wanted a mean time of more than 0"),
        std::pair("--mtbf device=1s", "at most a million"),
        std::pair("--trials 0", "--trials 0: wanted 1 to"),
        std::pair("--checkpoint pfs:every=1ms:bandwidth=1MB/s", "further apart"),
        std::pair("--when-short panic", "wanted wait, shrink or keep-batch"),
        std::pair("--preempt away=1h", "--preempt"), std::pair("--plot x.png", "--plot")}) {
    const Finished run = Execute(std::string(kLlama) + flags);
    EXPECT_EQ(run.code, 1) << flags;
    EXPECT_THAT(run.err, HasSubstr(wanted));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  EXPECT_THAT(Execute("goodput --days 8").err, HasSubstr("required"));
}

}  // namespace
}  // namespace goodput_test_cc
}  // namespace orrery::cli
