#ifndef ORRERY_SEARCH_JOURNAL_MERGE_H_
#define ORRERY_SEARCH_JOURNAL_MERGE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/journal/journal.h"

// The journals of all parts of a search, as results of the whole.

namespace orrery::search {

/// A journal and where it stands.
struct NamedJournal {
  std::string path;
  JournalContents contents;
};

/// The results of all candidates of the search `question` over `plans`. InvalidArgument, which says
/// of which file, where a journal is of another question (what differs), two are of one part or of
/// searches in other numbers of parts, a part has no journal, or is not done.
absl::StatusOr<KnownResults> MergeJournals(std::span<const NamedJournal> journals,
                                           const Question& question, const PlansView& plans);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_JOURNAL_MERGE_H_
