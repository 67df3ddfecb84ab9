#include "search/attempts.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "search/bounds/least_memory.h"
#include "search/cuts/cut_choice.h"
#include "search/cuts/way_facts.h"
#include "support/status.h"
#include "transforms/schedules/orders.h"
#include "transforms/stages/cost_division.h"

namespace orrery::search {
namespace attempts_cc {
namespace {

using transforms::ContextAttention;
using transforms::SequenceParallel;

bool ShardsByCost(const ParallelPlan& plan) {
  return !plan.by_products() && plan.most_hp() * plan.cp * plan.ep > 1;
}

// What travels behind attention, no price tells before all axes are sharded.
std::vector<ContextAttention> FurtherAttentions(const ParallelPlan& plan) {
  const bool open = plan.cp > 1 && plan.context_attention == ContextAttention::kAuto;
  if (!open) return {};
  return {ContextAttention::kAllToAll, ContextAttention::kAllGather, ContextAttention::kRing};
}

// Whether Megatron's pattern is another choice: prices know of no overlap, so that it can be the
// better one.
bool HasPattern(const ParallelPlan& plan) {
  return !plan.by_pattern() && plan.most_hp() * plan.cp * plan.ep > 1 && plan.pins.empty();
}

// Whether a plan leaves it open what its ranks of hp do with the sequence.
bool LeavesSequenceOpen(const ParallelPlan& plan) {
  return !plan.by_products() && plan.most_hp() > 1 &&
         plan.sequence_parallel == SequenceParallel::kAuto;
}

// Ways that differ in what is done with the sequence, beside `way`.
std::vector<Way> FurtherSequences(const ParallelPlan& plan, Way way) {
  if (!LeavesSequenceOpen(plan)) return {};
  std::vector<Way> ways;
  if (plan.by_pattern() || !way.by_cost) {
    for (const SequenceParallel sequence : {SequenceParallel::kOff, SequenceParallel::kOn}) {
      if (way.sequence == sequence) continue;
      ways.push_back(way);
      ways.back().sequence = sequence;
    }
    way.sequence = SequenceParallel::kOn;
  }
  way.gathers = true;
  ways.push_back(way);
  return ways;
}

// Whether neither shardings nor stages leave anything to choose.
bool HasOneWay(const PlanPlayer& player) {
  return player.plan().by_products() && !player.weighs_stages();
}

// What the first stage holds at once is for the schedule to say.
int64_t InFlight(const PlanPlayer& player) {
  if (player.plan().pp == 1 || player.ranks().orders.empty()) return 0;
  const int64_t chunks = player.shape().chunks;
  return (transforms::PeakLive(player.ranks().orders.front()) + chunks - 1) / chunks;
}

// Whether the first way needs so much more than there is that no other will fit: of 1,419 plans of
// dense models and mixtures the leanest way needed a sixth of the first at least.
bool IsHopeless(const PlanPlayer& player, Bytes peak) {
  constexpr int64_t kLeastPart = 8;
  const Bytes limit = MemoryLimit(player.setting(), player.plan());
  return limit > Bytes(0) && peak.count() / kLeastPart > limit.count();
}

// Ways to carry out a plan, made one after another, and played where that may matter. Which they
// are, neither a limit of memory nor what is recomputed has a say in: so that more memory is never
// worse.
class Portfolio {
 public:
  explicit Portfolio(PlanPlayer& player) : player_(player), in_flight_(InFlight(player)) {}

