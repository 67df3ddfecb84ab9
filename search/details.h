#ifndef ORRERY_SEARCH_DETAILS_H_
#define ORRERY_SEARCH_DETAILS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "search/evaluate.h"
#include "simulator/report/report_details.h"

namespace orrery::search {

/// What a report of one candidate says beyond the figures of a search: where the bubble comes from,
/// memory over time, what prices of the device only assume, and of an asynchronous schedule how
/// stale the gradients of each stage are and how many versions of its weights are kept. An error
/// where ScheduleOf has one.
absl::StatusOr<simulator::ReportDetails> DetailsOf(const Setting& setting, const ParallelPlan& plan,
                                                   const Run& run);

/// How much of the model each stage is; none where there is one stage.
std::vector<simulator::StageSize> SizesOf(const transforms::PipelinedStep& step);

/// The versions of the weights, of the orders that `run` played; none of a synchronous schedule.
std::vector<simulator::StageVersions> VersionsOf(const transforms::PipelineSchedule& schedule,
                                                 const transforms::PipelineShape& shape,
                                                 const Run& run);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_DETAILS_H_
