#ifndef ORRERY_SEARCH_WALKS_WALKERS_H_
#define ORRERY_SEARCH_WALKS_WALKERS_H_

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "search/walks/walk.h"

namespace orrery::search {

/// What threads that go through one walk do, and share.
struct Walkers {
  size_t threads = 1;
  /// Held while the walk is asked and told, and in all calls but those of `play`.
  std::mutex& mutex;
  /// Candidates that are being played: to the walk they are not open.
  absl::flat_hash_set<size_t>& under_way;
  /// Which part of the budget is spent, with so many begun; negative: nothing more is to be begun.
  std::function<double(size_t begun)> spent;
  /// Plays a candidate, the `nth` of all. From any thread.
  std::function<void(size_t candidate, size_t nth)> play;
  /// What came of it.
  std::function<std::optional<WalkScore>(size_t candidate)> score;
};

/// Plays what the walk wants next, as long as it wants anything, and the budget lasts: who is done
/// takes the next and waits for nobody, so that which are played depends on how long plays take.
/// What `play` throws, the first of it, is thrown when all have ended.
void WalkOn(Walk& walk, const Walkers& walkers);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_WALKERS_H_
