#ifndef ORRERY_SUPPORT_PRINTABLE_H_
#define ORRERY_SUPPORT_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

// How errors show text that comes from a file or a command line, whatever its bytes.

namespace orrery {

/// `text` on one line of ASCII: other bytes as \xNN, and cut with "..." after 400.
std::string Printable(absl::string_view text);

/// `text` on one line of UTF-8: control characters, and bytes that are no UTF-8, as \xNN, and
/// " ... " for the middle where it is longer than 1000.
std::string OneLine(absl::string_view text);

/// `text` as one word of a command line of bash, on one line: quoted where it must be.
std::string ShellWord(absl::string_view text);

/// "'name'", printable.
std::string Show(absl::string_view name);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_PRINTABLE_H_
