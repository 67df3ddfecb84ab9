#include "tools/reports/schedule_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace orrery::tools {
namespace schedule_views_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Section> ViewsOf(int32_t ranks, int32_t microbatches, int64_t& makespan) {
  const transforms::PipelineSchedule& schedule = *transforms::FindSchedule("1f1b").value();
  const transforms::PipelineShape shape = schedule.ShapeOf(ranks, microbatches);
  const transforms::RankOrders orders = schedule.OrdersOf(shape);
  const transforms::Timing timing = TimeOrders(orders, schedule.placement, shape, shape.durations);
  makespan = timing.makespan;
  return ScheduleViews(orders, timing);
}

TEST(ScheduleViews, HaveEachStep) {
  int64_t makespan = 0;
  const std::vector<Section> sections = ViewsOf(4, 8, makespan);
  const auto view = std::get<TimelineView>(sections[0].views[0]);
  EXPECT_EQ(view.slices.size(), 4u * 8 * 2);
  EXPECT_THAT(view.kinds, ElementsAre("forward", "backward"));
  EXPECT_EQ(view.end_s, static_cast<double>(makespan));
  EXPECT_EQ(view.unit, "");
  EXPECT_TRUE(sections[0].text.empty());
}

// Blank time would read as idle ranks.
TEST(ScheduleViews, SayWhereTheyEnd) {
  int64_t makespan = 0;
  const std::vector<Section> sections = ViewsOf(64, 2000, makespan);
  const auto view = std::get<TimelineView>(sections[0].views[0]);
  EXPECT_LT(view.end_s, static_cast<double>(makespan));
  double last = 0;
  for (const Slice& slice : view.slices) last = std::max(last, slice.end_s);
  EXPECT_EQ(view.end_s, last);
  EXPECT_THAT(sections[0].text, ElementsAre(HasSubstr("steps are shown, up to")));
}

}  // namespace
}  // namespace schedule_views_test_cc
}  // namespace orrery::tools
