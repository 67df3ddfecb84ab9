#ifndef ORRERY_SEARCH_VIEWS_EXPLAIN_H_
#define ORRERY_SEARCH_VIEWS_EXPLAIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/evaluate.h"
#include "simulator/network/link_use.h"
#include "support/units.h"

// Why a step takes as long as it does on its network, and what would help: every answer is a
// simulation of the same step with one thing changed.

namespace orrery::search {

/// How much of what a link carries is of one kind of communication.
struct CarriedShare {
  std::string communication;  // "all-reduce dp"
  double share = 0;           // of the bytes: 0 to 1
};

/// What the links of one kind do in a run; of the busiest of them. The run of an asynchronous
/// schedule is several steps long.
struct LevelUse {
  std::string level;  // "nic"
  std::string link;   // "device0 -> fabric (nic) and 127 alike"
  simulator::ResourceUse use = {};
  double full = 0;                         // for so much of the run: 0 to 1
  std::vector<CarriedShare> carried = {};  // the most first
};

/// A change, and how long the step would take then.
struct LinkRelief {
  std::string change;  // "nic links of twice the rate"
  Duration step_time = {};
};

/// Where the time of a run goes on the network, and what would shorten it.
struct Explanation {
  std::vector<LevelUse> levels;     // the busiest first; none when nothing travels
  std::vector<LinkRelief> reliefs;  // the best first; those that change nothing too
};

/// Explains `run`, a run of `plan` with `setting.lowering.every_link`. Tries twice the rate of
/// the links of each level, and the other orders of the mesh. `setting` is changed on the way and
/// put back.
absl::StatusOr<Explanation> Explain(Setting& setting, const ParallelPlan& plan, const Run& run);

/// As `simulate --explain` prints it.
std::string ExplanationText(const Explanation& explanation, Duration step_time);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_VIEWS_EXPLAIN_H_
