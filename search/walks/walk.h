#ifndef ORRERY_SEARCH_WALKS_WALK_H_
#define ORRERY_SEARCH_WALKS_WALK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// In which order a search plays candidates that it cannot play all of.

namespace orrery::search {

/// Candidates that are a base, as a plan by its axes is, and beside it a label for each of some
/// things, as the devices of groups of ops.
struct WalkChoices {
  /// What each thing is, as numbers: of all as many, of like ones like numbers. None: candidates
  /// are not made so.
  std::vector<std::vector<double>> things = {};
  /// Labels are below that.
  int labels = 0;
  /// The candidate that has the base of one, and of each thing that label; where the thing cannot
  /// have it there, 0.
  std::function<size_t(size_t, const std::vector<int>&)> with = {};
};

/// What a walk may ask about candidates. All live longer.
struct WalkQuestion {
  /// All of them, the most promising first.
  std::vector<uint32_t> promising;
  /// Those that differ from one in little.
  std::function<std::vector<size_t>(size_t)> neighbours;
  /// What candidates that are much alike have in common, their degrees say; null: nothing is.
  std::function<uint64_t(size_t)> family;
  /// What the size of one is likely to be (WalkScore), where it fits; null: nobody knows.
  std::function<double(size_t)> likely;
  /// Whether there is still something to find out about one: it was not played, and can fit, and
  /// nothing has beaten it.
  std::function<bool(size_t)> is_open;
  uint32_t seed = 1;
  /// What one is, as numbers: of all as many, of like ones like numbers; null: nobody says.
  std::function<std::vector<double>(size_t)> features = {};
  WalkChoices choices = {};
};

/// How good a candidate is. What fits is better than what does not.
struct WalkScore {
  bool fits = true;
  double size = 0;  // what is wanted to be small; of what does not fit, bytes of the fullest rank

  friend bool operator<(const WalkScore& a, const WalkScore& b) {
    return a.fits != b.fits ? a.fits : a.size < b.size;
  }
};

/// Goes through candidates, some at a time.
class Walk {
 public:
  virtual ~Walk() = default;
  /// At most so many open candidates to play next, distinct; none only where none is open.
  /// `spent`: which part of the budget is. Of those that it named before, some may not be found
  /// yet: they are not open.
  virtual std::vector<size_t> Next(size_t most, double spent) = 0;
  /// What came of one: how long its step takes; where it does not fit, how much memory it needs, so
  /// that neighbours may need less; nothing where it is infeasible for another reason, or beaten.
  virtual void Found(size_t candidate, std::optional<WalkScore> score) = 0;
  /// How it went, for people, in one line without a full stop; "": there is nothing to tell.
  virtual std::string Log() const { return ""; }
};

/// A method: one file, and one line of methods.def. It knows candidates by what WalkQuestion says,
/// and nothing of models or plans.
struct MethodInfo {
  absl::string_view name;
  absl::string_view summary;  // no full stop
  absl::string_view source;   // a paper
  /// Whether `promising` is by what bounds promise; else the plainest come first.
  bool by_bounds = false;
  std::unique_ptr<Walk> (*make)(WalkQuestion question) = nullptr;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_WALK_H_