  absl::StatusOr<Run> Best() && {
    const ParallelPlan& plan = player_.plan();
    Way first = {.attention = plan.context_attention, .in_flight = in_flight_};
    if (HasOneWay(player_)) return player_.PlayOnly(first);
    absl::Status made = Make(first);
    // Stages of their own shardings may not join by cost where they do by the pattern.
    if (plan.unequal() && HasPattern(plan) && AsInfeasible(made).has_value()) {
      first.by_cost = false;
      const absl::Status other = Make(first);
      if (other.ok() || !AsInfeasible(other).has_value()) made = other;
    }
    ORRERY_RETURN_IF_ERROR(made);
    const Bytes peak = best_.has_value() ? best_->report.peak_memory : facts_.bound;
    const bool hopeless = CannotFit(player_.setting(), plan) || IsHopeless(player_, peak);
    if (!hopeless) ORRERY_RETURN_IF_ERROR(TryOthers(plan, first));
    ORRERY_RETURN_IF_ERROR(PlayPostponed());
    best_->all_ways = all_ways_;
    return *std::move(best_);
  }

 private:
  struct Played {
    Way way;
    WayFacts facts;
  };
  // Of one choice.
  struct Extremes {
    std::optional<Played> fastest, leanest;
  };

  // What each flag could say that the plan leaves out: so that none is better than none.
  absl::Status TryOthers(const ParallelPlan& plan, const Way& first) {
    ORRERY_RETURN_IF_ERROR(TryFrom(plan, first));
    if (HasPattern(plan)) {
      Way pattern = first;
      pattern.by_cost = false;
      ORRERY_RETURN_IF_ERROR(Try(pattern));
      ORRERY_RETURN_IF_ERROR(TryFrom(plan, pattern));
    }
    return player_.weighs_stages() ? TryCuts() : absl::OkStatus();
  }

  // All attentions, and with each of them what else can be done with the sequence: the one that is
  // the fastest with parts need not be that with the whole.
  absl::Status TryFrom(const ParallelPlan& plan, Way way) {
    std::vector<Way> ways;
    for (const ContextAttention attention : FurtherAttentions(plan)) {
      way.attention = attention;
      ORRERY_RETURN_IF_ERROR(Try(way));
      ways.push_back(way);
    }
    if (!of_.fastest.has_value()) return absl::OkStatus();
    for (const Way& best : {of_.leanest->way, of_.fastest->way}) {
      std::erase(ways, best);
      ways.insert(ways.begin(), best);
    }
    ORRERY_RETURN_IF_ERROR(FinishChoice(plan));
    for (size_t i = 0; i < FurtherSequences(plan, way).size(); ++i) {
      for (const Way& with : ways) ORRERY_RETURN_IF_ERROR(Try(FurtherSequences(plan, with)[i]));
      if (of_.fastest.has_value()) ORRERY_RETURN_IF_ERROR(FinishChoice(plan));
    }
    return absl::OkStatus();
  }

  // Where links cost little, what they cost still decides between choices that are alike but for
  // what prices know nothing of, as how long stages are. So the choice for links of half the rate
  // is played, too; and where choosing takes next to nothing, those for more rates, for free links
  // and for dear ones.
  absl::Status TryOtherLinks() {
    constexpr double kLittle = 0.1;
    constexpr int64_t kFewOps = 200;
    if (!ShardsByCost(player_.plan())) return absl::OkStatus();
    std::vector<double> prices;
    if (of_.fastest->facts.communication < kLittle) prices = {2};
    if (std::ssize(player_.setting().step.order()) <= kFewOps) prices = {2, 0.5, 4, 16, 0, 1e6};
    Way way = of_.fastest->way;
    for (const double price : prices) {
      way.link_price = price;
      ORRERY_RETURN_IF_ERROR(Try(way));
    }
    return absl::OkStatus();
  }

  // The pattern leaves nothing to prices of memory.
  absl::Status FinishChoice(const ParallelPlan& plan) {
    ORRERY_RETURN_IF_ERROR(TryOtherLinks());
    const bool by_cost = !plan.by_pattern() && of_.fastest->way.by_cost;
    if (ShardsByCost(plan) && by_cost) ORRERY_RETURN_IF_ERROR(TryWithLess());
    choices_.push_back(std::exchange(of_, {}));
    return absl::OkStatus();
  }

