#ifndef ORRERY_TOOLS_SEARCHES_SEARCH_FILES_H_
#define ORRERY_TOOLS_SEARCHES_SEARCH_FILES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "search/search.h"
#include "search/settings/settings.h"
#include "support/file.h"
#include "tools/reports/document.h"
#include "tools/reports/search_plots.h"

namespace orrery::tools {

/// Where a search is written to; empty: nowhere.
struct SearchFileFlags {
  std::string csv = {}, json = {}, report = {};
  std::vector<std::string> plot = {};
  std::string command = {};  // that the report tells
  size_t threads = 1;        // that write
};

/// The files of one search, or of several one after another.
class SearchFiles {
 public:
  /// `plots`: what ReadSearchPlots makes of the flag.
  SearchFiles(SearchFileFlags flags, std::vector<PlotFile> plots)
      : flags_(std::move(flags)), plots_(std::move(plots)) {}

  /// Adds a search that is done, or a part of one. For a report some of its candidates are played
  /// again. What goes wrong, Write tells. Tables of millions of rows are not held, but written at
  /// once, and are there when Write has returned; but those that go where others may write
  /// meanwhile, as to standard output.
  void Add(search::Settings& settings, const search::SearchRows& rows, bool is_part);
  /// Writes all that was added: tables first, so that no report takes them along. Warns on standard
  /// error where plots leave out candidates.
  absl::Status Write();

 private:
  // One that is written as it grows.
  struct Table {
    std::unique_ptr<FileWriter> file;  // once there is something to write
    std::string held;                  // where others may write: all of it

    absl::Status Write(absl::string_view piece);
    absl::Status Finish();
  };
  absl::Status AddTables(const search::Setting& setting, const search::SearchRows& rows);
  absl::Status WriteTables();

  const SearchFileFlags flags_;
  Table csv_, json_;
  absl::Status tables_;  // of what was written to them
  Document document_;
  SearchPlots plots_;
  absl::Status report_;  // of what was added to it
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_SEARCH_FILES_H_
