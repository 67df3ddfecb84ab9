#include "support/flag_names.h"

#include "absl/strings/str_cat.h"

namespace orrery {

std::string SpellFlags(absl::string_view text,
                       absl::FunctionRef<bool(absl::string_view name)> is_flag) {
  std::string spelled;
  while (true) {
    const size_t open = text.find('`');
    const size_t close = open == text.npos ? text.npos : text.find('`', open + 1);
    if (close == text.npos) return absl::StrCat(spelled, text);
    const absl::string_view name = text.substr(open + 1, close - open - 1);
    // The second backtick of what is no flag may be the first of one.
    const bool flag = !name.empty() && is_flag(name);
    const size_t taken = flag ? close + 1 : close;
    absl::StrAppend(&spelled, text.substr(0, open), flag ? "--" : "`", name);
    text.remove_prefix(taken);
  }
}

}  // namespace orrery
