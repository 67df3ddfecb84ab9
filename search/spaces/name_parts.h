#ifndef ORRERY_SEARCH_SPACES_NAME_PARTS_H_
#define ORRERY_SEARCH_SPACES_NAME_PARTS_H_

#include <re2/re2.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

// Names of values as patterns of plans have them.

namespace orrery::search {

/// What stands between parts of names: "h.3.mlp.up", "/blocks.0/c_attn/MatMul_output_0".
inline constexpr char kNameSeparators[] = "./:_";

/// A regular expression that finds the text, and has no ; which parts groups of placements.
inline std::string QuotedName(absl::string_view text) {
  return absl::StrReplaceAll(RE2::QuoteMeta({text.data(), text.size()}), {{"\\;", "\\x3b"}});
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_NAME_PARTS_H_
