#ifndef ORRERY_TOOLS_REPORTS_PAGE_ASSETS_H_
#define ORRERY_TOOLS_REPORTS_PAGE_ASSETS_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace orrery::tools {

/// The files that a page is made of, as they lie in `tools/reports/page/` and `third_party/`: they
/// are a part of the program.
struct PageAssets {
  absl::string_view html;                  // with {{title}}, {{style}}, {{data}} and {{script}}
  std::vector<absl::string_view> styles;   // in their order
  std::vector<absl::string_view> scripts;  // likewise, libraries first
};

const PageAssets& AllPageAssets();

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_PAGE_ASSETS_H_
