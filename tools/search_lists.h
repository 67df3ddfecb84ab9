#ifndef ORRERY_TOOLS_SEARCH_LISTS_H_
#define ORRERY_TOOLS_SEARCH_LISTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What grid_search is asked of several models, batch sizes and clusters at once.

namespace orrery::tools {

/// Names of models, or of clusters, with commas between. A part that goes on with the one before,
/// as the keys of mlp:layers=64,dim=8192 and ring:8@50GB/s,one-way do, is part of it: another
/// begins with a word and a colon, with a file that is there, or, where `plain`, with any word that
/// is no key.
std::vector<std::string> SplitNames(absl::string_view text, bool plain);

/// "256,512": numbers of at least 1, each once. InvalidArgument says what was found.
absl::StatusOr<std::vector<int64_t>> ParseBatchSizes(absl::string_view text);

/// "2.5" or "2.5,1.1": what a device of each of the clusters costs an hour; one number is of all of
/// them. Empty: 0 each, nobody says. InvalidArgument says what was found and wanted.
absl::StatusOr<std::vector<double>> ParsePrices(absl::string_view text, size_t clusters);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCH_LISTS_H_
