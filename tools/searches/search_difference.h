#ifndef ORRERY_TOOLS_SEARCHES_SEARCH_DIFFERENCE_H_
#define ORRERY_TOOLS_SEARCHES_SEARCH_DIFFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "search/search_rows.h"
#include "search/settings/settings.h"

namespace orrery::tools {

/// InvalidArgument unless --diff names none or two candidates.
absl::Status CheckDifference(const std::vector<std::string>& diff);

/// Prints why the first of two candidates of a search is faster than the second; nothing where none
/// are asked for. Both are played.
absl::Status TellDifference(const std::vector<std::string>& diff, const search::Settings& settings,
                            const search::SearchRows& rows);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_SEARCH_DIFFERENCE_H_
