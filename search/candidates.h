#ifndef ORRERY_SEARCH_CANDIDATES_H_
#define ORRERY_SEARCH_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "search/bounds/bounds.h"
#include "search/bounds/least_memory.h"
#include "search/evaluate.h"
#include "search/goals/goal.h"
#include "search/pruning.h"
#include "search/search_rows.h"
#include "search/spaces/plan_list.h"

namespace orrery::search {

/// What to try in place of a plan that does not fit, one after another until one does. What would
/// recompute, and leaves forward nothing less to keep, is passed over.
using ReliefOf = std::function<std::vector<ParallelPlan>(const ParallelPlan& plan)>;

/// The candidates of a search, and what is known of them before any is played: a few bytes each.
class Candidates {
 public:
  /// All that is given lives longer; `relief` may be empty.
  Candidates(const SettingOf& setting_of, const PlansView& plans, const ReliefOf& relief);

  /// Finds the bounds of all, on so many threads, and with `likely` what Plainest asks for. Before,
  /// nothing is known of any.
  void FindBounds(size_t threads, bool likely = false);

  size_t size() const { return plans_.size(); }
  /// The plan, and what is to be tried in its place.
  std::vector<ParallelPlan> PlansOf(size_t i) const;

  /// Whether the `one`-th of a candidate's plans needs more memory by its bound than there is.
  bool IsTooLarge(size_t i, size_t one) const { return !facts_.empty() && Fact(i, one).too_large; }
  /// Whether all of them do: nothing is played to say so.
  bool NeverFits(size_t i) const;
  /// Whether others beat all of its plans that may fit, by their bounds. Not what never fits.
  bool IsBeaten(size_t i, const Incumbents& incumbents) const;
  /// The time that a step takes at least, of those of its plans that may fit; 0: nobody knows.
  Duration LeastTime(size_t i) const;
  /// What its plans that may fit take at least, each figure by itself; what nobody knows is 0.
  GoalFigures LeastFigures(size_t i) const;
  /// What the first of its plans that may fit is likely to take of what the goal is about
  /// (SizeOf); of memory, at least. 0: nobody knows.
  double LikelySize(Goal goal, size_t i) const;
  /// What a rank needs at least; 0: nobody knows.
  Bytes LeastMemoryOf(size_t i) const;
  /// All of them, those first that may take least: what is found soon beats more of the others.
  std::vector<uint32_t> Promising() const;
  /// For who cannot play all, those that may fit: behind all others those that are likely not to,
  /// of which bounds alone do not say so (SearchBounds); before others those
  /// that have least changes, by `changes`, which may be null; of these first what is likely to
  /// take least by `likely`.
  std::vector<uint32_t> Plainest(const std::function<int32_t(size_t)>& changes,
                                 const std::function<double(size_t)>& likely) const;

  /// The result of a candidate that is not played.
  Result Row(size_t i, Unplayed why) const;
  /// The same of the `one`-th of its plans, which is too large.
  Result TooLargeRow(const ParallelPlan& plan, size_t i, size_t one) const;

 private:
  // Of one plan.
  struct Known {
    PlanBound bound;
    float likely_s = 0;  // that a step is likely to take
    uint32_t ranks : 30 = 1;
    uint32_t too_large : 1 = 0;
    uint32_t tight : 1 = 0;  // it is likely not to fit (SearchBounds)
  };
  const Known& Fact(size_t i, size_t one) const { return facts_[Begin(i) + one]; }
  size_t Begin(size_t i) const { return begins_.empty() ? i : begins_[i]; }
  size_t End(size_t i) const { return begins_.empty() ? i + 1 : begins_[i + 1]; }
  // Of those of a candidate; where none may, the first.
  size_t FirstThatMayFit(size_t i) const;

  const SettingOf& setting_of_;
  const PlansView& plans_;
  const ReliefOf& relief_;
  mutable WeightSums weights_;  // of rows
  std::vector<Known> facts_;    // of all plans of all candidates; empty where nothing is known
  std::vector<size_t> begins_;  // where those of a candidate stand; empty: each has one
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_CANDIDATES_H_
