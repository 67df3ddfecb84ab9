#include "ir/names.h"

#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace orrery::ir {
namespace names_cc {
namespace {

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' ||
         c == '$' || c == '\'' || c == '-';
}

}  // namespace
}  // namespace names_cc

bool IsPlainName(absl::string_view name) {
  if (absl::StartsWith(name, "//")) return false;  // a comment, where no '%' stands before it
  bool digits_only = true;
  for (const char c : name) {
    if (!names_cc::IsNameCharacter(c)) return false;
    digits_only = digits_only && std::isdigit(static_cast<unsigned char>(c)) != 0;
  }
  return !digits_only;
}

std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (c == '\n') {
      absl::StrAppend(&quoted, "\\n");
    } else if (c == '\t') {
      absl::StrAppend(&quoted, "\\t");
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&quoted, absl::StrFormat("\\x%02x", byte));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace orrery::ir
