#ifndef ORRERY_TOOLS_REPORTS_SEARCH_REPORT_H_
#define ORRERY_TOOLS_REPORTS_SEARCH_REPORT_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "search/search.h"
#include "search/settings/settings.h"
#include "tools/reports/document.h"

// The report of a search: its table and charts, and runs of its best.

namespace orrery::tools {

/// Candidates that a report plays again, to show them: the fastest, and of the Pareto front the one
/// that needs the least memory, each once.
std::vector<const search::Result*> CandidatesToShow(const search::SearchRows& rows,
                                                    size_t fastest = 3);

/// Adds a search to a document, whose title it makes its own; of the second on, titles of sections
/// name it. Runs are played whole, with every link: as long as a candidate of the search takes, or
/// longer. An error where one cannot be played.
absl::Status AddSearch(search::Settings& settings, const search::SearchRows& rows,
                       Document& document);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_SEARCH_REPORT_H_
