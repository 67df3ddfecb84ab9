#include "transforms/stages/cost_division.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "support/check.h"
#include "transforms/stages/stage_timing.h"
#include "transforms/strategies/stage_program.h"

namespace orrery::transforms {
namespace cost_division_cc {
namespace {

using strategies::StageDivision;
using strategies::StageProblem;
using strategies::StageWeights;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kAlike = 1e-9;
// Of all divisions that are timed together: a few milliseconds.
constexpr size_t kMostTimedSteps = 400'000;

// What runs of units cost, found once.
class UnitSums {
 public:
  explicit UnitSums(const UnitCosts& costs) {
    Add(costs.forward, &StageSeconds::forward);
    Add(costs.input_gradient, &StageSeconds::input_gradient);
    Add(costs.weight_gradient, &StageSeconds::weight_gradient);
    Add(costs.update, &StageSeconds::update);
  }

  size_t units() const { return before_.size() - 1; }
  StageSeconds Of(int32_t begin, int32_t end) const {
    const StageSeconds &from = before_[static_cast<size_t>(begin)],
                       &to = before_[static_cast<size_t>(end)];
    return {.forward = to.forward - from.forward,
            .input_gradient = to.input_gradient - from.input_gradient,
            .weight_gradient = to.weight_gradient - from.weight_gradient,
            .update = to.update - from.update};
  }

 private:
  void Add(const std::vector<double>& column, double StageSeconds::*seconds) {
    before_.resize(column.size() + 1);
    for (size_t i = 0; i < column.size(); ++i) {
      before_[i + 1].*seconds = before_[i].*seconds + column[i];
    }
  }

  std::vector<StageSeconds> before_;  // of all units before each
};

class Divider {
 public:
  Divider(std::span<const StageUnit> units, const UnitCosts& costs, const StageOptions& options)
      : units_(units),
        costs_(costs),
        options_(options),
        choice_(options.choice),
        stages_(static_cast<int32_t>(options.stages)),
        sums_(costs),
        problem_(MakeProblem()),
        weights_(problem_) {}

  UnitDivisions Run() {
    const StageDivision fastest = Fastest();
    const StageDivision equal = weights_.Weigh(EqualLayers());
    limit_ = std::max(problem_.memory_limit, fastest.most_memory);
    const size_t steps = choice_.schedule == nullptr ? 0 : StepCount(*choice_.schedule);
    if (steps > 0 && steps <= kMostStepsToTime) FindTimer();
    const double of_equal = Fits(equal) ? Seconds(equal, kNever) : kNever;
    Best best{.division = fastest, .seconds = Seconds(fastest, kNever)};
    if (of_equal <= best.seconds * (1 + kAlike)) best = {.division = equal, .seconds = of_equal};
    if (timer_ != nullptr) Hasten(kMostTimedSteps / steps, best);
    UnitDivisions found{.fastest = best.division.begins, .leanest = {}};
    const double enough = kAboutAsFast * best.seconds;
    Save(timer_ != nullptr ? kMostTimedSteps / steps : kMostTimedSteps, enough, best);
    const bool as_good =
        of_equal <= enough && equal.most_memory <= best.division.most_memory * (1 + kAlike);
    found.leanest = as_good ? equal.begins : best.division.begins;
    return found;
  }

 private:
  struct Best {
    StageDivision division;
    double seconds = kNever;
  };

  // Of those within the limit, which is set here, as it is between what others need.
  StageDivision Fastest() {
    StageDivision fastest = strategies::DivideByCost(problem_).value();
    if (!choice_.memory_share.has_value()) return fastest;
    problem_.memory_limit = 1;  // to which none keeps
    const StageDivision leanest = strategies::DivideByCost(problem_).value();
    const double more = fastest.most_memory - leanest.most_memory;
    problem_.memory_limit = leanest.most_memory + *choice_.memory_share * std::max(0.0, more);
    return strategies::DivideByCost(problem_).value();
  }

  bool Fits(const StageDivision& division) const {
    return problem_.memory_limit == 0 || division.most_memory <= limit_;
  }

  // Of a step in the order of its schedule, or of a microbatch on the slowest rank; where that is
  // not less than `limit`, kNever.
  double Seconds(const StageDivision& division, double limit) {
    if (timer_ != nullptr) return timer_->SecondsBelow(limit, SecondsOf(division.begins));
    return division.slowest_rank < limit ? division.slowest_rank : kNever;
  }

  // Tries neighbours as long as one of them is faster.
  void Hasten(size_t trials, Best& best) {
    const auto improves = [&](std::vector<int32_t> begins) {
      StageDivision moved = weights_.Weigh(std::move(begins));
      if (!Fits(moved)) return false;
      --trials;
      const double lasts = Seconds(moved, best.seconds * (1 - kAlike));
      if (lasts == kNever) return trials == 0;
      best = {.division = std::move(moved), .seconds = lasts};
      return true;
    };
    for (int32_t stride = FirstStride(); stride > 0; stride /= 2) {
      while (trials > 0 && AnyNeighbour(best.division, stride, improves)) continue;
    }
  }

