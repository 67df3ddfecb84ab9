#ifndef ORRERY_SEARCH_VIEWS_DIFFERENCE_H_
#define ORRERY_SEARCH_VIEWS_DIFFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/evaluate.h"
#include "search/search_rows.h"
#include "search/settings/setting.h"
#include "search/views/step_summary.h"

// Why one candidate of a search is faster than another.

namespace orrery::search {

/// A step in the parts in which it can differ from another: kernels, what recomputation adds to
/// them, exposed communication by kind, bubble. They add up to the step.
struct DividedStep {
  ParallelPlan plan;
  Duration step_time;
  std::vector<NamedTime> parts;
  simulator::MemoryUse memory;  // of the rank that needs most, at its peak
};

/// Plays the plan, and where it recomputes also without that: what kernels take less then is the
/// part "recompute".
absl::StatusOr<DividedStep> Divide(const Setting& setting, const ParallelPlan& plan);

/// InvalidArgument where a text cannot name a candidate of any search: it is no place, and has not
/// values of axes alone.
absl::Status CheckCandidateName(absl::string_view text);

/// The candidate that a text names: its place among those that fit, the best by the goal is 1; or
/// values of axes, "dp=2 schedule=1f1b", of which the fastest with all of them counts.
/// InvalidArgument where there is none.
absl::StatusOr<const Result*> FindCandidate(const SearchRows& rows, absl::string_view text);

/// For people: how the step of `other` becomes that of `plan`, part by part, the largest change
/// first; what memory each needs for what; and the axes in which they differ. `first` and `second`
/// are how they are called.
std::string DifferenceText(const DividedStep& plan, const DividedStep& other,
                           absl::string_view first, absl::string_view second);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_DIFFERENCE_H_
