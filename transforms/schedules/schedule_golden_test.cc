#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "transforms/schedules/schedule.h"

// The schedules against what their own programs do, and against closed forms.

namespace orrery::transforms {
namespace {

using nlohmann::json;

json Golden(const std::string& name) {
  std::ifstream file(absl::StrCat(ORRERY_SOURCE_DIR, "/tests/data/", name));
  EXPECT_TRUE(file.good()) << name;
  return json::parse(file);
}

StageOrders OrdersOf(absl::string_view name, const PipelineShape& shape) {
  return FindSchedule(name).value()->orders(shape);
}

template <typename Check>
void ForEachShape(Check check) {
  for (int32_t stages = 1; stages <= 9; ++stages) {
    for (int32_t microbatches = 1; microbatches <= 17; ++microbatches) {
      SCOPED_TRACE(absl::StrCat(stages, " stages, ", microbatches, " microbatches"));
      check(PipelineShape{.stages = stages, .microbatches = microbatches});
    }
  }
}

TEST(Golden, OneForwardOneBackwardAndGpipeAsTorchAndZeroBubbleOrderThem) {
  const std::map<std::string, std::string> ours = {{"1F1B", "1f1b"}, {"GPipe", "gpipe"}};
  int compared = 0;
  const json file = Golden("schedules_1f1b_gpipe.json");
  for (const json& golden : file["schedules"]) {
    SCOPED_TRACE(golden["name"].dump() + " p=" + golden["p"].dump() + " m=" + golden["m"].dump());
    const StageOrders orders =
        OrdersOf(ours.at(golden["name"]), {.stages = golden["p"], .microbatches = golden["m"]});
    std::string expected;
    for (const json& rank : golden["ranks"]) {
      absl::StrAppend(&expected, absl::StrJoin(rank.get<std::vector<std::string>>(), ","), "\n");
    }
    EXPECT_EQ(PrintOrders(orders), expected);
    std::vector<int32_t> peak_live;
    for (const auto& order : orders) peak_live.push_back(PeakLiveMicrobatches(order));
    EXPECT_EQ(peak_live, golden["peak_live"].get<std::vector<int32_t>>());
    ++compared;
  }
  EXPECT_EQ(compared, 11);
}

// DistIR's timesteps, devices counted from 1 and steps written "F<stage>.<microbatch>".
json DistirTimesteps(const StageOrders& orders) {
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
  for (const auto& [key, timesteps] : golden.items()) {
    if (key == "_doc") continue;
    const std::vector<std::string> parts = absl::StrSplit(key, '_');  // L4_pp4_K8
    PipelineShape shape;
    ASSERT_TRUE(absl::SimpleAtoi(parts[1].substr(2), &shape.stages)) << key;
    ASSERT_TRUE(absl::SimpleAtoi(parts[2].substr(1), &shape.microbatches)) << key;
    EXPECT_EQ(DistirTimesteps(OrdersOf("distir", shape)), timesteps) << key;
    ++compared;
  }
  EXPECT_EQ(compared, 8);
}

TEST(ClosedForm, FlushingSchedulesTakeTwiceStagesAndMicrobatchesLessOne) {
  ForEachShape([](const PipelineShape& shape) {
    const int32_t expected = 2 * (shape.microbatches + shape.stages - 1);
    EXPECT_EQ(UnitMakespan(OrdersOf("gpipe", shape)), expected);
    EXPECT_EQ(UnitMakespan(OrdersOf("1f1b", shape)), expected);
  });
}

TEST(ClosedForm, GpipeKeepsAllMicrobatchesLive) {
  ForEachShape([](const PipelineShape& shape) {
    for (const auto& order : OrdersOf("gpipe", shape)) {
      EXPECT_EQ(PeakLiveMicrobatches(order), shape.microbatches);
    }
  });
}

TEST(ClosedForm, OneForwardOneBackwardKeepsOneMicrobatchLiveAStageBehindIt) {
  ForEachShape([](const PipelineShape& shape) {
    const StageOrders orders = OrdersOf("1f1b", shape);
    for (int32_t stage = 0; stage < shape.stages; ++stage) {
      EXPECT_EQ(PeakLiveMicrobatches(orders[static_cast<size_t>(stage)]),
                std::min(shape.stages - stage, shape.microbatches));
    }
  });
}

TEST(ClosedForm, PipedreamOrdersStepsAsOneForwardOneBackward) {
  ForEachShape([](const PipelineShape& shape) {
    EXPECT_EQ(OrdersOf("pipedream", shape), OrdersOf("1f1b", shape));
  });
}

// No more weight versions than microbatches can be live: each live one holds at most one.
TEST(ClosedForm, PipedreamStashesAVersionForEachLiveMicrobatch) {
  const PipelineShape shape = {.stages = 6, .microbatches = 12};
  const StageOrders orders = OrdersOf("pipedream", shape);
  for (int32_t stage = 0; stage < shape.stages; ++stage) {
    EXPECT_EQ(FindSchedule("pipedream").value()->weight_versions(shape, stage),
              PeakLiveMicrobatches(orders[static_cast<size_t>(stage)]));
  }
}

TEST(ClosedForm, DistirRunsTwiceAsFarAheadAsOneForwardOneBackward) {
  ForEachShape([](const PipelineShape& shape) {
    const StageOrders orders = OrdersOf("distir", shape);
    for (int32_t stage = 0; stage < shape.stages; ++stage) {
      int32_t warm_up = 0;
      for (const ScheduleStep& step : orders[static_cast<size_t>(stage)]) {
        if (step.kind == StepKind::kBackward) break;
        ++warm_up;
      }
      EXPECT_EQ(warm_up, std::min(2 * (shape.stages - stage) - 1, shape.microbatches));
    }
  });
}

// DistIR's own slots come from playing its rules; the earliest slots come from a longest path.
TEST(ClosedForm, DistirIsGreedySoThatItsTimestepsAreTheEarliestSlots) {
  ForEachShape([](const PipelineShape& shape) {
    const StageOrders orders = OrdersOf("distir", shape);
    StageOrders earliest = orders;
    AssignSlots(earliest);
    EXPECT_EQ(earliest, orders);
  });
}

}  // namespace
}  // namespace orrery::transforms
