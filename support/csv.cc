#include "support/csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace orrery {

std::string CsvField(absl::string_view text) {
  const bool plain = text.find_first_of(",\"\n") == absl::string_view::npos;
  return plain ? std::string(text) : CsvQuoted(text);
}

std::string CsvQuoted(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace orrery
