#ifndef ORRERY_IR_NAMES_H_
#define ORRERY_IR_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

// How names and texts stand in the text form of the IR.

namespace orrery::ir {

/// Whether a name needs no quotes: letters, digits and _ . / $ ' -, not all digits, no `//` in
/// front.
bool IsPlainName(absl::string_view name);

/// `text` in double quotes, with \" \\ \n \t and \xNN escapes.
std::string Quote(absl::string_view text);

}  // namespace orrery::ir

#endif  // ORRERY_IR_NAMES_H_
