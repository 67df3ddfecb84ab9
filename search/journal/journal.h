#ifndef ORRERY_SEARCH_JOURNAL_JOURNAL_H_
#define ORRERY_SEARCH_JOURNAL_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "search/journal/question.h"
#include "search/journal/result_record.h"
#include "search/search.h"

// A file that a search appends a line to for each candidate that is done, so that a search that is
// killed goes on where it was. Each line begins with its checksum; the first one tells the
// question.
//
//   5f8e1d02 {"orrery_journal":1,"part":"1/1","candidates":224,"question":[…]}
//   91a3c077 {"candidate":3,"results":[{"ran":true,…}]}
//
// A line is one write(), so that who is killed leaves whole lines and at most the beginning of one
// behind them, which the next to open the journal cuts off. A line that was damaged later is passed
// over, and its candidate done again.

namespace orrery::search {

/// What a journal holds.
struct JournalContents {
  JournalHeader header;
  std::vector<std::string> records;  // lines of candidates, without checksums
  int64_t damaged = 0;               // lines whose checksum is another
  size_t whole = 0;                  // bytes up to the end of the last whole line
};

/// Reads the text of a journal. InvalidArgument where its first line is none of a journal.
absl::StatusOr<JournalContents> ParseJournal(absl::string_view text);

/// The same of a file; errors name it.
absl::StatusOr<JournalContents> ReadJournal(const std::string& path);

/// The results that the records tell; InvalidArgument where one is none of the part of the search
/// over `plans`. A candidate that was done twice counts once.
absl::StatusOr<KnownResults> ResultsOf(const JournalContents& contents, const PlansView& plans);

/// A journal that is being written, by this process alone.
class Journal {
 public:
  /// Opens the journal `path` of this question and part, or begins it where there is no such file,
  /// or an empty one. Errors: a file that is no journal (it stays as it is), a journal of another
  /// question or part (they say what differs), one that another process writes.
  static absl::StatusOr<Journal> Open(const std::string& path, const JournalHeader& header);

  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// What it held when it was opened.
  const JournalContents& contents() const { return contents_; }

  /// Adds a line. Once one cannot be written, no other is: what stands there stays readable.
  absl::Status Append(const std::string& record);

 private:
  Journal(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  int file_ = -1;
  JournalContents contents_;
  absl::Status failed_;  // of the first line that could not be written
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_JOURNAL_JOURNAL_H_
