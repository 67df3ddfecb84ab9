#include "tools/searches/search_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/terminal/terminal.h"

namespace orrery::tools {

std::string ToString(const SearchState& state) {
  std::string text = ToString(ProgressState{.things = "candidates",
                                            .done = state.done,
                                            .total = state.total,
                                            .known = state.known,
                                            .elapsed_s = state.elapsed_s,
                                            .to_the_end = !state.ends_before});
  if (state.best.has_value()) absl::StrAppend(&text, ", best ", orrery::ToString(*state.best));
  return text;
}

void SearchProgress::Count(const std::vector<search::Result>& results) {
  ++state_.done;
  for (const search::Result& result : results) {
    if (!result.feasible()) continue;
    state_.best = std::min(state_.best.value_or(result.step_time), result.step_time);
  }
}

void SearchProgress::Known(const std::vector<search::Result>& results) {
  Count(results);
  ++state_.known;
}

void SearchProgress::Done(const std::vector<search::Result>& results) {
  Count(results);
  // The last is told, whenever it comes: it is what stays in a file.
  const bool at_end = state_.done == state_.total && !ErrorTerminal().is_terminal;
  if (!at_end && !line_.IsTime()) return;
  const auto now = std::chrono::steady_clock::now();
  state_.elapsed_s = std::chrono::duration<double>(now - begin_).count();
  line_.Write(ToString(state_));
}

}  // namespace orrery::tools
