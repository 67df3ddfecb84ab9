#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_SEARCH_REWRITES_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_SEARCH_REWRITES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "support/units.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/match_rule.h"
#include "transforms/substitutions/rule.h"

// The search for the cheapest of all graphs that rules lead to, with backtracking, as TASO does it
// (Jia et al. 2019, algorithm 2): of all graphs that were reached, the cheapest is taken next, and
// all that one rule makes of it is kept that costs at most alpha times the best so far. So a
// rewrite that costs something is taken where another one may pay for it.

namespace orrery::transforms::substitutions {

/// How far a search goes.
struct RewriteLimits {
  double alpha = 1.05;  // 1: only what is no dearer than the best
  int64_t steps = 100;  // graphs that rules are applied to
  /// When to stop in any case; 0: never. What is found then depends on the machine.
  double seconds = 0;
  int32_t kept = 500;  // graphs that wait; of more, the dearest go
  /// Seconds since any moment; null: those of a clock that never goes back.
  std::function<double()> clock = nullptr;
};

/// A rule that was applied on the way to the best graph.
struct RewriteStep {
  Direction direction;
  Duration price;  // of the whole graph after it
};

/// The best graph of a search.
struct Rewriting {
  Dataflow best;
  std::vector<RewriteStep> steps;  // from the first graph to the best
  int64_t expanded = 0;            // graphs that rules were applied to
  int64_t graphs = 0;              // different ones that they led to
  bool all = false;  // nothing was left to look at within alpha, and there was time for all
};

/// The cheapest graph that `rules` lead to from `start`: `start` itself where there is none that
/// costs less. The same on any machine but for `seconds`.
Rewriting SearchRewrites(const Dataflow& start, std::span<const Rule> rules,
                         const RewriteLimits& limits, WorkTable& works);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_SEARCH_REWRITES_H_
