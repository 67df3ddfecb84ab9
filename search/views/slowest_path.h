#ifndef ORRERY_SEARCH_VIEWS_SLOWEST_PATH_H_
#define ORRERY_SEARCH_VIEWS_SLOWEST_PATH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "search/evaluate.h"

// Where devices, or stages, are not alike: who holds up the others, and what evens it out.

namespace orrery::search {

/// The ranks of a stage that have one coordinate along "dp".
struct PathPart {
  int32_t stage = 0;
  int32_t replica = 0;
  std::string device;        // of the slowest of its ranks
  double seconds = 0;        // that this rank computes in the step
  int64_t microbatches = 0;  // that it runs
  int64_t layers = 0;        // that its stage has; 0: not known
};

/// What a run says of its slowest path. Empty parts: ranks are not simulated one by one, or the
/// plan has axes beside dp, hp and pp.
struct SlowestPath {
  std::vector<PathPart> parts;  // by stage, then replica
  size_t slowest = 0;
  /// Times as long as the other replicas of its stage take for as much, on average, and as the
  /// other stages take; 1 where there are none.
  double over_replicas = 1;
  double over_stages = 1;
  /// What evens it out, as flags of `simulate` that differ: it was played, fits and is faster.
  /// Empty: neither other shares nor other layers do.
  std::string remedy;
};

/// The report of `run` is a whole one.
SlowestPath FindSlowestPath(const Setting& setting, const ParallelPlan& plan, const Run& run);

/// Two lines for people, without their titles; empty where all is alike by construction: one kind
/// of device, and stages and replicas that are alike.
std::vector<std::pair<std::string, std::string>> SlowestPathLines(const Setting& setting,
                                                                  const ParallelPlan& plan,
                                                                  const Run& run);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_SLOWEST_PATH_H_
