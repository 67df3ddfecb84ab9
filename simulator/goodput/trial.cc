#include "simulator/goodput/trial.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>

#include "absl/strings/str_cat.h"
#include "simulator/goodput/checkpoint_cycle.h"

namespace orrery::simulator::goodput {
namespace trial_cc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::array<absl::string_view, kCauseCount> kNames = {
    "checkpoints", "checkpoint_traffic", "rework",    "detection", "waiting_for_hosts", "restart",
    "loading",     "maintenance",        "preemption"};
constexpr std::array<absl::string_view, kCauseCount> kTexts = {"standing still for checkpoints",
                                                               "slower beside checkpoints",
                                                               "steps done again",
                                                               "until failures are known",
                                                               "waiting for hosts",
                                                               "restarting",
                                                               "loading checkpoints",
                                                               "maintenance",
                                                               "preemption"};

// Purposes of draws: each has numbers of its own, so that one more of this leaves that as it is.
enum Purpose : uint64_t { kArrivals, kWhich, kRecovery, kRepairs, kStops };

// Training that lasts.
struct Done {
  double trained_s = 0, worth_s = 0;
};

// So many fields: the state of a run.
class Trial {
 public:
  Trial(const RunSpec& spec, uint64_t seed, uint64_t trial, std::vector<Episode>* episodes)
      : spec_(spec),
        episodes_(episodes),
        arrivals_(seed, trial, kArrivals),
        which_(seed, trial, kWhich),
        recovery_(seed, trial, kRecovery),
        repairs_(seed, trial, kRepairs),
        stops_(seed, trial, kStops),
        per_second_(FailuresPerSecond(spec)),
        hosts_(spec.job.hosts + spec.recovery.spares),
        replicas_(spec.job.replicas),
        saves_(spec.tiers.size()) {
    result_.failures.resize(spec.failures.size());
    result_.saves.resize(spec.tiers.size());
    next_failure_s_ = NextArrival();
    for (const PlannedStop& stop : spec.stops) next_stops_.push_back(NextStop(stop));
  }

  TrialResult Play() {
    while (time_s_ < spec_.length_s) PlayLeg();
    result_.trained_s = done_.trained_s;
    result_.worth_s = done_.worth_s;
    return result_;
  }

 private:
  enum class Outcome : uint8_t { kDone, kFailed, kEnded };

  double NextArrival() {
    return per_second_ > 0 ? time_s_ + arrivals_.Exponential(1 / per_second_) / Share() : kNever;
  }
  double NextStop(const PlannedStop& stop) {
    return time_s_ + (stop.random ? stops_.Exponential(stop.every_s) : stop.every_s);
  }
  // Of the job's hosts that train, and may fail.
  double Share() const {
    return static_cast<double>(replicas_) / static_cast<double>(spec_.job.replicas);
  }

  void Lose(Cause cause, double seconds) { result_.lost_s[static_cast<size_t>(cause)] += seconds; }
  void Tell(double start_s, absl::string_view what, absl::string_view detail) {
    if (episodes_ == nullptr || start_s >= time_s_) return;
    episodes_->push_back({start_s, time_s_, std::string(what), std::string(detail)});
  }

  // From a start until something happens.
  void PlayLeg() {
    double end_s = std::min(spec_.length_s, next_failure_s_);
    size_t stop = spec_.stops.size();
    for (size_t i = 0; i < next_stops_.size(); ++i) {
      if (const double at_s = std::max(next_stops_[i], time_s_); at_s < end_s) {
        end_s = at_s;
        stop = i;
      }
    }
    const bool grows = replicas_ < spec_.job.replicas && !returns_.empty() &&
                       std::max(returns_.top(), time_s_) < end_s;
    if (grows) end_s = std::max(returns_.top(), time_s_);
    Train(end_s);
    if (time_s_ >= spec_.length_s) return;
    if (grows) {
      Grow();
    } else if (stop < spec_.stops.size()) {
      Stop(stop);
    } else {
      Fail();
      Recover(true);
    }
  }

