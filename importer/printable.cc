#include "importer/printable.h"

#include "absl/strings/str_cat.h"

namespace orrery::importer {

std::string Printable(absl::string_view text) {
  constexpr size_t kLongest = 400;
  std::string printable;
  for (const char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7f) {
      printable += c;
    } else {
      absl::StrAppend(&printable, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return text.size() > kLongest ? printable + "..." : printable;
}

std::string Show(absl::string_view name) { return absl::StrCat("'", Printable(name), "'"); }

}  // namespace orrery::importer
