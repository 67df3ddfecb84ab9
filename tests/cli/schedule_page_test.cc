#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/steady_bubble.h"

// docs/schedules.md: its table is what the schedules do, and names all of them. ORRERY_BLESS=1
// rewrites it.

namespace orrery::cli {
namespace schedule_page_test_cc {
namespace {

using transforms::PipelineSchedule;
using transforms::PipelineShape;

const std::string kPage = SourceDir() + "/docs/schedules.md";
constexpr absl::string_view kHead =
    "| schedule | stages a rank | time | bubble | live on each rank | weights |\n"
    "|---|---|---|---|---|---|\n";

// "8", or "4 3 2 1" where ranks differ, in shares of a rank that holds one stage.
std::string Numbers(const std::vector<int64_t>& values, int64_t parts) {
  const bool equal = std::count(values.begin(), values.end(), values.front()) == std::ssize(values);
  std::vector<std::string> texts;
  for (const int64_t value : values) {
    texts.push_back(absl::StrFormat("%g", static_cast<double>(value) / static_cast<double>(parts)));
    if (equal) break;
  }
  return absl::StrJoin(texts, " ");
}

std::string Row(const PipelineSchedule& schedule) {
  const PipelineShape shape = schedule.ShapeOf(4, 8);
  const transforms::RankOrders orders = schedule.OrdersOf(shape);
  const transforms::Timing timing = TimeOrders(orders, schedule.placement, shape, shape.durations);
  std::vector<int64_t> live;
  std::vector<int64_t> weights;
  int64_t idle = 0;
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    live.push_back(transforms::PeakLive(orders[static_cast<size_t>(rank)]));
    weights.push_back(schedule.weight_versions(shape, rank) *
                      transforms::Pipelines(schedule.placement));
    idle += timing.idle[static_cast<size_t>(rank)];
  }
  const int64_t parts = shape.chunks / transforms::Pipelines(schedule.placement);
  if (schedule.asynchronous) {
    EXPECT_EQ(transforms::SteadyBubble(schedule, shape), 0.0);
  }
  const std::string bubble =
      schedule.asynchronous
          ? "none once full"
          : absl::StrFormat("%.1f %%", 100 * static_cast<double>(idle) /
                                           static_cast<double>(shape.ranks * timing.makespan));
  return absl::StrCat("| `", schedule.name, "` | ", shape.chunks, " | ",
                      Numbers({timing.makespan}, parts), " | ", bubble, " | ", Numbers(live, parts),
                      " | ", Numbers(weights, 1), " |\n");
}

TEST(SchedulesPage, ItsTableIsWhatTheSchedulesDo) {
  std::string table(kHead);
  for (const PipelineSchedule* schedule : transforms::AllSchedules()) table += Row(*schedule);
  const std::string page = ReadFile(kPage).value();
  const size_t begin = page.find(kHead.data(), 0, kHead.size());
  ASSERT_NE(begin, std::string::npos);
  const size_t end = page.find("\n\n", begin) + 1;
  const char* bless = std::getenv("ORRERY_BLESS");
  if (bless != nullptr && std::string(bless) == "1") {
    ASSERT_TRUE(
        WriteFile(kPage, absl::StrCat(page.substr(0, begin), table, page.substr(end))).ok());
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), table);
}

TEST(SchedulesPage, SaysWhatEachIsAndWhenToUseIt) {
  const std::string page = ReadFile(kPage).value();
  for (const PipelineSchedule* schedule : transforms::AllSchedules()) {
    EXPECT_THAT(page, testing::ContainsRegex(
                          absl::StrCat("\n- (`[a-z0-9-]+`, )*`", schedule->name, "`[:,]")))
        << schedule->name;
  }
}

}  // namespace
}  // namespace schedule_page_test_cc
}  // namespace orrery::cli
