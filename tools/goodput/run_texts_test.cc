#include "tools/goodput/run_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace orrery::tools {
namespace run_texts_test_cc {
namespace {

using simulator::goodput::FailureRate;
using simulator::goodput::PlannedStop;
using simulator::goodput::WhenShort;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::map<std::string, double> HoursOf(const absl::StatusOr<std::vector<FailureRate>>& rates) {
  std::map<std::string, double> hours;
  for (const FailureRate& rate : rates.value()) {
    hours[std::string(rate.component->name)] = rate.mtbf_s / 3600;
  }
  return hours;
}

TEST(RunTexts, SpansHaveUnits) {
  for (const auto& [text, seconds] :
       {std::pair("50000h", 1.8e8), std::pair("30m", 1800.0), std::pair("30min", 1800.0),
        std::pair("1.5h", 5400.0), std::pair("45s", 45.0), std::pair("200ms", 0.2),
        std::pair("2d", 172'800.0), std::pair("1y", 365 * 86'400.0), std::pair("0", 0.0)}) {
    ASSERT_TRUE(ParseSpan(text).ok()) << text;
    EXPECT_DOUBLE_EQ(*ParseSpan(text), seconds) << text;
  }
  for (const char* text : {"", "h", "5", "-5m", "5 m", "nan", "infh", "1e400h", "5x", "m5"}) {
    EXPECT_THAT(ParseSpan(text).status().message(), HasSubstr("wanted a time")) << text;
  }
}

TEST(RunTexts, SpansForPeopleReadBack) {
  for (const double seconds : {0.012, 5.0, 119.0, 300.0, 7199.0, 10'000.0, 1e6, 1e8, 1e9}) {
    std::string text = SpanText(seconds);
    text.erase(text.find(' '), 1);
    EXPECT_NEAR(ParseSpan(text).value() / seconds, 1, 0.005) << text;
  }
}

TEST(RunTexts, SpreadsHaveEnds) {
  EXPECT_EQ(ParseSpread("2m..10m")->high_s, 600);
  EXPECT_EQ(ParseSpread("5m")->low_s, 300);
  EXPECT_EQ(ParseSpread("5m")->high_s, 300);
  EXPECT_THAT(ParseSpread("10m..2m").status().message(), HasSubstr("shorter time first"));
  EXPECT_FALSE(ParseSpread("..").ok());
}

TEST(RunTexts, LaterRatesGoBeforeEarlierOnes) {
  EXPECT_THAT(HoursOf(ParseMtbf("device=50000h,host=30000h")),
              ElementsAre(Pair("device", 50'000), Pair("host", 30'000)));
  EXPECT_THAT(HoursOf(ParseMtbf("none")), ElementsAre());
  auto published = HoursOf(ParseMtbf("llama3-405b"));
  EXPECT_EQ(published.size(), 4u);
  auto changed = HoursOf(ParseMtbf("llama3-405b,device=1h,link=never,switch=2h"));
  EXPECT_EQ(changed["device"], 1);
  EXPECT_EQ(changed.count("link"), 0u);
  EXPECT_EQ(changed["switch"], 2);
  EXPECT_EQ(changed["host"], published["host"]);
}

// 16,384 devices for 54 days, of which the table has 419 failures.
TEST(RunTexts, PublishedRatesAreThoseOfTheirSource) {
  const auto rates = ParseMtbf("llama3-405b").value();
  const simulator::goodput::RunSpec spec{.job = {.hosts = 2'048}, .failures = rates};
  EXPECT_NEAR(simulator::goodput::FailuresPerSecond(spec) * 54 * 86'400, 419, 1e-6);
  for (const FailureProfile& profile : AllFailureProfiles()) {
    EXPECT_TRUE(ParseMtbf(profile.name).ok()) << profile.name;
    EXPECT_FALSE(profile.source.empty());
  }
}

TEST(RunTexts, SaysWhatIsNoRate) {
  EXPECT_THAT(ParseMtbf("devise=1h").status().message(), HasSubstr("device"));
  EXPECT_THAT(ParseMtbf("device=0").status().message(), HasSubstr("more than 0, or never"));
  EXPECT_THAT(ParseMtbf("device=-1h").status().message(), HasSubstr("device: '-1h'"));
  EXPECT_THAT(ParseMtbf("lama").status().message(), HasSubstr("--list-failures"));
}

TEST(RunTexts, TiersSayWhereAndHowOften) {
  EXPECT_TRUE(ParseTiers("none")->empty());
  const auto bare = ParseTiers("30m").value();
  ASSERT_EQ(bare.size(), 1u);
  EXPECT_EQ(bare[0].name, "pfs");
  EXPECT_EQ(bare[0].every_s, 1800);
  const auto two = ParseTiers("host:every=100steps,pfs:bandwidth=2TB/s:blocking:load=3m").value();
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].every_steps, 100);
  EXPECT_FALSE(two[0].open());
  EXPECT_TRUE(two[1].open());
  EXPECT_TRUE(two[1].blocking);
  EXPECT_EQ(two[1].bytes_per_second, 2e12);
  EXPECT_EQ(two[1].load_s, 180);
  EXPECT_TRUE(ParseTiers("pfs:every=auto").value()[0].open());
}

TEST(RunTexts, SaysWhatIsNoTier) {
  EXPECT_THAT(ParseTiers("tape").status().message(), HasSubstr("wanted host, disk, neighbour"));
  EXPECT_THAT(ParseTiers("pfs,pfs").status().message(), HasSubstr("named twice"));
  EXPECT_THAT(ParseTiers("pfs:ever=3m").status().message(), HasSubstr("pfs: 'ever=3m'"));
  EXPECT_THAT(ParseTiers("pfs:every=0").status().message(), HasSubstr("more than 0"));
  EXPECT_THAT(ParseTiers("pfs:every=0steps").status().message(), HasSubstr("at least 1 step"));
  EXPECT_THAT(ParseTiers("pfs:bandwidth=0B/s").status().message(), HasSubstr("bandwidth"));
  EXPECT_THAT(ParseTiers("").status().message(), HasSubstr("wanted host"));
}

TEST(RunTexts, StopsComeEverySoOften) {
  const PlannedStop usual{.name = "preemption", .random = true};
  const PlannedStop stop = ParseStop("every=24h,away=10m..30m,notice=2m", usual).value();
  EXPECT_EQ(stop.name, "preemption");
  EXPECT_TRUE(stop.random);
  EXPECT_EQ(stop.every_s, 86'400);
  EXPECT_EQ(stop.away.high_s, 1800);
  EXPECT_EQ(stop.notice_s, 120);
  EXPECT_THAT(ParseStop("away=1h", usual).status().message(), HasSubstr("as in every=24h"));
  EXPECT_THAT(ParseStop("each=1h", usual).status().message(), HasSubstr("wanted every=24h"));
}

TEST(RunTexts, WordsForWhenHostsAreShort) {
  EXPECT_EQ(ParseWhenShort("keep-batch").value(), WhenShort::kKeepBatch);
  EXPECT_THAT(ParseWhenShort("stop").status().message(), HasSubstr("wanted wait, shrink"));
}

}  // namespace
}  // namespace run_texts_test_cc
}  // namespace orrery::tools
