#include "tools/reports/search_report.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/details.h"
#include "search/pruning.h"
#include "support/status.h"
#include "tools/reports/run_views.h"
#include "tools/reports/search_views.h"

namespace orrery::tools {
namespace search_report_cc {
namespace {

using MakeSearchSection = Section (*)(const search::Setting&, const search::SearchRows&);

// Says which of several searches sections are of.
void NameSections(const std::string& search, size_t number, std::span<Section> sections) {
  for (Section& section : sections) {
    absl::StrAppend(&section.title, ": ", search);
    absl::StrAppend(&section.id, "-", number);
  }
}

absl::StatusOr<RunDocument> PlayAndShow(search::Setting& setting, const search::Result& result,
                                        const std::string& name) {
  const bool every_link = std::exchange(setting.lowering.every_link, true);
  const absl::StatusOr<search::Run> played = search::Play(setting, result.plan);
  setting.lowering.every_link = every_link;  // others play as they would have
  ORRERY_RETURN_IF_ERROR(played.status());
  const search::Run& run = *played;
  ORRERY_ASSIGN_OR_RETURN(const simulator::ReportDetails details,
                          search::DetailsOf(setting, result.plan, run));
  return RunViews({setting, result.plan, run, details}, name);
}

}  // namespace
}  // namespace search_report_cc

std::vector<const search::Result*> CandidatesToShow(const search::SearchRows& rows,
                                                    size_t fastest) {
  std::vector<const search::Result*> shown = Ranked(rows);
  if (shown.empty()) return shown;
  if (shown.size() > fastest) shown.resize(fastest);
  const std::vector<const search::Result*> front = ParetoFront(rows.played());
  const auto least = std::ranges::min_element(front, {}, &search::Result::peak_memory);
  if (least != front.end() && std::ranges::find(shown, *least) == shown.end()) {
    shown.push_back(*least);
  }
  return shown;
}

absl::Status AddSearch(search::Settings& settings, const search::SearchRows& rows,
                       Document& document) {
  const search::Setting& setting = settings.front();
  SearchDocument search = SearchTable(setting, rows);
  if (document.searches.size() == 1) {
    search_report_cc::NameSections(document.searches.front().title, 1, document.sections);
  }
  const size_t first = document.sections.size();
  document.title = document.searches.empty() ? search.title : "Several searches";
  const std::vector<std::string>& warnings = setting.notes.warnings;
  document.notes.insert(document.notes.end(), warnings.begin(), warnings.end());
  const std::string assumed = cost_models::DoubtAbout(*setting.cost_model, setting.cluster);
  if (!assumed.empty()) document.notes.push_back(absl::StrCat("assumed: ", assumed));
  constexpr search_report_cc::MakeSearchSection kSections[] = {CountsSection, DegreesSection,
                                                               FrontSection, WorthSection};
  for (const auto make : kSections) {
    Section section = make(setting, rows);
    if (section.views.empty()) continue;
    document.sections.push_back(std::move(section));
  }
  if (!document.searches.empty()) {
    search_report_cc::NameSections(search.title, document.searches.size() + 1,
                                   std::span(document.sections).subspan(first));
  }
  const std::vector<const search::Result*> ranked = Ranked(rows);
  for (const search::Result* result : CandidatesToShow(rows)) {
    const auto place = static_cast<size_t>(std::ranges::find(ranked, result) - ranked.begin());
    const std::string name = absl::StrCat("no. ", place + 1);
    ORRERY_ASSIGN_OR_RETURN(
        RunDocument run, search_report_cc::PlayAndShow(settings.Of(result->plan), *result, name));
    if (place < search.ranked.size()) run.row = search.ranked[place];
    search.runs.push_back(std::move(run));
  }
  document.searches.push_back(std::move(search));
  return absl::OkStatus();
}

}  // namespace orrery::tools
