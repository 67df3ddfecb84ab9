#include "search/views/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "search/evaluate.h"
#include "search/settings/setting_test_util.h"
#include "transforms/plan/plan_test_util.h"

namespace orrery::search {
namespace explain_test_cc {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// All-reduces, wherever a product ends.
ParallelPlan ByPattern(ParallelPlan plan) {
  plan.sharding = transforms::ShardingMethod::kMegatron;
  return transforms::ByFlops(plan);
}

Setting Linked(const std::string& cluster, const std::string& optimizer = "adam") {
  Setting setting = MlpSetting(cluster, optimizer);
  setting.lowering.every_link = true;
  return setting;
}

Explanation Explained(Setting& setting, const ParallelPlan& plan) {
  const ParallelPlan pattern = ByPattern(plan);
  const absl::StatusOr<Run> run = Play(setting, pattern);
  EXPECT_TRUE(run.ok()) << run.status();
  absl::StatusOr<Explanation> explanation = Explain(setting, pattern, *run);
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  return *std::move(explanation);
}

Duration StepTime(const Setting& setting, const ParallelPlan& plan) {
  return Play(setting, ByPattern(plan))->report.step_time;
}

std::vector<std::string> Changes(const Explanation& explanation) {
  std::vector<std::string> changes;
  for (const LinkRelief& relief : explanation.reliefs) changes.push_back(relief.change);
  return changes;
}

Duration TimeWith(const Explanation& explanation, absl::string_view change) {
  for (const LinkRelief& relief : explanation.reliefs) {
    if (relief.change == change) return relief.step_time;
  }
  ADD_FAILURE() << "no relief '" << change << "'";
  return Duration();
}

TEST(Explain, OneDeviceSendsNothing) {
  Setting setting = Linked("switch:4@50GB/s");
  const Explanation explanation = Explained(setting, {});
  EXPECT_TRUE(explanation.levels.empty());
  EXPECT_TRUE(explanation.reliefs.empty());
  EXPECT_EQ(ExplanationText(explanation, Duration(1)), "nothing travels between devices\n");
}

// By hand. A port of stage 0 sends 24 rows of 64 floats on, and half of each gradient to its
// replica, twice: two layers of 64 x 64. So does one of stage 1, back.
TEST(Explain, SharesAreThoseOfTheBytes) {
  Setting setting = Linked("switch:4@50GB/s", "sgd");
  const ParallelPlan plan = {.dp = 2, .pp = 2};
  const Explanation explanation = Explained(setting, plan);
  constexpr double kSent = 24 * 64 * 4, kReduced = 2 * 64 * 64 * 4;
  ASSERT_EQ(explanation.levels.size(), 1u);
  const LevelUse& port = explanation.levels[0];
  EXPECT_EQ(port.level, "port");
  EXPECT_EQ(port.link, "device0 -> switch0 (port) and 1 alike");
  EXPECT_NEAR(port.use.bytes, kSent + kReduced, 1);
  ASSERT_EQ(port.carried.size(), 2u);
  EXPECT_EQ(port.carried[0].communication, "all-reduce dp");
  EXPECT_NEAR(port.carried[0].share, kReduced / (kSent + kReduced), 1e-6);
  EXPECT_EQ(port.carried[1].communication, "send");
  EXPECT_NEAR(port.carried[1].share, kSent / (kSent + kReduced), 1e-6);
  EXPECT_NEAR(port.use.utilization, (kSent + kReduced) / 50e9 / StepTime(setting, plan).seconds(),
              1e-6);
}

// Both ranks of a node send on its one NIC, which a reduction over two nodes crosses once.
TEST(Explain, SharesAreWeighedWithTheLoads) {
  for (const bool fold : {true, false}) {
    Setting setting = Linked("nodes:4x2@300GB/s,nic=25GB/s,nics=1", "sgd");
    setting.lowering.fold = fold;
    const Explanation explanation = Explained(setting, {.dp = 4, .pp = 2, .order = "dp,hp,pp"});
    constexpr double kSent = 2 * 12 * 64 * 4;
    for (const LevelUse& level : explanation.levels) {
      if (level.level != "nic") continue;
      ASSERT_EQ(level.carried.size(), 2u);
      EXPECT_EQ(level.carried[1].communication, "send");
      EXPECT_NEAR(level.carried[1].share * level.use.bytes, kSent, 1);
      EXPECT_NEAR(level.carried[0].share + level.carried[1].share, 1, 1e-12);
    }
    EXPECT_GE(explanation.levels.size(), 2u);
  }
}

// The horizontal groups fill the nodes, and the others cross them.
TEST(Explain, LevelsAreInTheOrderOfTheirUse) {
  for (const char* order : {"hp,dp,pp", "dp,hp,pp"}) {
    SCOPED_TRACE(order);
    Setting setting = Linked("nodes:2x4@300GB/s,nic=25GB/s");
    const bool good = order == std::string("hp,dp,pp");
    const Explanation explanation =
        Explained(setting, {.dp = good ? 2 : 4, .hp = good ? 4 : 2, .order = order});
    ASSERT_EQ(explanation.levels.size(), 2u);
    for (const LevelUse& level : explanation.levels) {
      const bool inside = level.level == "port";
      EXPECT_EQ(level.carried[0].communication, good == inside ? "all-reduce hp" : "all-reduce dp");
      EXPECT_EQ(level.carried.size(), 1u) << level.level;
      EXPECT_DOUBLE_EQ(level.carried[0].share, 1);
      EXPECT_THAT(level.link, testing::HasSubstr(absl::StrCat("(", level.level, ")")));
    }
    EXPECT_GT(explanation.levels[0].use.utilization, explanation.levels[1].use.utilization);
  }
}

// What crosses the nodes holds up the ports, which it uses, but does not fill.
TEST(Explain, ALinkThatIsBusyNeedNotBeFull) {
  Setting setting = Linked("dgx-a100:2");
  const ParallelPlan plan = {.dp = 2, .hp = 8, .order = "dp,hp,pp"};
  const Explanation explanation = Explained(setting, plan);
  ASSERT_EQ(explanation.levels.size(), 2u);
  EXPECT_EQ(explanation.levels[0].level, "nic");
  const LevelUse& port = explanation.levels[1];
  const double busy = port.use.busy.seconds() / StepTime(setting, plan).seconds();
  EXPECT_LT(port.full, 0.5 * busy);
  EXPECT_LE(port.full, port.use.utilization);
}

// Of many links of a level, the one with the most is named: the stages send to their neighbours,
// and the ones in the middle send both ways.
TEST(Explain, TheBusiestLinkOfALevelStandsForIt) {
  Setting setting = Linked("switch:4@50GB/s", "none");
  const ParallelPlan plan = {.pp = 4, .microbatches = 2};
  const Explanation explanation = Explained(setting, plan);
  ASSERT_EQ(explanation.levels.size(), 1u);
  const auto run = Play(setting, ByPattern(plan));
  double most = 0, least = 2;
  for (int32_t i = 0; i < run->program.resource_count(); ++i) {
    const double used =
        run->link_use->Summarize(simulator::ResourceId(i), run->trace.makespan).utilization;
    most = std::max(most, used);
    least = std::min(least, used);
  }
  EXPECT_LT(least, 0.6 * most);
  EXPECT_EQ(explanation.levels[0].use.utilization, most);
  EXPECT_DOUBLE_EQ(explanation.levels[0].full,
                   explanation.levels[0].use.full.seconds() / run->trace.makespan.seconds());
  EXPECT_THAT(explanation.levels[0].link, testing::StartsWith("device1 -> switch0 (port)"));
}

// Every relief is what a user gets who writes the change down in the cluster or in --order.
TEST(Explain, ReliefsAreWhatTheChangeGives) {
  const ParallelPlan plan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2};
  Setting setting = Linked("nodes:4x2@300GB/s,nic=25GB/s");
  const Explanation explanation = Explained(setting, plan);
  EXPECT_EQ(TimeWith(explanation, "nic links of twice the rate"),
            StepTime(Linked("nodes:4x2@300GB/s,nic=50GB/s"), plan));
  EXPECT_EQ(TimeWith(explanation, "port links of twice the rate"),
            StepTime(Linked("nodes:4x2@600GB/s,nic=25GB/s"), plan));
  int orders = 0;
  for (const LinkRelief& relief : explanation.reliefs) {
    absl::string_view order = relief.change;
    if (!absl::ConsumePrefix(&order, "--order ")) continue;
    ParallelPlan other = plan;
    other.order = transforms::MeshOrder::Parse(order).value();
    EXPECT_EQ(relief.step_time, StepTime(setting, other)) << order;
    ++orders;
  }
  EXPECT_EQ(orders, 5);
}

// Axes of one rank are nowhere, and the order that is there is no other one.
TEST(Explain, TriesEachOtherOrderOnce) {
  const std::string faster = "port links of twice the rate";
  const auto changes = [](ParallelPlan plan, const char* order) {
    Setting setting = Linked("switch:8@50GB/s");
    plan.order = order;
    return Changes(Explained(setting, plan));
  };
  EXPECT_THAT(changes({.dp = 4}, "hp,dp,pp"), ElementsAre(faster));
  EXPECT_THAT(changes({.dp = 2, .hp = 2}, "hp,dp,pp"),
              UnorderedElementsAre(faster, "--order pp,dp,hp"));
  EXPECT_THAT(changes({.dp = 2, .hp = 2}, "dp,pp,hp"),
              UnorderedElementsAre(faster, "--order pp,hp,dp"));
  EXPECT_THAT(changes({.hp = 2, .pp = 2}, "pp,dp,hp"),
              UnorderedElementsAre(faster, "--order dp,hp,pp"));
  EXPECT_THAT(changes({.dp = 2, .hp = 2, .pp = 2}, "hp,dp,pp"),
              UnorderedElementsAre(faster, "--order dp,hp,pp", "--order dp,pp,hp",
                                   "--order hp,pp,dp", "--order pp,dp,hp", "--order pp,hp,dp"));
}

// On a switch no order is worse than another; they are told all the same, after what helps.
TEST(Explain, TheBestReliefIsFirst) {
  const ParallelPlan plan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2};
  for (const char* cluster : {"switch:8@5GB/s", "nodes:2x4@300GB/s,nic=2GB/s", "torus:4x2@5GB/s"}) {
    SCOPED_TRACE(cluster);
    Setting setting = Linked(cluster);
    const Explanation explanation = Explained(setting, plan);
    EXPECT_TRUE(std::is_sorted(
        explanation.reliefs.begin(), explanation.reliefs.end(),
        [](const LinkRelief& a, const LinkRelief& b) { return a.step_time < b.step_time; }));
    EXPECT_LT(explanation.reliefs.front().step_time, StepTime(setting, plan));
  }
}

