#ifndef ORRERY_TOOLS_SEARCHES_SEARCH_PROGRESS_H_
#define ORRERY_TOOLS_SEARCHES_SEARCH_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "search/evaluate.h"
#include "tools/terminal/progress.h"

// How far a search is, on standard error.

namespace orrery::tools {

/// How far a search is at a moment.
struct SearchState {
  size_t done = 0;   // candidates, those that were known included
  size_t total = 0;  // candidates
  size_t known = 0;  // candidates, before it began
  double elapsed_s = 0;
  std::optional<Duration> best = {};  // step time
  bool ends_before = false;           // by a budget: how much is left does not say when
};

/// "112/224 candidates (50%), 31.2/s, 3.6 s left, best 66.3 ms": what is not known is left out.
/// Where a budget ends it, "112 of 224 candidates, 31.2/s, best 66.3 ms".
std::string ToString(const SearchState& state);

/// Tells it in a ProgressLine; nothing unless `wanted`.
class SearchProgress {
 public:
  /// `ends_before`: as in SearchState.
  SearchProgress(size_t total, bool wanted, bool ends_before = false) : line_(wanted) {
    state_.total = total;
    state_.ends_before = ends_before;
  }
  /// So many were known before the search began, and what they say.
  void Known(const std::vector<search::Result>& results);
  /// There are so many candidates more.
  void More(size_t candidates) { state_.total += candidates; }
  /// A candidate is done.
  void Done(const std::vector<search::Result>& results);

 private:
  void Count(const std::vector<search::Result>& results);

  SearchState state_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  ProgressLine line_;
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_SEARCH_PROGRESS_H_