  // The way that `facts_` are of.
  void Count(const Way& way) {
    const Played played{way, facts_};
    const auto faster = [&](const Played& than) { return facts_.fastest < than.facts.fastest; };
    const auto leaner = [&](const Played& than) {
      return facts_.least_peak < than.facts.least_peak;
    };
    if (!of_.fastest.has_value() || faster(*of_.fastest)) of_.fastest = played;
    if (!of_.leanest.has_value() || leaner(*of_.leanest)) of_.leanest = played;
  }

  void Keep(Run run) {
    if (!best_.has_value() || IsBetter(run.report, best_->report)) best_ = std::move(run);
  }

  // What surely does not fit is not played before all ways are known, and then only if none fits.
  absl::Status Make(const Way& way) {
    const bool fits = best_.has_value() && best_->report.fits;
    const ToBeat to_beat = {fits ? std::optional(best_->report.step_time) : std::nullopt};
    absl::StatusOr<Run> run = player_.Play(way, &facts_, to_beat);
    const bool left_out = absl::IsAborted(run.status());
    if (!run.ok() && !left_out) return run.status();
    Count(way);
    if (run.ok()) {
      Keep(*std::move(run));
    } else if (!fits) {
      postponed_.push_back({way, facts_});
    }
    return absl::OkStatus();
  }

  // What is infeasible in this way is passed over; what is known by another counts for both.
  absl::Status Try(const Way& way) {
    const absl::Status made = Make(way);
    if (absl::IsResourceExhausted(made)) {
      all_ways_ = false;
      return absl::OkStatus();
    }
    if (absl::IsCancelled(made)) {
      if (facts_.fastest != Duration()) Count(way);
      return absl::OkStatus();
    }
    return AsInfeasible(made).has_value() ? absl::OkStatus() : made;
  }

  // Of ways that do not fit the leanest is looked for. One is played in any case.
  absl::Status PlayPostponed() {
    if (best_.has_value() && best_->report.fits) return absl::OkStatus();
    std::ranges::stable_sort(postponed_, {}, [](const Played& of) { return of.facts.bound; });
    absl::Status failed;
    for (const Played& of : postponed_) {
      if (best_.has_value() && of.facts.bound > best_->report.peak_memory) break;
      absl::StatusOr<Run> run =
          best_.has_value() ? player_.Play(of.way) : player_.PlayLeftOut(of.way);
      if (run.ok()) {
        Keep(*std::move(run));
        continue;
      }
      if (absl::IsResourceExhausted(run.status())) {
        all_ways_ = false;
      } else if (!AsInfeasible(run.status()).has_value()) {
        return run.status();
      }
      failed.Update(run.status());
    }
    return best_.has_value() ? absl::OkStatus() : failed;
  }

  // Shardings that need less memory, of those that no other beats in both: the one that needs the
  // least, and by what memory is worth between that and the cheapest, what lies there.
  absl::Status TryWithLess() {
    constexpr double kDear = 1e6;  // times what the cheapest costs
    const Played fastest = *of_.fastest;
    const double seconds = fastest.facts.report.seconds, memory = fastest.facts.memory;
    if (memory <= 0 || seconds <= 0) return absl::OkStatus();
    Way way = fastest.way;
    way.memory_price = kDear * seconds / memory;
    ORRERY_RETURN_IF_ERROR(Try(way));
    const double saved = memory - facts_.memory;
    const double lost = facts_.report.seconds - seconds;
    if (saved <= 0 || lost <= 0) return absl::OkStatus();
    way.memory_price = lost / saved;
    return Try(way);
  }

  // Whether another choice is as fast and needs as little.
  bool IsBeaten(size_t choice) const {
    const auto key = [](const Extremes& of) {
      return std::pair(of.fastest->facts.fastest, of.leanest->facts.least_peak);
    };
    const auto [time, peak] = key(choices_[choice]);
    for (size_t other = 0; other < choices_.size(); ++other) {
      const auto [other_time, other_peak] = key(choices_[other]);
      const bool equal = other_time == time && other_peak == peak;
      if (other_time <= time && other_peak <= peak && (!equal || other < choice)) return true;
    }
    return false;
  }

