#ifndef ORRERY_TOOLS_REPORTS_PAGE_H_
#define ORRERY_TOOLS_REPORTS_PAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/reports/document.h"

namespace orrery::tools {

/// The document as one HTML page, which opens from disk and asks nothing of the network: the code
/// that draws it, and DocumentJson, packed by gzip and spelled in base64. An error where it is of 4
/// GiB.
absl::StatusOr<std::string> HtmlPage(const Document& document);

/// Writes it, whole or not at all.
absl::Status WritePage(const Document& document, const std::string& path);

/// The words of a command line as a shell reads them, the program by its name alone.
std::string CommandText(int argc, const char* const* argv);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_PAGE_H_
