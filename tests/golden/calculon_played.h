#ifndef ORRERY_TESTS_GOLDEN_CALCULON_PLAYED_H_
#define ORRERY_TESTS_GOLDEN_CALCULON_PLAYED_H_

#include "tests/golden/calculon.h"

// Calculon's cases, played here.

namespace orrery::golden {

/// What the first rank of the pipeline holds, in bytes.
struct PlayedMemory {
  double weights = 0, gradients = 0, optimizer = 0;  // at most
  /// Activations: after the last forward before the first backward, and at most in that backward.
  double saved = 0, at_work = 0;
  double device = 0, host = 0;  // at most
};

/// Plays `c`, with as many microbatches as fill the pipeline twice, and `zero` where it shards
/// the optimizer. What has been played is remembered.
const PlayedMemory& Played(const CalculonCase& c, int64_t zero = 1);

}  // namespace orrery::golden

#endif  // ORRERY_TESTS_GOLDEN_CALCULON_PLAYED_H_
