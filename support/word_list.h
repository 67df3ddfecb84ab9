#ifndef ORRERY_SUPPORT_WORD_LIST_H_
#define ORRERY_SUPPORT_WORD_LIST_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace orrery {

/// The words as a sentence lists them, with `last` before the last one: "a, b or c" with " or ".
std::string ListWords(std::span<const absl::string_view> words, absl::string_view last);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_WORD_LIST_H_
