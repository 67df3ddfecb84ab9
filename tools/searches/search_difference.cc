#include "tools/searches/search_difference.h"

#include <iostream>

#include "search/views/difference.h"
#include "support/status.h"
#include "tools/terminal/terminal.h"

namespace orrery::tools {
namespace search_difference_cc {
namespace {

// A place is a name; values of axes are not.
std::string NameOf(const std::string& text, const char* letter) {
  return text.find('=') == std::string::npos ? text : letter;
}

}  // namespace
}  // namespace search_difference_cc

absl::Status CheckDifference(const std::vector<std::string>& diff) {
  if (!diff.empty() && diff.size() != 2) {
    return absl::InvalidArgumentError(
        "--diff: wanted two candidates, as in --diff 1 2, or --diff 1 'dp=2 pp=4'");
  }
  for (const std::string& text : diff) {
    ORRERY_RETURN_IF_ERROR(Annotate(search::CheckCandidateName(text), "--diff"));
  }
  return absl::OkStatus();
}

absl::Status TellDifference(const std::vector<std::string>& diff, const search::Settings& settings,
                            const search::SearchRows& rows) {
  if (diff.empty()) return absl::OkStatus();
  constexpr size_t kIndent = 46;
  std::vector<search::DividedStep> steps;
  for (const std::string& text : diff) {
    ORRERY_ASSIGN_OR_RETURN(const search::Result* result,
                            Annotated(search::FindCandidate(rows, text), "--diff"));
    ORRERY_ASSIGN_OR_RETURN(steps.emplace_back(),
                            search::Divide(settings.Of(result->plan), result->plan));
  }
  std::cout << "\n"
            << WrapLines(search::DifferenceText(steps[0], steps[1],
                                                search_difference_cc::NameOf(diff[0], "A"),
                                                search_difference_cc::NameOf(diff[1], "B")),
                         kIndent, OutputTerminal());
  return absl::OkStatus();
}

}  // namespace orrery::tools
