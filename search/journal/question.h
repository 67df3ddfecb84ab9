#ifndef ORRERY_SEARCH_JOURNAL_QUESTION_H_
#define ORRERY_SEARCH_JOURNAL_QUESTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/journal/part.h"

// What a search asks. Results of two processes are of one search where both asked the same: then
// either would have found what the other did.

namespace orrery::search {

/// One thing that results depend on.
struct Ingredient {
  std::string name;         // "--batch-size", "the training step"
  std::string text;         // as a person reads it: "512"
  std::string fingerprint;  // of what the text only names, as a file; empty: the text says all

  friend bool operator==(const Ingredient&, const Ingredient&) = default;
};

/// Everything that results depend on, and how many candidates there are.
struct Question {
  std::vector<Ingredient> ingredients;
  int64_t candidates = 0;

  friend bool operator==(const Question&, const Question&) = default;
};

/// What tells bytes from others: two checksums of zlib and their number, as text.
std::string Fingerprint(absl::string_view bytes);

/// "--batch-size is 512 there and 256 here; …", at most four; empty where the questions are one.
std::string Differences(const Question& there, const Question& here);

/// What stands at the beginning of a journal.
struct JournalHeader {
  Question question;
  Part part;
};

/// One line of JSON without its end.
std::string HeaderText(const JournalHeader& header);

/// Reads what HeaderText writes. InvalidArgument where it is no such text, or of a format that this
/// program does not know.
absl::StatusOr<JournalHeader> ParseHeader(absl::string_view text);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_JOURNAL_QUESTION_H_
