#ifndef ORRERY_SUPPORT_NAMES_NEAR_NAMES_H_
#define ORRERY_SUPPORT_NAMES_NEAR_NAMES_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// What somebody meant who wrote a name that there is not.

namespace orrery {

/// The fewest letters to leave out, put in, change, or swap with the next one, that make `b` of
/// `a`; no letter is touched twice (optimal string alignment).
size_t Slips(absl::string_view a, absl::string_view b);

/// Those of `names` that `name` is likely to mean, in their order: the ones with the fewest slips,
/// at most one in three letters and three in all; else those that begin with `name`. None where
/// that would be more than three: then it is not clear which is meant. Large letters are as good as
/// small ones, and '_' as '-'.
std::vector<absl::string_view> NearNames(absl::string_view name,
                                         std::span<const absl::string_view> names);

/// "a", "a or b", "a, b or c". Requires a name.
std::string Choices(std::span<const absl::string_view> names);

/// For an error, what is wanted in place of `name`. Where names are near, those and the flag that
/// lists all: "did you mean zb-h1 or zb-h2? `list-schedules` names all". Else all: "wanted one of
/// gpipe, 1f1b, zb-h1", or `all` where that says it. An empty `lister`: there is no such flag, as
/// of few names, and all are named either way.
std::string WantedNames(absl::string_view name, std::span<const absl::string_view> names,
                        absl::string_view lister, absl::string_view all = "");

}  // namespace orrery

#endif  // ORRERY_SUPPORT_NAMES_NEAR_NAMES_H_
