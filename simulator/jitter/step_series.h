#ifndef ORRERY_SIMULATOR_JITTER_STEP_SERIES_H_
#define ORRERY_SIMULATOR_JITTER_STEP_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/jitter/disturbed_program.h"
#include "support/units.h"

// A program is played step after step, each with other times. Steps are independent of each other
// and of the thread that plays them, and what is summed up is whole picoseconds: so the outcome is
// the same on any number of threads.

namespace orrery::simulator {

/// That ranks of a class have waited for a rank.
struct Wait {
  RankClassId waiting;
  int32_t late = 0;    // global rank
  Duration time = {};  // the sum over all members of the class

  friend bool operator==(const Wait&, const Wait&) = default;
};

/// What a series of steps came to.
struct StepSeries {
  std::vector<Duration> times;  // by step
  /// Where a step of folded ranks is not exact: the longest that ranks of one position take, which
  /// no step is shorter than where times are fixed. Else empty.
  std::vector<Duration> at_least = {};
  std::vector<Wait> waits = {};  // by class, then by rank, of all steps together
};

/// How a series is played.
struct SeriesOptions {
  int32_t steps = 1;
  size_t threads = 1;
  bool waits = false;   // also who waits for whom
  bool bounds = false;  // also StepSeries::at_least, where it is not exact
};

/// Plays so many steps. OutOfRange where one goes on beyond kEndOfTime.
absl::StatusOr<StepSeries> PlaySeries(const DisturbedProgram& disturbed,
                                      const SeriesOptions& options);

/// Who waits for whom in a step as it should be.
std::vector<Wait> UndisturbedWaits(const DisturbedProgram& disturbed);

/// Mean and quantiles of step times.
struct StepFigures {
  double mean_s = 0, p5_s = 0, p50_s = 0, p95_s = 0, p99_s = 0;
};

/// Those of at least one step. A quantile p is at place p (n - 1) of the sorted times, from 0, and
/// between two places on the line between them, as NumPy's percentile has it.
StepFigures FiguresOf(std::span<const Duration> times);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_STEP_SERIES_H_
