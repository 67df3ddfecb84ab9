#ifndef ORRERY_TOOLS_REPORTS_GZIP_H_
#define ORRERY_TOOLS_REPORTS_GZIP_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery::tools {

/// `text` as one gzip member; the header has no time, so that the same text gives the same bytes.
/// InvalidArgument from 4 GiB on.
absl::StatusOr<std::string> Gzip(absl::string_view text);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_GZIP_H_