TEST(Explain, LeavesTheSettingAsItWas) {
  const ParallelPlan plan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2};
  Setting setting = Linked("nodes:2x4@300GB/s,nic=2GB/s");
  const Duration before = StepTime(setting, plan);
  const std::vector<std::string> changes = Changes(Explained(setting, plan));
  EXPECT_EQ(StepTime(setting, plan), before);
  EXPECT_EQ(Changes(Explained(setting, plan)), changes);
}

// Folded or not, the busiest links are as busy, with the same.
TEST(Explain, FoldingChangesNothing) {
  for (const char* cluster : {"switch:8@5GB/s", "nodes:2x4@300GB/s,nic=2GB/s", "torus:4x2@5GB/s"}) {
    SCOPED_TRACE(cluster);
    const ParallelPlan plan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2};
    Setting setting = Linked(cluster);
    const Explanation folded = Explained(setting, plan);
    setting.lowering.fold = false;
    const Explanation every = Explained(setting, plan);
    ASSERT_EQ(folded.levels.size(), every.levels.size());
    for (size_t i = 0; i < folded.levels.size(); ++i) {
      const LevelUse& a = folded.levels[i];
      const LevelUse& b = every.levels[i];
      EXPECT_EQ(a.level, b.level);
      EXPECT_NEAR(a.use.utilization, b.use.utilization, 1e-9);
      EXPECT_NEAR(a.full, b.full, 1e-9);
      ASSERT_EQ(a.carried.size(), b.carried.size());
      for (size_t c = 0; c < a.carried.size(); ++c) {
        EXPECT_EQ(a.carried[c].communication, b.carried[c].communication);
        EXPECT_NEAR(a.carried[c].share, b.carried[c].share, 1e-9);
      }
    }
  }
}

