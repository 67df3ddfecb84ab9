#ifndef ORRERY_SIMULATOR_JITTER_DISTURBANCES_H_
#define ORRERY_SIMULATOR_JITTER_DISTURBANCES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/jitter/distribution.h"
#include "support/units.h"

namespace orrery::simulator {

/// Every so often a rank stops for a while, as a collector of garbage makes it: each at moments of
/// its own, or all at once.
struct Pauses {
  Duration length = {};
  Duration every = {};  // longer than `length`
  bool together = false;
};

/// A rank whose kernels take so many times as long.
struct SlowRank {
  int32_t rank = 0;
  double factor = 1;  // more than 0
};

/// What makes the kernels of a step take longer or shorter than they should. Factors of one kernel
/// multiply; a pause comes on top. Communication takes what it takes, once all have come.
struct Disturbances {
  std::optional<Spread> kernel = {};  // drawn for each kernel of each rank
  std::optional<Spread> rank = {};    // for each rank in each step
  std::optional<Spread> device = {};  // for each rank, once
  std::optional<Spread> step = {};    // for each step: of all ranks
  std::optional<Pauses> pauses = {};
  std::vector<SlowRank> slow = {};  // no rank twice
  uint64_t seed = 1;

  /// Whether ranks draw by themselves: then some are slower than others.
  bool of_ranks() const { return kernel.has_value() || rank.has_value() || device.has_value(); }
  /// Whether one step is not like the next.
  bool varies() const {
    return kernel.has_value() || rank.has_value() || step.has_value() || pauses.has_value();
  }
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_DISTURBANCES_H_
