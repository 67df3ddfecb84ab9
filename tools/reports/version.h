#ifndef ORRERY_TOOLS_REPORTS_VERSION_H_
#define ORRERY_TOOLS_REPORTS_VERSION_H_

#include "absl/strings/string_view.h"

namespace orrery::tools {

/// The version of Orrery, as "0.1.0".
absl::string_view Version();

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_VERSION_H_
