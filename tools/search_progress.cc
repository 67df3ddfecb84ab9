#include "tools/search_progress.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace orrery::tools {
namespace search_progress_cc {
namespace {

// A search of days is not told in seconds.
std::string LeftText(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < kMinute) return absl::StrFormat("%.0f s left", seconds);
  if (seconds < kHour) return absl::StrFormat("%.0f min left", seconds / kMinute);
  return absl::StrFormat("%.1f h left", seconds / kHour);
}

}  // namespace
}  // namespace search_progress_cc

std::string ToString(const SearchState& state) {
  const bool to_the_end = !state.ends_before;
  std::string text =
      absl::StrCat(state.done, to_the_end ? "/" : " of ", state.total, " candidates");
  if (state.total == 0) return text;
  if (to_the_end) absl::StrAppend(&text, " (", 100 * state.done / state.total, "%)");
  const size_t found = state.done - state.known;
  if (found > 0 && state.elapsed_s > 0) {
    const double rate = static_cast<double>(found) / state.elapsed_s;
    absl::StrAppendFormat(&text, ", %.1f/s", rate);
    if (const size_t left = state.total - state.done; left > 0 && to_the_end) {
      absl::StrAppend(&text, ", ", search_progress_cc::LeftText(static_cast<double>(left) / rate));
    }
  }
  if (state.best.has_value()) absl::StrAppend(&text, ", best ", orrery::ToString(*state.best));
  return text;
}

SearchProgress::~SearchProgress() {
  if (width_ > 0) std::cerr << "\n";
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
  const auto now = std::chrono::steady_clock::now();
  const bool at_end = state_.done == state_.total;
  if (!wanted_ || (!at_end && now - last_ < std::chrono::milliseconds(100))) return;
  last_ = now;
  state_.elapsed_s = std::chrono::duration<double>(now - begin_).count();
  const std::string line = ToString(state_);
  const std::string rest(width_ > line.size() ? width_ - line.size() : 0, ' ');
  width_ = at_end ? 0 : line.size();
  std::cerr << "\r" << line << rest << (at_end ? "\n" : "") << std::flush;
}

}  // namespace orrery::tools