  // Tries neighbours as long as one of them needs less memory and not more than `enough` seconds.
  void Save(size_t trials, double enough, Best& best) {
    const auto saves = [&](std::vector<int32_t> begins) {
      StageDivision moved = weights_.Weigh(std::move(begins));
      --trials;
      if (moved.most_memory >= best.division.most_memory * (1 - kAlike)) return trials == 0;
      const double lasts = Seconds(moved, enough * (1 + kAlike));
      if (lasts == kNever) return trials == 0;
      best = {.division = std::move(moved), .seconds = lasts};
      return true;
    };
    for (int32_t stride = FirstStride(); stride > 0; stride /= 2) {
      while (trials > 0 && AnyNeighbour(best.division, stride, saves)) continue;
    }
  }

  int32_t FirstStride() const {
    return strategies::FirstStride(static_cast<int32_t>(sums_.units()), stages_);
  }

  void FindTimer() {
    timer_ = choice_.timer;
    if (timer_ == nullptr) timer_ = &own_timer_.emplace(*choice_.schedule, stages_);
    ORRERY_CHECK(timer_->stages() == stages_) << "a timer of " << timer_->stages() << " stages";
  }

  // Whether `found` says so of any division in which one stage has `stride` units more, and another
  // one less; they are tried until one is.
  template <typename Found>
  bool AnyNeighbour(const StageDivision& division, int32_t stride, const Found& found) const {
    const std::vector<int32_t> from = division.begins;
    const auto units = static_cast<int32_t>(sums_.units());
    for (size_t length = 1; length < from.size(); ++length) {
      for (size_t first = 1; first + length <= from.size(); ++first) {
        for (const int32_t by : {-stride, stride}) {
          std::vector<int32_t> begins = from;
          for (size_t stage = first; stage < first + length; ++stage) begins[stage] += by;
          const int32_t end = first + length < begins.size() ? begins[first + length] : units;
          if (begins[first] <= begins[first - 1] || begins[first + length - 1] >= end) continue;
          if (found(std::move(begins))) return true;
        }
      }
    }
    return false;
  }

  int32_t RankOf(int32_t stage) const {
    return options_.ranks.empty() ? stage : options_.ranks[static_cast<size_t>(stage)];
  }

  double Send(double bytes, int32_t from, int32_t to) const {
    if (!choice_.send_seconds || from == to) return 0;
    return choice_.send_seconds(Bytes(static_cast<int64_t>(bytes)), from, to);
  }

  std::vector<StageSeconds> SecondsOf(const std::vector<int32_t>& begins) const {
    std::vector<StageSeconds> stages;
    for (size_t stage = 0; stage < begins.size(); ++stage) {
      const auto last = static_cast<int32_t>(sums_.units());
      const int32_t end = stage + 1 < begins.size() ? begins[stage + 1] : last;
      stages.push_back(sums_.Of(begins[stage], end));
      if (stage == 0) continue;
      const auto to = static_cast<int32_t>(stage);
      const double bytes = costs_.boundary_bytes[static_cast<size_t>(begins[stage])];
      stages.back().receive = Send(bytes, RankOf(to - 1), RankOf(to));
    }
    return stages;
  }

  // Equally many layers, where there are enough; else equally many units.
  std::vector<int32_t> EqualLayers() const {
    std::vector<int32_t> layers;
    for (size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].layer) layers.push_back(static_cast<int32_t>(i));
    }
    const auto count = static_cast<int32_t>(layers.size());
    if (count < stages_)
      return strategies::EqualBegins(static_cast<int32_t>(units_.size()), stages_);
    std::vector<int32_t> begins = strategies::EqualBegins(count, stages_);
    for (int32_t& begin : begins) begin = begin == 0 ? 0 : layers[static_cast<size_t>(begin)];
    return begins;
  }

  StageProblem MakeProblem() const {
    StageProblem problem{.seconds = costs_.Seconds(options_.microbatches),
                         .boundary_seconds = {},
                         .boundary_bytes = costs_.boundary_bytes,
                         .state_bytes = costs_.state_bytes,
                         .kept_bytes = costs_.kept_bytes,
                         .stages = stages_,
                         .ranks = options_.ranks,
                         .weight_bytes = costs_.weight_bytes};
    // Of neighbours; between which of them is known once a stage is. Most send equally much.
    double known = -1, lasts = 0;
    for (const double bytes : problem.boundary_bytes) {
      if (bytes != known) lasts = Send(bytes, 0, 1);
      known = bytes;
      problem.boundary_seconds.push_back(lasts);
    }
    for (int32_t stage = 0; stage < stages_; ++stage) {
      const auto rank = static_cast<size_t>(RankOf(stage));
      const auto& versions = choice_.weight_versions;
      if (!choice_.in_flight.empty()) problem.in_flight.push_back(choice_.in_flight[rank]);
      if (!versions.empty()) problem.more_versions.push_back(versions[rank] - 1);
    }
    return problem;
  }

  const std::span<const StageUnit> units_;
  const UnitCosts& costs_;
  const StageOptions& options_;
  const StageChoice& choice_;
  const int32_t stages_;
  const UnitSums sums_;
  StageProblem problem_;
  const StageWeights weights_;  // of the problem, whatever its limit
  double limit_ = 0;            // of memory
  std::optional<StepTimer> own_timer_;
  StepTimer* timer_ = nullptr;  // none: slowest ranks alone are compared
};

}  // namespace
}  // namespace cost_division_cc

UnitDivisions DivideUnits(std::span<const StageUnit> units, const UnitCosts& costs,
                          const StageOptions& options) {
  return cost_division_cc::Divider(units, costs, options).Run();
}

}  // namespace orrery::transforms
