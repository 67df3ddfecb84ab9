#include "tools/reports/schedule_views.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transforms/schedules/text.h"

namespace orrery::tools {
namespace schedule_views_cc {
namespace {

constexpr size_t kMostSlices = 50'000;

TimelineView TimelineOf(const transforms::RankOrders& orders, const transforms::Timing& timing) {
  TimelineView view{.title = "Steps, in units of time",
                    .unit = "",
                    .kinds = {"forward", "backward", "input gradient", "weight gradient"},
                    .end_s = static_cast<double>(timing.makespan),
                    .name = "timeline"};
  const size_t most = std::max<size_t>(1, kMostSlices / std::max<size_t>(1, orders.size()));
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    view.rows.push_back(absl::StrCat("rank ", rank));
    for (size_t i = 0; i < std::min(most, orders[rank].size()); ++i) {
      const transforms::ScheduleStep& step = orders[rank][i];
      const transforms::StepTime& time = timing.steps[rank][i];
      std::string name = transforms::StepName(step);
      // Two that run at once are one slice.
      const bool pair = step.with_next && i + 1 < orders[rank].size();
      if (pair) absl::StrAppend(&name, " & ", transforms::StepName(orders[rank][i + 1]));
      view.slices.push_back({.row = static_cast<int32_t>(rank),
                             .kind = static_cast<int32_t>(step.kind),
                             .start_s = static_cast<double>(time.start),
                             .end_s = static_cast<double>(time.finish),
                             .label = static_cast<int32_t>(view.labels.size())});
      view.labels.push_back(std::move(name));
      if (pair) ++i;
    }
  }
  DropUnusedKinds(view);
  double end = 0;
  for (const Slice& slice : view.slices) end = std::max(end, slice.end_s);
  view.end_s = std::min(view.end_s, end);
  return view;
}

TableView RanksTable(const transforms::RankOrders& orders, const transforms::Timing& timing) {
  TableView table{.title = "Ranks",
                  .columns = {{"rank"}, {"idle"}, {"idle inside"}, {"live activations, at most"}}};
  for (size_t rank = 0; rank < orders.size(); ++rank) {
    table.rows.push_back({static_cast<int64_t>(rank), timing.idle[rank], timing.idle_inside[rank],
                          transforms::PeakLive(orders[rank])});
  }
  return table;
}

}  // namespace
}  // namespace schedule_views_cc

std::vector<Section> ScheduleViews(const transforms::RankOrders& orders,
                                   const transforms::Timing& timing) {
  Section timeline{.id = "timeline", .title = "Timeline"};
  TimelineView view = schedule_views_cc::TimelineOf(orders, timing);
  if (view.end_s < static_cast<double>(timing.makespan)) {
    timeline.text.push_back(absl::StrCat("The first ", view.slices.size(),
                                         " steps are shown, up to ", view.end_s, " of ",
                                         timing.makespan, " units."));
  }
  timeline.views.emplace_back(std::move(view));
  return {std::move(timeline),
          {.id = "ranks",
           .title = "Ranks",
           .text = {absl::StrCat("The last step has finished after ", timing.makespan, " units.")},
           .views = {schedule_views_cc::RanksTable(orders, timing)}}};
}

}  // namespace orrery::tools
