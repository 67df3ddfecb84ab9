#ifndef ORRERY_TOOLS_REPORTS_SCHEDULE_VIEWS_H_
#define ORRERY_TOOLS_REPORTS_SCHEDULE_VIEWS_H_

#include <vector>

#include "tools/reports/view.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/schedule.h"

namespace orrery::tools {

/// A pipeline schedule in units of time: when each rank runs which step (of more than 50,000 the
/// first of each rank), and what ranks wait and hold.
std::vector<Section> ScheduleViews(const transforms::RankOrders& orders,
                                   const transforms::Timing& timing);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_SCHEDULE_VIEWS_H_
