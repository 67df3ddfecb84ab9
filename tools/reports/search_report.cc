#include "tools/reports/search_report.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "search/details.h"
#include "search/pruning.h"
#include "search/views/front.h"
#include "support/status.h"
#include "tools/reports/run_views.h"
#include "tools/reports/search_views.h"

namespace orrery::tools {
namespace search_report_cc {
namespace {

using MakeSearchSection = Section (*)(const search::Setting&, const search::SearchRows&);

// The row of each result that a document has, by its place among those that are ranked.
int64_t RowOf(const SearchDocument& document, const std::vector<const search::Result*>& ranked,
              const search::Result* result) {
  const auto found = std::ranges::find(ranked, result) - ranked.begin();
  return static_cast<size_t>(found) < document.ranked.size()
             ? document.ranked[static_cast<size_t>(found)]
             : -1;
}

// Says which of several searches sections are of.
void NameSections(const std::string& search, size_t number, std::span<Section> sections) {
  for (Section& section : sections) {
    absl::StrAppend(&section.title, ": ", search);
    absl::StrAppend(&section.id, "-", number);
  }
}

absl::StatusOr<RunDocument> PlayAndShow(search::Setting& setting, const search::Result& result,
                                        const std::string& name) {
  setting.lowering.every_link = true;
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, search::Play(setting, result.plan));
  ORRERY_ASSIGN_OR_RETURN(const simulator::ReportDetails details,
                          search::DetailsOf(setting, result.plan, run));
  return RunViews({setting, result.plan, run, details}, name);
}

bool NeedsQuotes(absl::string_view word) {
  return word.empty() || std::ranges::any_of(word, [](char letter) {
           return !absl::ascii_isalnum(static_cast<unsigned char>(letter)) &&
                  absl::string_view("-_=+./:,@%").find(letter) == absl::string_view::npos;
         });
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
    const int64_t row = search_report_cc::RowOf(search, ranked, result);
    const std::string name =
        absl::StrCat("rank ", std::ranges::find(ranked, result) - ranked.begin() + 1);
    ORRERY_ASSIGN_OR_RETURN(
        RunDocument run, search_report_cc::PlayAndShow(settings.Of(result->plan), *result, name));
    run.row = row;
    search.runs.push_back(std::move(run));
  }
  document.searches.push_back(std::move(search));
  return absl::OkStatus();
}

std::string CommandText(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    if (i == 0) word = word.substr(word.rfind('/') + 1);
    if (search_report_cc::NeedsQuotes(word)) {
      word = absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
    }
    absl::StrAppend(&text, text.empty() ? "" : " ", word);
  }
  return text;
}

}  // namespace orrery::tools
