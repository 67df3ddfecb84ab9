#ifndef ORRERY_TOOLS_REPORTS_SEARCH_VIEWS_H_
#define ORRERY_TOOLS_REPORTS_SEARCH_VIEWS_H_

#include <cstddef>
#include <vector>

#include "search/search.h"
#include "tools/reports/document.h"

// What a search looks like.

namespace orrery::tools {

/// Rows that a page holds at most.
inline constexpr size_t kMostCandidates = 100'000;

/// The candidates of a search by columns, those of its CSV: all, or of more than `most` the
/// feasible ones first, best first, and then the others as far as they go; without runs.
SearchDocument SearchTable(const search::Setting& setting, const search::SearchRows& rows,
                           size_t most = kMostCandidates);

/// Throughput over degrees: a panel a degree of data parallelism, a line a number of microbatches,
/// of each point the best of all other axes. Empty where nothing is feasible.
Section DegreesSection(const search::Setting& setting, const search::SearchRows& rows);

/// The Pareto front over time, memory and devices, with prices where there are any.
Section FrontSection(const search::Setting& setting, const search::SearchRows& rows);

/// What each axis is worth: of each of its values the best candidate that has it.
Section WorthSection(const search::Setting& setting, const search::SearchRows& rows);

/// How many candidates there are of which kind, and why those that are infeasible are.
Section CountsSection(const search::Setting& setting, const search::SearchRows& rows);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_SEARCH_VIEWS_H_