  void Train(double end_s) {
    const double step_s =
        spec_.step_s * StepStretch(spec_.job, spec_.recovery.when_short, replicas_);
    const double worth =
        StepWorth(spec_.job, spec_.recovery.when_short, replicas_) * spec_.step_s / step_s;
    const CheckpointCycle cycle(spec_.tiers, step_s);
    const double elapsed_s = end_s - time_s_;
    const CheckpointCycle::Position position = cycle.At(elapsed_s);
    const Done before = done_;
    const auto after = [&](double trained_s) {
      return Done{before.trained_s + trained_s, before.worth_s + trained_s * worth};
    };
    for (size_t i = 0; i < spec_.tiers.size(); ++i) {
      if (const std::optional<double> saved = cycle.LastSave(i, elapsed_s); saved.has_value()) {
        saves_[i] = after(*saved);
      }
      result_.saves[i] += cycle.SavesOf(i, elapsed_s);
    }
    done_ = after(position.trained_s);
    Lose(Cause::kCheckpoints, position.stalled_s);
    Lose(Cause::kTraffic, position.dragged_s);
    const double start_s = time_s_;
    time_s_ = end_s;
    Tell(start_s, "training",
         absl::StrCat(replicas_, " of ", spec_.job.replicas, " replicas, ",
                      static_cast<int64_t>(position.trained_s / step_s), " steps"));
  }

  // Passes so much time, unless a failure or the end comes first.
  Outcome Spend(Cause cause, double seconds, absl::string_view detail = "") {
    const double start_s = time_s_;
    const double end_s = std::min({start_s + seconds, next_failure_s_, spec_.length_s});
    time_s_ = end_s;
    Lose(cause, end_s - start_s);
    Tell(start_s, NameOf(cause), detail);
    if (end_s >= spec_.length_s) return Outcome::kEnded;
    return end_s < start_s + seconds ? Outcome::kFailed : Outcome::kDone;
  }

  // What fails now, and what is lost with it.
  void Fail() {
    double place = which_.Uniform() * per_second_;
    size_t failed = 0;
    for (; failed + 1 < spec_.failures.size(); ++failed) {
      const FailureRate& rate = spec_.failures[failed];
      place -= static_cast<double>(rate.component->count(spec_.job)) / rate.mtbf_s;
      if (place <= 0) break;
    }
    const Component& component = *spec_.failures[failed].component;
    ++result_.failures[failed];
    failed_ = component.name;
    next_failure_s_ = NextArrival();
    if (component.loss != Loss::kProcesses) {
      TakeHosts(component.loss == Loss::kRack ? spec_.job.hosts_per_rack : 1);
    }
    FallBack(component.loss);
  }

  void TakeHosts(int64_t count) {
    count = std::min(count, std::min(hosts_, spec_.job.hosts));
    const double back_s =
        time_s_ + (spec_.recovery.repair_s > 0 ? repairs_.Exponential(spec_.recovery.repair_s) : 0);
    for (int64_t i = 0; i < count; ++i) returns_.push(back_s);
    hosts_ -= count;
    swaps_ = true;
  }

  // To the latest checkpoint that such a loss leaves, or to the beginning.
  void FallBack(Loss loss) {
    Done best;
    loads_s_ = 0;
    for (size_t i = 0; i < saves_.size(); ++i) {
      if (spec_.tiers[i].survives < loss) saves_[i].reset();
      if (!saves_[i].has_value() || saves_[i]->trained_s < best.trained_s) continue;
      // Of two that hold the same, the one that is read sooner.
      const bool same = saves_[i]->trained_s == best.trained_s && loads_s_ > 0;
      loads_s_ = same ? std::min(loads_s_, spec_.tiers[i].load_s) : spec_.tiers[i].load_s;
      best = *saves_[i];
    }
    Lose(Cause::kRework, done_.trained_s - best.trained_s);
    done_ = best;
  }

  void Recover(bool failed) {
    Outcome outcome = RecoverOnce(failed);
    while (outcome == Outcome::kFailed) {
      Fail();
      outcome = RecoverOnce(true);
    }
  }

  Outcome RecoverOnce(bool failed) {
    const Recovery& recovery = spec_.recovery;
    if (failed) {
      const Outcome detected = Spend(Cause::kDetection, recovery_.Within(recovery.detect),
                                     absl::StrCat(failed_, " failed"));
      if (detected != Outcome::kDone) return detected;
    }
    const Outcome found = FindHosts();
    if (found != Outcome::kDone) return found;
    double restart_s = recovery_.Within(recovery.restart);
    if (swaps_) restart_s += recovery_.Within(recovery.swap);
    const Outcome restarted = Spend(Cause::kRestart, restart_s, swaps_ ? "with other hosts" : "");
    if (restarted != Outcome::kDone) return restarted;
    swaps_ = false;
    return Spend(Cause::kLoading, loads_s_);
  }

  void TakeBack() {
    for (; !returns_.empty() && returns_.top() <= time_s_; returns_.pop()) ++hosts_;
  }

