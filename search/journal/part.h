#ifndef ORRERY_SEARCH_JOURNAL_PART_H_
#define ORRERY_SEARCH_JOURNAL_PART_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A search that is shared out to processes that do not talk to each other: who does what follows
// from its place among all candidates alone.

namespace orrery::search {

/// The `index`-th of `count` parts, from 1.
struct Part {
  int64_t index = 1;
  int64_t count = 1;

  bool is_whole() const { return count == 1; }
  friend bool operator==(const Part&, const Part&) = default;
};

/// Reads "2/3"; InvalidArgument says what was found and wanted.
absl::StatusOr<Part> ParsePart(absl::string_view text);

/// "2/3".
std::string ToString(const Part& part);

/// Whether the candidate is of the part. Candidates are dealt out in rounds: of each `count` that
/// follow each other every part gets one, and rounds begin at another part each, so that no part
/// gets all that have one value of an axis, as it would by the remainder of their places.
bool Has(const Part& part, size_t candidate);

/// The places of the candidates of the part among `candidates`, in their order.
std::vector<size_t> CandidatesOf(const Part& part, size_t candidates);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_JOURNAL_PART_H_
