#include "tools/reports/version.h"

namespace orrery::tools {

absl::string_view Version() { return ORRERY_VERSION; }

}  // namespace orrery::tools