  Outcome FindHosts() {
    TakeBack();
    const int64_t wanted = spec_.recovery.when_short == WhenShort::kWait
                               ? spec_.job.replicas
                               : std::min<int64_t>(spec_.job.replicas, 1);
    while (ReplicasOn(spec_.job, hosts_) < wanted) {
      const Outcome waited = Spend(Cause::kHosts, returns_.top() - time_s_, "none is spare");
      if (waited != Outcome::kDone) return waited;
      TakeBack();
    }
    SetReplicas(ReplicasOn(spec_.job, hosts_));
    return Outcome::kDone;
  }

  // Fewer hosts fail less often; what is left until the next failure stretches.
  void SetReplicas(int64_t replicas) {
    const double stretch = static_cast<double>(replicas_) / static_cast<double>(replicas);
    if (replicas != replicas_ && next_failure_s_ < kNever) {
      next_failure_s_ = time_s_ + (next_failure_s_ - time_s_) * stretch;
    }
    replicas_ = replicas;
  }

  // The tier that survives most; a checkpoint there that is waited for.
  std::optional<size_t> SafestTier() const {
    std::optional<size_t> safest;
    for (size_t i = 0; i < spec_.tiers.size(); ++i) {
      if (!safest.has_value() || spec_.tiers[i].survives > spec_.tiers[*safest].survives) {
        safest = i;
      }
    }
    return safest;
  }
  double CostOfSave(size_t tier) const {
    return spec_.tiers[tier].stall_s + spec_.tiers[tier].write_s;
  }
  Outcome Save(size_t tier, absl::string_view when) {
    const Outcome saved = Spend(Cause::kCheckpoints, CostOfSave(tier), when);
    if (saved == Outcome::kDone) {
      saves_[tier] = done_;
      ++result_.saves[tier];
    }
    return saved;
  }

  // Repaired hosts join: from a checkpoint, if there are enough for a replica more.
  void Grow() {
    TakeBack();
    if (ReplicasOn(spec_.job, hosts_) <= replicas_) return;
    const std::optional<size_t> tier = SafestTier();
    if (!tier.has_value()) return;  // all would begin anew
    const Outcome saved = Save(*tier, "before hosts join");
    if (saved == Outcome::kEnded) return;
    if (saved == Outcome::kFailed) {
      Fail();
    } else {
      loads_s_ = spec_.tiers[*tier].load_s;
    }
    Recover(saved == Outcome::kFailed);
  }

  void Stop(size_t number) {
    const PlannedStop& stop = spec_.stops[number];
    ++result_.planned_stops;
    const std::optional<size_t> tier = SafestTier();
    // Hosts go, and with them what only they have.
    if (tier.has_value() && spec_.tiers[*tier].survives == Loss::kRack &&
        CostOfSave(*tier) <= stop.notice_s) {
      const Outcome saved = Save(*tier, "before a stop");
      if (saved == Outcome::kEnded) return;
      if (saved == Outcome::kFailed) {
        Fail();  // and the stop comes as it would have
      }
    }
    FallBack(Loss::kRack);
    // Hosts that are away do not fail for this job.
    const double away_s = std::min(stops_.Within(stop.away), spec_.length_s - time_s_);
    next_failure_s_ += away_s;
    const Cause cause = stop.random ? Cause::kPreemption : Cause::kMaintenance;
    const Outcome away = Spend(cause, away_s);
    next_stops_[number] =
        std::max(time_s_, stop.random ? NextStop(stop) : next_stops_[number] + stop.every_s);
    if (away != Outcome::kEnded) Recover(false);
  }

  const RunSpec& spec_;
  std::vector<Episode>* episodes_;
  Draws arrivals_, which_, recovery_, repairs_, stops_;
  double per_second_;
  double time_s_ = 0;
  double next_failure_s_ = kNever;
  std::vector<double> next_stops_;
  int64_t hosts_;     // in working order, spare ones too
  int64_t replicas_;  // that train
  std::priority_queue<double, std::vector<double>, std::greater<>> returns_;  // of hosts
  Done done_;
  std::vector<std::optional<Done>> saves_;  // by tier: what can be read
  double loads_s_ = 0;                      // the checkpoint that recovery reads
  bool swaps_ = false;                      // whether hosts were lost since training went on
  absl::string_view failed_;
  TrialResult result_;
};

}  // namespace
}  // namespace trial_cc

absl::string_view NameOf(Cause cause) { return trial_cc::kNames[static_cast<size_t>(cause)]; }
absl::string_view TextOf(Cause cause) { return trial_cc::kTexts[static_cast<size_t>(cause)]; }

TrialResult PlayTrial(const RunSpec& spec, uint64_t seed, uint64_t trial,
                      std::vector<Episode>* episodes) {
  return trial_cc::Trial(spec, seed, trial, episodes).Play();
}

}  // namespace orrery::simulator::goodput
