#include "tools/searches/search_files.h"

#include <iostream>

#include "absl/strings/string_view.h"
#include "search/memory_fit.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/reports/page.h"
#include "tools/reports/search_report.h"
#include "tools/search_lists.h"

namespace orrery::tools {

void SearchFiles::Add(search::Settings& settings, const search::SearchRows& rows, bool is_part) {
  const search::Setting& setting = settings.front();
  if (!flags_.csv.empty() && csv_written_.ok()) csv_written_ = AddCsv(setting, rows);
  if (!flags_.json.empty()) AppendJsonList(search::ResultsJson(setting, rows), json_);
  if (!flags_.report.empty()) {
    report_.Update(AddSearch(settings, rows, document_));
    if (is_part) document_.notes.push_back("this is a part of the search");
    const bool none = Ranked(rows).empty() && !rows.empty() && !is_part;
    if (none) document_.notes.push_back(search::ClosestMisfit(settings.AsFunction(), rows));
  }
  plots_.Add(setting, rows);
}

absl::Status SearchFiles::AddCsv(const search::Setting& setting, const search::SearchRows& rows) {
  const bool is_first = csv_ == nullptr;
  if (is_first) {
    ORRERY_ASSIGN_OR_RETURN(csv_, FileWriter::Open(flags_.csv));
  }
  return search::WriteResultsCsv(setting, rows,
                                 {.with_header = is_first, .threads = flags_.threads},
                                 [this](absl::string_view piece) { return csv_->Write(piece); });
}

absl::Status SearchFiles::Write() {
  ORRERY_RETURN_IF_ERROR(csv_written_);
  if (csv_ != nullptr) {
    ORRERY_RETURN_IF_ERROR(csv_->Finish());
  } else if (!flags_.csv.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags_.csv, ""));
  }
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
