#ifndef ORRERY_SUPPORT_FLAG_NAMES_H_
#define ORRERY_SUPPORT_FLAG_NAMES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace orrery {

/// The text with each name between backticks that `is_flag` knows written as a flag: "try fewer
/// `chunks`" becomes "try fewer --chunks". The library's messages name so what a caller can choose;
/// programs print them so.
std::string SpellFlags(absl::string_view text,
                       absl::FunctionRef<bool(absl::string_view name)> is_flag);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_FLAG_NAMES_H_
