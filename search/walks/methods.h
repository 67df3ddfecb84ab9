#ifndef ORRERY_SEARCH_WALKS_METHODS_H_
#define ORRERY_SEARCH_WALKS_METHODS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/walks/walk.h"

// The methods by which a search plays some of its candidates, and how much it may play.

namespace orrery::search {

/// What a search takes where nobody says: of all candidates, and of some.
extern const MethodInfo kExhaustiveMethod, kBeamMethod;

/// How a search goes through its candidates; never null.
using Method = const MethodInfo*;

/// All of them, in the order of methods.def.
std::span<const Method> AllMethods();

/// "exhaustive, beam, … or reinforce".
std::string MethodsText();

/// The method of that name.
absl::StatusOr<Method> ParseMethod(absl::string_view text);

/// How much a search may play: until the seconds are over, or so many candidates have been played;
/// what is 0 sets no limit.
struct SearchBudget {
  double seconds = 0;
  int64_t candidates = 0;

  bool is_limited() const { return seconds > 0 || candidates > 0; }
  friend bool operator==(const SearchBudget&, const SearchBudget&) = default;
};

/// Reads "60s", "10min", "2h", or a number of candidates, "500"; InvalidArgument says what was
/// found and wanted.
absl::StatusOr<SearchBudget> ParseBudget(absl::string_view text);
/// What ParseBudget reads.
std::string ToString(const SearchBudget& budget);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_METHODS_H_
