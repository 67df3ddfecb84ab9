#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/paths_test_util.h"
#include "transforms/schedules/text.h"

// The schedules against what their own programs do.

namespace orrery::transforms {
namespace schedule_golden_test_cc {
namespace {

using nlohmann::json;

json Golden(const std::string& name) {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/", name));
  EXPECT_TRUE(file.good()) << name;
  return json::parse(file);
}

// Orders by torch, DualPipe and zero-bubble, one case after the other.
const std::vector<json>& GoldenCases() {
  static const auto* cases =
      new std::vector<json>(Golden("schedules.json")["schedules"].get<std::vector<json>>());
  return *cases;
}

std::string Title(const json& golden) {
  return absl::StrCat(golden["name"].get<std::string>(), " p=", golden["p"].get<int>(),
                      " m=", golden["m"].get<int>(), " v=", golden["v"].get<int>());
}

std::string TextOf(const json& golden) {
  std::string text;
  for (const json& rank : golden["ranks"]) {
    absl::StrAppend(&text, absl::StrJoin(rank.get<std::vector<std::string>>(), ","), "\n");
  }
  return text;
}

// DeepSeek's program tells steps by phase: 0 is the direction that comes early to a rank. In each
// direction microbatches are counted from 0.
void TellByPhase(RankOrders& orders, const PipelineShape& shape) {
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    const bool second_half = 2 * rank >= orders.size();
    for (ScheduleStep& step : orders[rank]) {
      const bool up = step.stage >= shape.ranks;
      step.stage = up != second_half ? 1 : 0;
      step.microbatch -= up ? shape.microbatches / 2 : 0;
    }
  }
}

// Names there and here.
const std::map<std::string, std::string>& OurNames() {
  static const auto* names = new std::map<std::string, std::string>{
      {"GPipe", "gpipe"},
      {"1F1B", "1f1b"},
      {"Interleaved1F1B", "interleaved"},
      {"Interleaved1F1B_megatron_vpp", "interleaved"},
      {"LoopedBFS", "looped-bfs"},
      {"InterleavedZeroBubble", "interleaved-zero-bubble"},
      {"ZBVZeroBubble", "zbv"},
      {"DualPipeV", "dualpipe-v"},
      {"DualPipe(bidirectional)", "dualpipe"},
  };
  return *names;
}

TEST(Golden, OrdersAreThoseOfTorchMegatronAndDualPipe) {
  std::map<std::string, int> compared;
  for (const json& golden : GoldenCases()) {
    const auto name = OurNames().find(golden["name"].get<std::string>());
    if (name == OurNames().end()) continue;
    SCOPED_TRACE(Title(golden));
    const PipelineSchedule& schedule = *FindSchedule(name->second).value();
    const PipelineShape shape = schedule.ShapeOf(golden["p"], golden["m"], golden["v"]);
    ASSERT_TRUE(schedule.CheckShape(shape).ok()) << schedule.CheckShape(shape);
    RankOrders orders = schedule.OrdersOf(shape);
    if (schedule.placement == StagePlacement::kTwoWay) TellByPhase(orders, shape);
    EXPECT_EQ(PrintOrders(orders), absl::StrReplaceAll(TextOf(golden), {{"phase", ""}}));
    ++compared[name->second];
  }
  EXPECT_THAT(compared,
              testing::ElementsAre(testing::Pair("1f1b", 7), testing::Pair("dualpipe", 4),
                                   testing::Pair("dualpipe-v", 5), testing::Pair("gpipe", 4),
                                   testing::Pair("interleaved", 20),
                                   testing::Pair("interleaved-zero-bubble", 7),
                                   testing::Pair("looped-bfs", 7), testing::Pair("zbv", 6)));
}

// "F10_I12_W8": how long steps last.
StepDurations DurationsOf(const std::string& key) {
  const std::vector<std::string> parts = absl::StrSplit(key, '_');
  StepDurations durations;
  EXPECT_TRUE(absl::SimpleAtoi(parts[0].substr(1), &durations.forward)) << key;
  EXPECT_TRUE(absl::SimpleAtoi(parts[1].substr(1), &durations.input_gradient)) << key;
  EXPECT_TRUE(absl::SimpleAtoi(parts[2].substr(1), &durations.weight_gradient)) << key;
  return durations;
}

// Whoever made the orders: read as text, timed, and measured.
TEST(Golden, TimesAndMemoryOfAnyOrderAreThoseThatOthersCount) {
  int timed = 0;
  for (const json& golden : GoldenCases()) {
    if (!golden.contains("unit_time_check")) continue;
    SCOPED_TRACE(Title(golden));
    const absl::StatusOr<ParsedOrders> parsed = ParseOrders(TextOf(golden));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->shape.chunks, golden["v"].get<int>());
    EXPECT_EQ(parsed->shape.microbatches, golden["m"].get<int>());
    EXPECT_EQ(parsed->placement == StagePlacement::kV, golden.contains("placement"));
    EXPECT_EQ(PrintOrders(parsed->orders), TextOf(golden));
    for (const auto& [key, expected] : golden["unit_time_check"].items()) {
      SCOPED_TRACE(key);
      const Timing timing =
          TimeOrders(parsed->orders, parsed->placement, parsed->shape, DurationsOf(key));
      EXPECT_EQ(timing.makespan, expected["makespan"].get<double>());
      EXPECT_EQ(json(timing.idle), expected["idle_vs_makespan_per_rank"]);
      EXPECT_EQ(json(timing.idle_inside), expected["idle_within_own_span_per_rank"]);
      ++timed;
    }
    std::vector<int64_t> peaks;
    for (const auto& order : parsed->orders) peaks.push_back(PeakLive(order));
    EXPECT_EQ(json(peaks), golden["peak_inflight_activations_until_W"]);
  }
  EXPECT_EQ(timed, 2 * 93);
}

// DistIR's timesteps, devices counted from 1 and steps written "F<stage>.<microbatch>".
json DistirTimesteps(const RankOrders& orders) {
  json timesteps = json::array();
  for (size_t stage = 0; stage < orders.size(); ++stage) {
    for (const ScheduleStep& step : orders[stage]) {
      timesteps[static_cast<size_t>(step.slot)][absl::StrCat(stage + 1)] =
          absl::StrCat(step.kind == StepKind::kForward ? "F" : "B", stage, ".", step.microbatch);
    }
  }
  return timesteps;
}

TEST(Golden, DistirOrderAndSlotsAreDistirsTimesteps) {
  int compared = 0;
  const json golden = Golden("distir_schedules.json");
  const PipelineSchedule& schedule = *FindSchedule("distir").value();
  for (const auto& [key, timesteps] : golden.items()) {
    if (key == "_doc") continue;
    const std::vector<std::string> parts = absl::StrSplit(key, '_');  // L4_pp4_K8
    PipelineShape shape;
    ASSERT_TRUE(absl::SimpleAtoi(parts[1].substr(2), &shape.ranks)) << key;
    ASSERT_TRUE(absl::SimpleAtoi(parts[2].substr(1), &shape.microbatches)) << key;
    EXPECT_EQ(DistirTimesteps(schedule.OrdersOf(shape)), timesteps) << key;
    ++compared;
  }
  EXPECT_EQ(compared, 8);
}

}  // namespace
}  // namespace schedule_golden_test_cc
}  // namespace orrery::transforms
