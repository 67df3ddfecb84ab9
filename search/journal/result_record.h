#ifndef ORRERY_SEARCH_JOURNAL_RESULT_RECORD_H_
#define ORRERY_SEARCH_JOURNAL_RESULT_RECORD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/evaluate.h"
#include "search/spaces/plan_list.h"

// What a search found out about one candidate, as one line of text that reads back as the same
// results, to the bit.

namespace orrery::search {

/// A candidate that is done: its own result first, then those of what was tried in its place.
struct CandidateResults {
  size_t candidate = 0;  // its place among the plans of the search
  std::vector<Result> results;
};

/// One line of JSON without its end. A field of a result is left out where it has its default, and
/// an axis of a plan where it is as in `plan`, that of the candidate. Doubles are written in the
/// fewest digits that read back as the same.
std::string RecordText(const CandidateResults& done, const ParallelPlan& plan);

/// Reads what RecordText writes; `plans` are all of the search. InvalidArgument where it is not of
/// one of them, or no such text.
absl::StatusOr<CandidateResults> ParseRecord(absl::string_view text, const PlansView& plans);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_JOURNAL_RESULT_RECORD_H_
