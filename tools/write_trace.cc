#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simulator/report/chrome_trace.h"
#include "support/file.h"
#include "tools/flags.h"
#include "tools/reports/gzip.h"

namespace orrery::tools {

absl::Status WriteTrace(const search::Run& run, const std::string& path) {
  return WriteTrace(run.program, run.trace, run.link_use.has_value() ? &*run.link_use : nullptr,
                    path);
}

absl::Status WriteTrace(const simulator::Program& program, const simulator::Trace& trace,
                        const simulator::LinkUse* use, const std::string& path) {
  std::ostringstream text;
  simulator::WriteChromeTrace(program, trace, text, use);
  if (!absl::EndsWith(path, ".gz")) return WriteFile(path, text.str());
  if (text.str().size() >= (size_t{1} << 32)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the trace has more than 4 GiB; try fewer microbatches"));
  }
  const absl::StatusOr<std::string> packed = Gzip(text.str());
  return packed.ok() ? WriteFile(path, *packed) : packed.status();
}

}  // namespace orrery::tools
