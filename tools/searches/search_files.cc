#include "tools/searches/search_files.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "search/memory_fit.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/reports/page.h"
#include "tools/reports/search_report.h"

namespace orrery::tools {

absl::Status SearchFiles::Table::Write(absl::string_view piece) {
  if (!file->is_shared()) return file->Write(piece);
  absl::StrAppend(&held, piece);
  return absl::OkStatus();
}

absl::Status SearchFiles::Table::Finish() {
  if (!held.empty()) ORRERY_RETURN_IF_ERROR(file->Write(std::exchange(held, {})));
  return file->Finish();
}

void SearchFiles::Add(search::Settings& settings, const search::SearchRows& rows, bool is_part) {
  const search::Setting& setting = settings.front();
  if (tables_.ok()) tables_ = AddTables(setting, rows);
  if (!flags_.report.empty()) {
    report_.Update(AddSearch(settings, rows, document_));
    if (is_part) document_.notes.push_back("this is a part of the search");
    const bool none = Ranked(rows).empty() && !rows.empty() && !is_part;
    if (none) document_.notes.push_back(search::ClosestMisfit(settings.AsFunction(), rows));
  }
  plots_.Add(setting, rows);
}

absl::Status SearchFiles::AddTables(const search::Setting& setting,
                                    const search::SearchRows& rows) {
  const auto add = [&](const std::string& path, Table& table,
                       const auto& write_rows) -> absl::Status {
    if (path.empty()) return absl::OkStatus();
    const bool is_first = table.file == nullptr;
    if (is_first) {
      ORRERY_ASSIGN_OR_RETURN(table.file, FileWriter::Open(path));
    }
    return write_rows(setting, rows,
                      search::PiecesOptions{.is_first = is_first, .threads = flags_.threads},
                      [&](absl::string_view piece) { return table.Write(piece); });
  };
  ORRERY_RETURN_IF_ERROR(add(flags_.csv, csv_, search::WriteResultsCsv));
  // A list begins with its first row.
  return rows.empty() ? absl::OkStatus() : add(flags_.json, json_, search::WriteResultsJson);
}

// Those that nothing was added to have no rows.
absl::Status SearchFiles::WriteTables() {
  ORRERY_RETURN_IF_ERROR(tables_);
  if (csv_.file != nullptr) {
    ORRERY_RETURN_IF_ERROR(csv_.Finish());
  } else if (!flags_.csv.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags_.csv, ""));
  }
  if (json_.file == nullptr)
    return flags_.json.empty() ? absl::OkStatus() : WriteFile(flags_.json, "[]\n");
  ORRERY_RETURN_IF_ERROR(json_.Write(search::kEndOfJson));
  return json_.Finish();
}

absl::Status SearchFiles::Write() {
  ORRERY_RETURN_IF_ERROR(WriteTables());
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
