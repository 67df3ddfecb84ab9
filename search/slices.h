#ifndef ORRERY_SEARCH_SLICES_H_
#define ORRERY_SEARCH_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/settings/setting.h"
#include "transforms/parallel.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {

/// Infeasible where microbatches are slices, so many of a step of `ops` ops, and too many to be
/// simulated (transforms::CheckSliceCount).
absl::Status CheckSliceCount(const transforms::PipelineSchedule& schedule, int64_t microbatches,
                             int64_t ops);

/// "16 of 128 positions", or where they differ "1024,640,384 positions".
std::string SlicesText(const std::vector<transforms::SliceRange>& slices);

/// How a plan is parallelized, before it is cut.
struct SliceQuestion {
  const Setting& setting;
  const transforms::PipelineSchedule& schedule;
  const ParallelPlan& plan;
  const transforms::PlanContext& context;
};

/// The slices that its microbatches are: as many as it has of them, as long as it wants
/// them. None where the schedule cuts the batch, or where there is one microbatch and no list of
/// lengths. Infeasible where the sequence cannot be cut so, or the step not be parallelized.
///
/// Balanced: transforms::PlanSlices by what each stage takes (SliceTimes), in units of which the
/// sequence has 256 at most, of 8 positions or a multiple where it divides so; equal slices where
/// these are not slower.
absl::StatusOr<std::vector<transforms::SliceRange>> SlicesOf(const SliceQuestion& question);

/// What is to be played to find the fastest: those, and where they are balanced equal ones, too, if
/// the sequence divides so and they are others. What stages take is known for a few lengths only.
absl::StatusOr<std::vector<std::vector<transforms::SliceRange>>> SlicesToPlay(
    const SliceQuestion& question);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SLICES_H_
