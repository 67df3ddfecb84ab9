#ifndef ORRERY_SEARCH_WALKS_METHODS_H_
#define ORRERY_SEARCH_WALKS_METHODS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// In which order a search plays candidates that it cannot play all of.

namespace orrery::search {

/// How a search goes through its candidates.
enum class Method : uint8_t {
  kExhaustive,  // all, those first whose bounds promise most
  kBeam,        // neighbours of the best, best first (Lowerre 1976)
  kAnnealing,   // neighbours of where it is, at a falling temperature (Kirkpatrick et al. 1983)
};

/// Reads "exhaustive", "beam" or "annealing".
absl::StatusOr<Method> ParseMethod(absl::string_view text);
/// What ParseMethod reads.
std::string ToString(Method method);

/// How much a search may play: until the seconds are over, or so many candidates have been played;
/// what is 0 sets no limit.
struct SearchBudget {
  double seconds = 0;
  int64_t candidates = 0;

  bool is_limited() const { return seconds > 0 || candidates > 0; }
  friend bool operator==(const SearchBudget&, const SearchBudget&) = default;
};

/// Reads "60s", "10min", "2h", or a number of candidates, "500"; InvalidArgument says what was
/// found and wanted.
absl::StatusOr<SearchBudget> ParseBudget(absl::string_view text);
/// What ParseBudget reads.
std::string ToString(const SearchBudget& budget);

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
  /// `spent`: which part of the budget is.
  virtual std::vector<size_t> Next(size_t most, double spent) = 0;
  /// What came of one: how long its step takes; where it does not fit, how much memory it needs, so
  /// that neighbours may need less; nothing where it is infeasible for another reason.
  virtual void Found(size_t candidate, std::optional<WalkScore> score) = 0;
};

/// The walk of a method.
std::unique_ptr<Walk> MakeWalk(Method method, WalkQuestion question);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_METHODS_H_
