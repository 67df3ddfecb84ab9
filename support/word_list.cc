#include "support/word_list.h"

#include "absl/strings/str_cat.h"

namespace orrery {

std::string ListWords(std::span<const absl::string_view> words, absl::string_view last) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    const absl::string_view before = i == 0 ? "" : i + 1 == words.size() ? last : ", ";
    absl::StrAppend(&list, before, words[i]);
  }
  return list;
}

}  // namespace orrery
