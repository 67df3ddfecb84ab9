#ifndef ORRERY_TOOLS_SEARCHES_SEARCH_CHARTS_H_
#define ORRERY_TOOLS_SEARCHES_SEARCH_CHARTS_H_

#include <cstdint>
#include <string>

#include "search/search_rows.h"
#include "tools/terminal/terminal.h"

// What a search found as charts of text, for who sits at a terminal.

namespace orrery::tools {

/// A bar for each of the `top` fastest, at most 20: how long its step takes, and of that compute,
/// exposed communication and bubble. Empty where fewer than two are feasible.
std::string TimeBars(const search::SearchRows& rows, int64_t top, const Terminal& terminal);

/// Step time over peak memory of all that is feasible and was played, those marked of which none
/// other is both faster and smaller. Empty where fewer than two are feasible.
std::string FrontChart(const search::SearchRows& rows, const Terminal& terminal);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_SEARCH_CHARTS_H_
