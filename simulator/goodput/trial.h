#ifndef ORRERY_SIMULATOR_GOODPUT_TRIAL_H_
#define ORRERY_SIMULATOR_GOODPUT_TRIAL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "simulator/goodput/run_spec.h"

namespace orrery::simulator::goodput {

/// What the time of a run that is not training goes into.
enum class Cause : uint8_t {
  kCheckpoints,  // training stands still for one
  kTraffic,      // steps are slower beside one that is written
  kRework,       // steps that were lost
  kDetection,    // until a failure is known
  kHosts,        // none there
  kRestart,      // processes, and hosts that are swapped
  kLoading,      // a checkpoint
  kMaintenance,  // hosts are away
  kPreemption,   // likewise
};
/// How many causes there are.
inline constexpr size_t kCauseCount = 9;
/// In files: "checkpoints", "rework".
absl::string_view NameOf(Cause cause);
/// For people: "standing still for checkpoints".
absl::string_view TextOf(Cause cause);

/// What came of one run. Times add up to the length of the run.
struct TrialResult {
  double trained_s = 0;  // steps that lasted
  double worth_s = 0;    // the same, as seconds of all replicas
  std::array<double, kCauseCount> lost_s = {};
  absl::InlinedVector<int32_t, 6> failures = {};  // by RunSpec::failures
  int32_t planned_stops = 0;
  absl::InlinedVector<int64_t, 4> saves = {};  // by RunSpec::tiers
};

/// A time during which a run did one thing, as timelines and traces show it.
struct Episode {
  double start_s = 0, end_s = 0;
  std::string what;    // "training", or NameOf a cause
  std::string detail;  // "device failed", "3 of 4 replicas"
};

/// Plays one run: from event to event, whatever happens between them, so that its time grows with
/// failures alone. What happens follows from seed and trial; when components fail does not depend
/// on checkpoints or recovery, as long as the job is not away or short of hosts. `episodes`, where
/// not null, gets what it did, in order. Requires a run that CheckRun accepts.
TrialResult PlayTrial(const RunSpec& spec, uint64_t seed, uint64_t trial,
                      std::vector<Episode>* episodes = nullptr);

}  // namespace orrery::simulator::goodput

#endif  // ORRERY_SIMULATOR_GOODPUT_TRIAL_H_
