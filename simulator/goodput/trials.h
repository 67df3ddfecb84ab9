#ifndef ORRERY_SIMULATOR_GOODPUT_TRIALS_H_
#define ORRERY_SIMULATOR_GOODPUT_TRIALS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/goodput/run_spec.h"
#include "simulator/goodput/trial.h"

namespace orrery::simulator::goodput {

/// A figure over many runs.
struct Spreading {
  double mean = 0;
  double ci95 = 0;  // the mean is known to within so much, either way, 19 times of 20
  double p5 = 0, p50 = 0, p95 = 0;
};
/// Of `values`, at least one. With one, nothing is known of how near it is: ci95 is 0.
Spreading SpreadingOf(std::vector<double> values);

/// What came of many runs. Shares are of the length of a run: `effective` and all of `lost` add up
/// to 1.
struct RunSummary {
  Spreading effective;  // share of the time that went into steps that lasted
  Spreading goodput;    // samples that lasted, of those of a run that nothing disturbs
  std::array<double, kCauseCount> lost = {};  // means
  std::vector<double> failures = {};          // by RunSpec::failures, a run, on average
  Spreading interruptions;                    // all of them
  double planned_stops = 0;                   // a run, on average
  std::vector<double> saves = {};             // by RunSpec::tiers, likewise
};

/// How runs are played: what is drawn, and by how many threads at once.
struct PlayManner {
  uint64_t seed = 1;
  size_t threads = 1;
  const std::atomic<bool>* stop = nullptr;  // set: end early; null: never
};

/// Plays so many runs: the same results whatever the number of threads. Ends early, with the first
/// ones, at least one, once it is to stop.
std::vector<TrialResult> PlayTrials(const RunSpec& spec, size_t trials, const PlayManner& manner);

/// The summary of at least one of them.
RunSummary Summarize(const RunSpec& spec, const std::vector<TrialResult>& results);

}  // namespace orrery::simulator::goodput

#endif  // ORRERY_SIMULATOR_GOODPUT_TRIALS_H_
