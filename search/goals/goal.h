#ifndef ORRERY_SEARCH_GOALS_GOAL_H_
#define ORRERY_SEARCH_GOALS_GOAL_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

// What the best plan of a search is the best in.

namespace orrery::search {

/// What is wanted. Of one batch the fastest step has the largest throughput, so that these two
/// differ only between questions of several batches.
enum class Goal : uint8_t {
  kTime,        // the shortest step, or run
  kThroughput,  // the most samples a second
  kMemory,      // the least memory of the fullest rank; of equals the fastest
  kPrice,       // the least device-time a step; of equals the fastest
};

/// Reads "throughput", "time", "memory" or "price".
absl::StatusOr<Goal> ParseGoal(absl::string_view text);
/// What ParseGoal reads.
std::string ToString(Goal goal);

/// What goals are about.
struct GoalFigures {
  Duration time = {};  // of a step
  Bytes memory = {};   // of the fullest rank
  int64_t ranks = 1;   // devices
};

/// By which results are compared, smaller first, part by part.
using GoalKey = std::tuple<absl::uint128, int64_t, int64_t>;

/// The key of these figures. Where no figure is less than that of another, the key is not less than
/// the other's, either: so the key of what a plan takes at least is the least key that it can have.
GoalKey KeyOf(Goal goal, const GoalFigures& figures);

/// What a goal is about as one number, for who wants to say how far one is from another: seconds,
/// bytes, or seconds of a device.
double SizeOf(Goal goal, const GoalFigures& figures);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_GOALS_GOAL_H_