// A run of several batches: what is of the run and what is of a step are not mixed.
TEST(Explain, NoLinkIsFullForMoreThanAllOfTheTime) {
  for (const char* schedule : {"1f1b", "pipedream"}) {
    Setting setting = Linked("uniform:4@1Gbps");
    const ParallelPlan plan = {.pp = 4, .microbatches = 8, .schedule = schedule};
    const Explanation explanation = Explained(setting, plan);
    ASSERT_EQ(explanation.levels.size(), 1u);
    const LevelUse& pair = explanation.levels[0];
    EXPECT_GT(pair.full, 0.1) << schedule;
    // Links of no latency: sends alone on them fill them.
    EXPECT_NEAR(pair.full, pair.use.utilization, 1e-6) << schedule;
    EXPECT_LE(pair.full, 1) << schedule;
  }
}

TEST(ExplanationText, NamesLevelsSharesAndReliefs) {
  simulator::ResourceUse busy, idle;
  busy.utilization = 0.4485;
  idle.utilization = 0.118;
  const Explanation explanation = {
      .levels = {{.level = "nic",
                  .link = "device0 -> switch2 (nic) and 31 alike",
                  .use = busy,
                  .full = 0.25,
                  .carried = {{"all-reduce hp", 0.75}, {"send", 0.25}}},
                 {.level = "port",
                  .link = "device0 -> switch0 (port)",
                  .use = idle,
                  .full = 0,
                  .carried = {{"all-reduce dp", 1}}}},
      .reliefs = {{"--order pp,hp,dp", Duration(600'000'000)},
                  {"nic links of twice the rate", Duration(800'000'000)},
                  {"port links of twice the rate", Duration(1'000'000'000)},
                  {"--order pp,dp,hp", Duration(1'500'000'000)}}};
  EXPECT_EQ(
      ExplanationText(explanation, Duration(1'000'000'000)),
      "busiest links, by level:\n"
      "  nic        44.9 % used, full for 25.0 % of the step: device0 -> switch2 (nic) and 31 "
      "alike\n"
      "             carries all-reduce hp 75.0 %, send 25.0 %\n"
      "  port       11.8 % used, full for 0.0 % of the step: device0 -> switch0 (port)\n"
      "             carries all-reduce dp 100.0 %\n"
      "what would relieve them (step time now 1.00 ms):\n"
      "  --order pp,hp,dp                     600 us  -40.0 %\n"
      "  nic links of twice the rate          800 us  -20.0 %\n"
      "  port links of twice the rate        1.00 ms  +0.0 %\n"
      "  --order pp,dp,hp                    1.50 ms  +50.0 %\n");
}

}  // namespace
}  // namespace explain_test_cc
}  // namespace orrery::search