  // Stages that need less memory: of the fastest way and of the leanest of each choice that is the
  // best in something; of the leanest of those about as fast as the fastest in finer steps, so that
  // what fits is by little slower than it would have to be.
  absl::Status TryCuts() {
    constexpr int kCoarse = 2, kFine = 8;
    std::vector<const Extremes*> choices;
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (!IsBeaten(i)) choices.push_back(&choices_[i]);
    }
    const auto time = [](const Extremes* of) { return of->fastest->facts.fastest.seconds(); };
    const double fastest_s =
        choices.empty() ? 0 : time(*std::ranges::min_element(choices, {}, time));
    const auto key = [&](const Extremes* of) {
      const bool about_as_fast = time(of) <= transforms::kAboutAsFast * fastest_s;
      return std::pair(!about_as_fast, of->leanest->facts.least_peak);
    };
    const auto best = std::ranges::min_element(choices, {}, key);
    for (auto choice = choices.begin(); choice != choices.end(); ++choice) {
      const Played &fastest = *(*choice)->fastest, &leanest = *(*choice)->leanest;
      ORRERY_RETURN_IF_ERROR(TryCutsOf(fastest, choice == best ? kFine : kCoarse));
      if (leanest.way == fastest.way) continue;
      ORRERY_RETURN_IF_ERROR(TryCutsOf(leanest, kCoarse));
    }
    return absl::OkStatus();
  }

  // Those that need least, and in equal steps from there to what the way needs without a limit;
  // where the first do not need less, no others are known to, and where they surely do not fit, no
  // others do. The less memory, the slower: so the last steps come first, until one is too slow.
  absl::Status TryCutsOf(const Played& of, int steps) {
    if (IsTooSlow(of.facts)) return absl::OkStatus();
    Way way = of.way;
    way.stage_share = 0;
    ORRERY_RETURN_IF_ERROR(Try(way));
    const Bytes least = facts_.least_peak;
    if (least == Bytes(0) || least >= of.facts.peak || IsTooLarge(facts_)) return absl::OkStatus();
    for (int step = steps - 1; step > 0; --step) {
      way.stage_share = static_cast<double>(step) / steps;
      ORRERY_RETURN_IF_ERROR(Try(way));
      if (IsTooSlow(facts_)) break;
    }
    return absl::OkStatus();
  }

  // Whether what fits is faster by so much that with less memory, too, the way surely is no faster.
  bool IsTooSlow(const WayFacts& facts) const {
    constexpr double kByMuch = 1.02;
    return best_.has_value() && best_->report.fits &&
           facts.least_time.seconds() > kByMuch * best_->report.step_time.seconds();
  }

  // Whether stages that are to need least need so much more than there is that no others fit: what
  // they are chosen by does not tell memory to the last percent.
  bool IsTooLarge(const WayFacts& facts) const {
    constexpr double kByMuch = 1.5;
    const auto limit = static_cast<double>(MemoryLimit(player_.setting(), player_.plan()).count());
    return limit > 0 && static_cast<double>(facts.bound.count()) > kByMuch * limit;
  }

  PlanPlayer& player_;
  const int64_t in_flight_;
  WayFacts facts_;  // of the last way
  Extremes of_;     // the choice that is tried
  std::vector<Extremes> choices_;
  std::vector<Played> postponed_;  // that do not fit
  bool all_ways_ = true;
  std::optional<Run> best_;
};

}  // namespace
}  // namespace attempts_cc

absl::StatusOr<Run> BestRun(PlanPlayer& player) { return attempts_cc::Portfolio(player).Best(); }

}  // namespace orrery::search
