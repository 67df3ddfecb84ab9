#ifndef ORRERY_SEARCH_CUTS_WAY_FACTS_H_
#define ORRERY_SEARCH_CUTS_WAY_FACTS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "lowering/step_bound.h"
#include "simulator/report/report.h"
#include "support/units.h"
#include "transforms/sharding/auto_shard.h"

// What is known of a way to carry out a plan, which is cut into stages at one place or another,
// before its cuts are played.

namespace orrery::search {

/// What is known of a way once it is made, whatever memory there is: of its cuts before they are
/// played (lowering::StepBound), or, where nothing can be told, of its runs.
struct WayFacts {
  transforms::AutoShardReport report = {};  // of the choice of shardings, if it was by cost
  double memory = 0;                        // bytes that it keeps, by its prices
  Duration fastest = {};                    // of its cuts
  double communication = 0;                 // of that one, as in Report: communication_overhead
  Bytes peak = {};                          // of that one
  Bytes least_peak = {};                    // of any
  Bytes bound = {};                         // of any, at least; 0: nothing can be told
  Duration least_time = {};                 // likewise

  /// Counts one of its cuts, one of its runs, or what is known of several.
  void Add(const lowering::StepBound& cut);
  void Add(const simulator::Report& run);
  void Add(const WayFacts& part);
};

/// What a way has to beat: the time of the best that fits until now. None: nothing does.
struct ToBeat {
  std::optional<Duration> time = {};
};

/// What is known of each of the cuts of a way.
class CutBounds {
 public:
  /// Nothing of so many.
  explicit CutBounds(size_t cuts) : bounds_(cuts) {}

  /// Tells what is known of a cut, if anything is.
  void Set(size_t cut, std::optional<lowering::StepBound> bound) { bounds_[cut] = bound; }
  /// Whether something is known of every cut.
  bool known() const;
  /// Requires that it is known.
  const lowering::StepBound& of(size_t cut) const { return *bounds_[cut]; }
  /// Whether it may fit for all that is known.
  bool MayFit(size_t cut) const;
  /// Whether any of the cuts may be what is looked for.
  bool MayBeat(const ToBeat& best) const;
  /// All cuts, those that may fit first.
  std::vector<size_t> Order() const;

 private:
  std::vector<std::optional<lowering::StepBound>> bounds_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_CUTS_WAY_FACTS_H_
