#ifndef ORRERY_SUPPORT_CSV_H_
#define ORRERY_SUPPORT_CSV_H_

#include <string>

#include "absl/strings/string_view.h"

// Fields of comma-separated values, as RFC 4180 has them.

namespace orrery {

/// `text` as a field: as it is, or as CsvQuoted has it where it holds a comma, a quote or a line
/// feed.
std::string CsvField(absl::string_view text);

/// `text` as a field in quotes, whatever it holds; each quote inside is written twice.
std::string CsvQuoted(absl::string_view text);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_CSV_H_
