#ifndef ORRERY_SIMULATOR_GOODPUT_RUN_SPEC_H_
#define ORRERY_SIMULATOR_GOODPUT_RUN_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "simulator/goodput/draws.h"

// A training run of days as it is simulated: what trains, what fails how often, what is saved when,
// and what is done then. Times are in seconds.

namespace orrery::simulator::goodput {

/// What trains. Replicas share hosts where they are smaller than one.
struct JobShape {
  int64_t hosts = 1;
  int64_t devices_per_host = 8;
  int64_t hosts_per_rack = 1;
  int64_t idle_places = 0;   // of the last host, without a device of the job
  int64_t replicas = 1;      // of the model, which a step is spread over
  int64_t microbatches = 1;  // of a replica in a step, through so many stages:
  int64_t stages = 1;

  /// How many train.
  int64_t devices() const { return hosts * devices_per_host - idle_places; }
  /// The last may have fewer hosts.
  int64_t racks() const { return (hosts + hosts_per_rack - 1) / hosts_per_rack; }
};

/// What a failure takes from a job beside all of its processes: each more than the one before.
enum class Loss : uint8_t { kProcesses, kHost, kRack };

/// Something of which a job has many, that fails. The table is components.def.
struct Component {
  absl::string_view name;
  Loss loss;
  int64_t (*count)(const JobShape& job);
  absl::string_view summary;
};
/// All of them, in the order of the table.
std::span<const Component> AllComponents();

/// How often one of them fails: after so long on average, at any moment alike (Poisson).
struct FailureRate {
  const Component* component = nullptr;
  double mtbf_s = 0;
};

/// A place that checkpoints go to, and what one costs.
struct CheckpointTier {
  std::string name;
  Loss survives = Loss::kRack;  // the largest loss after which it can still be read
  int64_t every_steps = 1;
  double stall_s = 0;  // that training stands still for one
  double write_s = 0;  // from then on, until it can be read again
  double drag_s = 0;   // that steps take longer in all, as it is written beside them
  double load_s = 0;   // to read it
};

/// What is done when there are fewer hosts than the job wants.
enum class WhenShort : uint8_t {
  kWait,       // nothing, until one is repaired
  kShrink,     // fewer replicas train, with as many samples each
  kKeepBatch,  // fewer replicas train, with as many samples together
};

/// From a failure to the next step.
struct Recovery {
  Spread detect = {};   // until the job knows
  Spread restart = {};  // of its processes, until they would load a checkpoint
  Spread swap = {};     // of a host for a spare one, beside that
  double repair_s = 0;  // of a host, on average; exponential
  int64_t spares = 0;   // hosts beside those of the job
  WhenShort when_short = WhenShort::kWait;
};

/// A stop that is known before it comes, or hardly.
struct PlannedStop {
  absl::string_view name;  // "maintenance", "preemption"
  double every_s = 0;      // from one to the next
  bool random = false;     // on average, not by the clock
  Spread away = {};        // until the hosts are back
  double notice_s = 0;     // before it; enough for a checkpoint or not
};

/// A run. So many fields: the parts of the question.
struct RunSpec {
  JobShape job = {};
  double length_s = 0;
  double step_s = 0;
  std::vector<FailureRate> failures = {};
  std::vector<CheckpointTier> tiers = {};  // as OrderTiers leaves them
  Recovery recovery = {};
  std::vector<PlannedStop> stops = {};
};

/// Puts tiers in the order in which they are due, and makes the steps of each a multiple of those
/// of the one before: the nearest, at least once, and not before the last one is written.
void OrderTiers(std::vector<CheckpointTier>& tiers, double step_s);

/// Of so long steps the fewest in which one checkpoint is written before the next is due.
int64_t LeastSteps(const CheckpointTier& tier, double step_s);

/// InvalidArgument for what cannot be: no step, a time that is no time, a checkpoint that is due
/// before the last one is written.
absl::Status CheckRun(const RunSpec& spec);

/// Failures a second of the whole job; 0: none.
double FailuresPerSecond(const RunSpec& spec);

/// How many replicas train with so many hosts.
int64_t ReplicasOn(const JobShape& job, int64_t hosts);

/// How long a step takes with so many replicas, in steps of all of them.
double StepStretch(const JobShape& job, WhenShort when_short, int64_t replicas);

/// What such a step is worth, likewise: its samples.
double StepWorth(const JobShape& job, WhenShort when_short, int64_t replicas);

}  // namespace orrery::simulator::goodput

#endif  // ORRERY_SIMULATOR_GOODPUT_RUN_SPEC_H_
