#ifndef ORRERY_SIMULATOR_GOODPUT_BEST_INTERVAL_H_
#define ORRERY_SIMULATOR_GOODPUT_BEST_INTERVAL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/goodput/run_spec.h"
#include "simulator/goodput/trials.h"

// How far apart checkpoints should be: too near, and the time goes into them, too far, and a
// failure costs much work.

namespace orrery::simulator::goodput {

/// Young, A first order approximation to the optimum checkpoint interval, 1974: sqrt(2 C M), of
/// what a checkpoint costs and the mean time between failures.
double YoungInterval(double cost_s, double mtbf_s);

/// Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, 2006, (37):
/// with d = C / (2 M), sqrt(2 C M) (1 + sqrt(d) / 3 + d / 9) - C; M where C is 2 M or more.
double DalyInterval(double cost_s, double mtbf_s);

/// The share of the time that goes into steps that last, where failures are Poisson's and come at
/// any time, each costs `restart_s` and the work since the last checkpoint, and checkpoints are
/// waited for: Daly's (20), x = T / (M e^(R/M) (e^((T+C)/M) - 1)) of an interval T of work.
double DalyEfficiency(double interval_s, double cost_s, double restart_s, double mtbf_s);

/// Seconds between checkpoints of a tier that are likely to be good: Daly's; the run where nothing
/// fails.
double LikelyInterval(const RunSpec& spec, const CheckpointTier& tier);

/// An interval of one tier, the others as they are, and what comes of it.
struct BestInterval {
  int64_t steps = 1;
  double seconds = 0;  // of steps between two checkpoints
  double goodput = 0;  // then, over the runs that it was found with
};

/// The interval of a tier that has the highest goodput: by runs in which the same components fail
/// at the same moments whatever the interval, and a parabola through their goodputs around the
/// best, over the logarithm of intervals, as few steps more or less hardly matter. At least what a
/// checkpoint takes to be written, at most the run; where nothing fails, the run.
BestInterval FindBestInterval(const RunSpec& spec, size_t tier, const PlayManner& manner);

/// Goodput over intervals of a tier, from an eighth of `around` to eight times as much, as far as
/// they can be: in the same runs.
std::vector<BestInterval> GoodputByInterval(const RunSpec& spec, size_t tier, int64_t around,
                                            const PlayManner& manner);

}  // namespace orrery::simulator::goodput

#endif  // ORRERY_SIMULATOR_GOODPUT_BEST_INTERVAL_H_
