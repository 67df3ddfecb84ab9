#ifndef ORRERY_SEARCH_SLICES_H_
#define ORRERY_SEARCH_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/evaluate.h"
#include "transforms/parallel.h"
#include "transforms/schedules/schedule.h"

namespace orrery::search {

/// "equal", "balanced", or the positions of each slice: "1024,640,384".
absl::StatusOr<SliceLengths> ParseSliceLengths(absl::string_view text);

/// Whether a schedule's microbatches are slices of the sequence; not where there is no such one.
bool SlicesSequence(absl::string_view schedule);

/// The same for a search over such schedules; an error where none of them slices sequences, unless
/// `text` is empty.
absl::StatusOr<SliceLengths> ReadSlices(absl::string_view text,
                                        const std::vector<std::string>& schedules);

/// Infeasible where microbatches are slices, so many of a step of `ops` ops, and too many to be
/// simulated (transforms::CheckSliceCount).
absl::Status CheckSliceCount(const transforms::PipelineSchedule& schedule, int64_t microbatches,
                             int64_t ops);

/// "16 of 128 positions", or where they differ "1024,640,384 positions".
std::string SlicesText(const std::vector<transforms::SliceRange>& slices);

/// How a candidate is spread, before it is cut.
struct SliceQuestion {
  const Setting& setting;
  const transforms::PipelineSchedule& schedule;
  const transforms::ParallelDegrees& degrees;
  const transforms::SpreadOptions& options;
};

/// The slices that its microbatches are: as many as it has of them, as long as the setting wants
/// them. None where the schedule cuts the batch, or where there is one microbatch and no list of
/// lengths. Infeasible where the sequence cannot be cut so, or the step not be spread.
///
/// Balanced: transforms::PlanSlices by what each stage takes (SliceTimes), in units of which the
/// sequence has 256 at most, of 8 positions or a multiple where it divides so; equal slices where
/// these are not slower.
absl::StatusOr<std::vector<transforms::SliceRange>> SlicesOf(const SliceQuestion& question);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SLICES_H_
