#include "tools/searches/search_files.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "search/memory_fit.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/reports/page.h"
#include "tools/reports/search_report.h"
#include "tools/search_lists.h"

namespace orrery::tools {

void SearchFiles::Add(search::Settings& settings, const search::SearchRows& rows, bool is_part) {
  const search::Setting& setting = settings.front();
  if (!flags_.csv.empty()) {
    const std::string csv = search::ResultsCsv(setting, rows);
    const size_t begin = csv_.empty() ? 0 : csv.find('\n') + 1;  // behind the header
    absl::StrAppend(&csv_, absl::string_view(csv).substr(begin));
  }
  if (!flags_.json.empty()) AppendJsonList(search::ResultsJson(setting, rows), json_);
  if (!flags_.report.empty()) {
    report_.Update(AddSearch(settings, rows, document_));
    if (is_part) document_.notes.push_back("this is a part of the search");
    const bool none = Ranked(rows).empty() && !rows.empty() && !is_part;
    if (none) document_.notes.push_back(search::ClosestMisfit(settings.AsFunction(), rows));
  }
  plots_.Add(setting, rows);
}

absl::Status SearchFiles::Write() {
  if (!flags_.csv.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags_.csv, csv_));
  if (!flags_.json.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags_.json, json_));
  ORRERY_RETURN_IF_ERROR(report_);
  if (!flags_.report.empty()) {
    document_.program = "grid_search";
    document_.command = flags_.command;
    ORRERY_RETURN_IF_ERROR(WritePage(document_, flags_.report));
  }
  if (const std::string warning = plots_.Warning(); !warning.empty()) {
    std::cerr << warning << "\n";
  }
  return plots_.Write();
}

}  // namespace orrery::tools
