#ifndef ORRERY_TOOLS_SEARCH_FILES_H_
#define ORRERY_TOOLS_SEARCH_FILES_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "search/search.h"
#include "search/settings/settings.h"
#include "tools/reports/document.h"

namespace orrery::tools {

/// Where a search is written to; empty: nowhere.
struct SearchFileFlags {
  std::string csv, json, report, plot;
  std::string command = {};  // that the report tells
};

/// What is wrong with them before there is anything to write.
absl::Status CheckSearchFiles(const SearchFileFlags& flags);

/// The files of one search, or of several one after another.
class SearchFiles {
 public:
  explicit SearchFiles(SearchFileFlags flags) : flags_(std::move(flags)) {}

  /// Adds a search that is done. For a report some of its candidates are played again.
  absl::Status Add(search::Settings& settings, const search::SearchRows& rows);
  /// Writes all that was added.
  absl::Status Write();

 private:
  const SearchFileFlags flags_;
  std::string csv_, json_;
  Document document_;
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCH_FILES_H_
