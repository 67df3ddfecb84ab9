#include "simulator/goodput/run_spec.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace orrery::simulator::goodput {
namespace run_spec_cc {
namespace {

constexpr Component kComponents[] = {
#define ORRERY_COMPONENT(name, loss, how_many, summary) \
  {#name, Loss::loss, [](const JobShape& job) -> int64_t { return how_many; }, summary},
#include "simulator/goodput/components.def"
#undef ORRERY_COMPONENT
};

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds >= 0; }
bool IsSpread(Spread spread) {
  return IsTime(spread.low_s) && IsTime(spread.high_s) && spread.low_s <= spread.high_s;
}

absl::Status CheckTier(const RunSpec& spec, const CheckpointTier& tier) {
  if (!IsTime(tier.stall_s) || !IsTime(tier.write_s) || !IsTime(tier.drag_s) ||
      !IsTime(tier.load_s)) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoints to ", tier.name, ": wanted times of at least 0 s"));
  }
  if (tier.every_steps >= LeastSteps(tier, spec.step_s)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("checkpoints to ", tier.name, ": one every ", tier.every_steps, " steps, ",
                   static_cast<double>(tier.every_steps) * spec.step_s, " s, of which each takes ",
                   tier.write_s, " s to write; wanted them further apart, or more bandwidth"));
}

// So often that nothing is ever trained, or a run takes minutes to play.
absl::Status CheckEvents(const RunSpec& spec) {
  constexpr double kMost = 1e6;
  const double failures = FailuresPerSecond(spec) * spec.length_s;
  double stops = 0;
  for (const PlannedStop& stop : spec.stops) stops += spec.length_s / stop.every_s;
  if (failures <= kMost && stops <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the run fails or stops ", std::max(failures, stops),
                   " times; wanted at most a million: a longer mean time, or a shorter run"));
}

}  // namespace
}  // namespace run_spec_cc

std::span<const Component> AllComponents() { return run_spec_cc::kComponents; }

int64_t LeastSteps(const CheckpointTier& tier, double step_s) {
  constexpr double kMost = 1e15;
  const double beyond_s = std::max(tier.write_s - tier.stall_s - tier.drag_s, 0.0);
  const auto steps = static_cast<int64_t>(std::ceil(std::min(beyond_s / step_s, kMost)));
  return std::max<int64_t>(steps, 1);
}

void OrderTiers(std::vector<CheckpointTier>& tiers, double step_s) {
  std::stable_sort(tiers.begin(), tiers.end(),
                   [](const auto& a, const auto& b) { return a.every_steps < b.every_steps; });
  for (size_t i = 1; i < tiers.size(); ++i) {
    const int64_t unit = std::max<int64_t>(tiers[i - 1].every_steps, 1);
    const double times = static_cast<double>(tiers[i].every_steps) / static_cast<double>(unit);
    const int64_t least = (LeastSteps(tiers[i], step_s) + unit - 1) / unit;
    tiers[i].every_steps = unit * std::max<int64_t>({std::llround(times), least, 1});
  }
}

absl::Status CheckRun(const RunSpec& spec) {
  using run_spec_cc::IsSpread;
  using run_spec_cc::IsTime;
  if (!IsTime(spec.length_s) || spec.length_s == 0 || !IsTime(spec.step_s) || spec.step_s == 0) {
    return absl::InvalidArgumentError("wanted a run and a step of more than 0 s");
  }
  for (const FailureRate& rate : spec.failures) {
    if (IsTime(rate.mtbf_s) && rate.mtbf_s > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("mean time between failures of ",
                                                   rate.component->name, ": wanted more than 0 s"));
  }
  for (const CheckpointTier& tier : spec.tiers) {
    if (absl::Status status = run_spec_cc::CheckTier(spec, tier); !status.ok()) return status;
  }
  for (const PlannedStop& stop : spec.stops) {
    if (IsTime(stop.every_s) && stop.every_s > 0 && IsSpread(stop.away)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(stop.name, ": wanted more than 0 s from one to the next"));
  }
  if (absl::Status status = run_spec_cc::CheckEvents(spec); !status.ok()) return status;
  const Recovery& recovery = spec.recovery;
  if (!IsSpread(recovery.detect) || !IsSpread(recovery.restart) || !IsSpread(recovery.swap) ||
      !IsTime(recovery.repair_s) || recovery.spares < 0) {
    return absl::InvalidArgumentError("recovery: wanted times of at least 0 s, low before high");
  }
  return absl::OkStatus();
}

double FailuresPerSecond(const RunSpec& spec) {
  return std::accumulate(spec.failures.begin(), spec.failures.end(), 0.0,
                         [&](double sum, const FailureRate& rate) {
                           const int64_t count = rate.component->count(spec.job);
                           return sum + static_cast<double>(count) / rate.mtbf_s;
                         });
}

int64_t ReplicasOn(const JobShape& job, int64_t hosts) {
  return std::min(job.replicas, job.replicas * hosts / job.hosts);
}

// Replicas take over the microbatches of others: as many as the fullest has, and the ramps of the
// pipeline stay as they are.
double StepStretch(const JobShape& job, WhenShort when_short, int64_t replicas) {
  if (when_short != WhenShort::kKeepBatch || replicas >= job.replicas) return 1;
  const int64_t all = job.microbatches * job.replicas;
  const int64_t fullest = (all + replicas - 1) / replicas;
  const int64_t ramps = job.stages - 1;
  return static_cast<double>(fullest + ramps) / static_cast<double>(job.microbatches + ramps);
}

double StepWorth(const JobShape& job, WhenShort when_short, int64_t replicas) {
  if (when_short == WhenShort::kKeepBatch) return 1;
  return static_cast<double>(replicas) / static_cast<double>(job.replicas);
}

}  // namespace orrery::simulator::goodput
