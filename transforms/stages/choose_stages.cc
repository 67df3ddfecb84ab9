#include "transforms/stages/choose_stages.h"

#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/status.h"
#include "transforms/stages/stage_costs.h"
#include "transforms/stages/stage_cuts.h"
#include "transforms/stages/stage_timing.h"
#include "transforms/strategies/stage_program.h"

namespace orrery::transforms {
namespace choose_stages_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;
using strategies::StageDivision;
using strategies::StageProblem;

// Slower by less, equally many layers are as good: prices are not that exact.
constexpr double kWorthIt = 1.002;
constexpr double kAlike = 1e-9;
// Of all divisions that are timed together: a few milliseconds.
constexpr size_t kMostTimedSteps = 400'000;
// Of one division: with more, how its slowest rank compares is enough.
constexpr size_t kMostStepsToTime = 2'000'000;

class Chooser {
 public:
  Chooser(const Function& function, const IdTable<OpId, StepPhase>& phase,
          const ForwardChain& chain, const StageOptions& options)
      : function_(function),
        phase_(phase),
        chain_(chain),
        options_(options),
        choice_(options.choice),
        stages_(static_cast<int32_t>(options.stages)) {}

  absl::StatusOr<std::vector<size_t>> Run() {
    if (!choice_.split_at.empty()) return AtNames();
    if (!choice_.layers_per_stage.empty()) return ByCounts();
    if (choice_.by == StagesBy::kFlops) return ByFlops();
    if (choice_.by == StagesBy::kLayers) return ByLayers();
    return ByCost(choice_.by == StagesBy::kCost ? UnitSize::kLayers : UnitSize::kParts);
  }

 private:
  absl::Status Indivisible(std::string detail) const {
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kDivisibility, .detail = std::move(detail)});
  }

  // Runs of the matched text, which neighbouring ops of one layer have in common.
  absl::StatusOr<std::vector<size_t>> AtNames() const {
    const RE2 pattern(absl::StrCat("(", choice_.split_at, ")"), RE2::Quiet);
    if (!pattern.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("`split-at` '", choice_.split_at,
                                                     "': ", pattern.error(),
                                                     "; wanted a regular expression"));
    }
    std::vector<size_t> cuts;
    std::vector<std::string> names;
    std::string last;
    for (size_t position = 0; position < chain_.ops.size(); ++position) {
      bool named = false, matched = false;
      std::string text, name;
      for (int32_t i = 0; i < function_.result_count(chain_.ops[position]) && !matched; ++i) {
        name = std::string(function_.value_name(function_.result(chain_.ops[position], i)));
        named = named || !name.empty();
        matched = !name.empty() && RE2::PartialMatch(name, pattern, &text);
      }
      if (!named) continue;
      if (matched && text != last && position > 0) {
        cuts.push_back(position);
        names.push_back(name);
      }
      last = matched ? text : "";
    }
    if (static_cast<int32_t>(cuts.size()) + 1 == stages_) return cuts;
    constexpr size_t kShown = 8;
    const std::string more = names.size() > kShown ? ", …" : "";
    names.resize(std::min(names.size(), kShown));
    return Indivisible(absl::StrCat("`split-at` '", choice_.split_at, "' matches at ", cuts.size(),
                                    " positions", names.empty() ? "" : ": ",
                                    absl::StrJoin(names, ", "), more, "; wanted ", stages_ - 1,
                                    " for ", stages_, " stages"));
  }

  absl::StatusOr<std::vector<size_t>> ByCounts() const {
    const std::vector<StageUnit> units = FindUnits(function_, chain_, UnitSize::kLayers);
    const std::vector<size_t> layers = Layers(units);
    const auto& counts = choice_.layers_per_stage;
    const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    const std::string text = absl::StrCat("`layers-per-stage` ", absl::StrJoin(counts, ","));
    if (static_cast<int32_t>(counts.size()) != stages_) {
      return Indivisible(
          absl::StrCat(text, " is for ", counts.size(), " stages; wanted ", stages_));
    }
    if (std::ranges::any_of(counts, [](int64_t count) { return count < 1; })) {
      return Indivisible(absl::StrCat(text, "; wanted at least 1 layer in each stage"));
    }
    if (sum != static_cast<int64_t>(layers.size())) {
      return Indivisible(
          absl::StrCat(text, " adds up to ", sum, " layers; the model has ", layers.size()));
    }
    std::vector<size_t> cuts;
    for (size_t stage = 0, layer = 0; stage + 1 < counts.size(); ++stage) {
      layer += static_cast<size_t>(counts[stage]);
      cuts.push_back(layers[layer]);
    }
    return cuts;
  }

  static std::vector<size_t> Layers(const std::vector<StageUnit>& units) {
    std::vector<size_t> layers;
    for (const StageUnit& unit : units) {
      if (unit.layer) layers.push_back(unit.begin);
    }
    return layers;
  }

  // Products that are all alike are counted: then a stage gets a whole number of them.
  absl::StatusOr<std::vector<size_t>> ByFlops() const {
    const auto count = static_cast<int64_t>(chain_.products.size());
    std::vector<double> flops;
    for (const size_t position : chain_.products) {
      flops.push_back(FlopsOf(function_, chain_.ops[position]));
    }
    const bool uniform =
        std::adjacent_find(flops.begin(), flops.end(), std::not_equal_to<>()) == flops.end();
    if (!uniform) {
      std::vector<size_t> cuts = FindCuts(function_, chain_.ops, chain_.from_data, stages_);
      if (static_cast<int32_t>(cuts.size()) + 1 == stages_) return cuts;
      return ByCost(UnitSize::kParts);
    }
    if (options_.equal_stages ? count == 0 || count % stages_ != 0 : count < stages_) {
      return Indivisible(absl::StrCat(
          count, " layers ", options_.equal_stages ? "do not divide into " : "are too few for ",
          stages_, " stages"));
    }
    return EquallyMany(chain_.products);
  }

  std::vector<size_t> EquallyMany(const std::vector<size_t>& layers) const {
    std::vector<size_t> cuts;
    for (const int32_t begin :
         strategies::EqualBegins(static_cast<int32_t>(layers.size()), stages_)) {
      if (begin > 0) cuts.push_back(layers[static_cast<size_t>(begin)]);
    }
    return cuts;
  }

  absl::StatusOr<std::vector<size_t>> ByLayers() const {
    for (const UnitSize size : {UnitSize::kLayers, UnitSize::kParts, UnitSize::kProducts}) {
      const std::vector<size_t> layers = Layers(FindUnits(function_, chain_, size));
      if (layers.size() >= static_cast<size_t>(stages_)) return EquallyMany(layers);
    }
    return TooFew();
  }

  absl::Status TooFew() const {
    return Indivisible(absl::StrCat(chain_.ops.size(), " ops with ", chain_.products.size(),
                                    " matrix products do not cut into ", stages_, " stages"));
  }

  absl::StatusOr<std::vector<size_t>> ByCost(UnitSize least) const {
    for (const UnitSize size : {UnitSize::kLayers, UnitSize::kParts, UnitSize::kProducts}) {
      if (size < least) continue;
      std::vector<StageUnit> units = FindUnits(function_, chain_, size);
      if (units.size() < static_cast<size_t>(stages_)) continue;
      ORRERY_ASSIGN_OR_RETURN(const StagePlan plan, PlaceUnits(function_, phase_, chain_,
                                                               options_.split_backward, units));
      if (units.size() < static_cast<size_t>(stages_)) continue;
      return Divide(units, plan);
    }
    return TooFew();
  }

  std::vector<size_t> Divide(const std::vector<StageUnit>& units, const StagePlan& plan) const {
    const UnitCosts costs = CostsOf(function_, chain_, units, plan, choice_.prices);
    const StageProblem problem = MakeProblem(costs);
    const StageDivision fastest = strategies::DivideByCost(problem).value();
    const StageDivision equal = strategies::Weigh(problem, EqualLayers(units));
    const StageDivision chosen = Better(problem, costs, equal, fastest);
    std::vector<size_t> cuts;
    for (const int32_t begin : chosen.begins) {
      if (begin > 0) cuts.push_back(units[static_cast<size_t>(begin)].begin);
    }
    return cuts;
  }

  // Equally many layers, unless another division is worth it; what is timed in its schedule.
  StageDivision Better(const StageProblem& problem, const UnitCosts& costs,
                       const StageDivision& equal, const StageDivision& fastest) const {
    const double limit = std::max(problem.memory_limit, fastest.most_memory);
    const auto fits = [&](const StageDivision& division) {
      return problem.memory_limit == 0 || division.most_memory <= limit;
    };
    const size_t steps = ScheduledSteps();
    if (steps == 0 || steps > kMostStepsToTime) {
      const bool as_fast = equal.slowest_rank <= kWorthIt * fastest.slowest_rank &&
                           equal.slowest_stage <= kWorthIt * fastest.slowest_stage;
      return fits(equal) && as_fast ? equal : fastest;
    }
    StepTimer timer(*choice_.schedule, static_cast<int32_t>(fastest.begins.size()));
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const auto seconds = [&](const StageDivision& division, double limit) {
      return timer.SecondsBelow(limit, SecondsOf(costs, division.begins));
    };
    const double of_equal = fits(equal) ? seconds(equal, kNever) : kNever;
    double of_best = seconds(fastest, kNever);
    StageDivision best = fastest;
    if (of_equal < of_best) {
      best = equal;
      of_best = of_equal;
    }
    size_t trials = kMostTimedSteps / steps;
    const auto improves = [&](std::vector<int32_t> begins) {
      const StageDivision moved = strategies::Weigh(problem, std::move(begins));
      if (!fits(moved)) return false;
      --trials;
      const double lasts = seconds(moved, of_best * (1 - kAlike));
      if (lasts == kNever) return trials == 0;
      best = moved;
      of_best = lasts;
      return true;
    };
    while (trials > 0 && AnyNeighbour(best, problem.seconds.size(), improves)) continue;
    return of_equal <= kWorthIt * of_best ? equal : best;
  }

  // 0: there is no schedule.
  size_t ScheduledSteps() const {
    size_t steps = 0;
    if (choice_.schedule == nullptr) return steps;
    for (const auto& order : choice_.schedule->orders) steps += order.size();
    return steps;
  }

  // Whether `found` says so of any division in which one stage has one unit more, and another one
  // less; they are tried until one is.
  template <typename Found>
  static bool AnyNeighbour(const StageDivision& division, size_t units, const Found& found) {
    const std::vector<int32_t> from = division.begins;
    for (size_t length = 1; length < from.size(); ++length) {
      for (size_t first = 1; first + length <= from.size(); ++first) {
        for (const int32_t by : {-1, 1}) {
          std::vector<int32_t> begins = from;
          for (size_t stage = first; stage < first + length; ++stage) begins[stage] += by;
          const auto end =
              first + length < begins.size() ? begins[first + length] : static_cast<int32_t>(units);
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

  std::vector<StageSeconds> SecondsOf(const UnitCosts& costs,
                                      const std::vector<int32_t>& begins) const {
    std::vector<StageSeconds> stages(begins.size());
    for (size_t stage = 0; stage < begins.size(); ++stage) {
      const auto begin = static_cast<size_t>(begins[stage]);
      const size_t end =
          stage + 1 < begins.size() ? static_cast<size_t>(begins[stage + 1]) : costs.forward.size();
      for (size_t unit = begin; unit < end; ++unit) {
        stages[stage].forward += costs.forward[unit];
        stages[stage].input_gradient += costs.input_gradient[unit];
        stages[stage].weight_gradient += costs.weight_gradient[unit];
        stages[stage].update += costs.update[unit];
      }
      const auto to = static_cast<int32_t>(stage);
      if (stage > 0) {
        stages[stage].receive = Send(costs.boundary_bytes[begin], RankOf(to - 1), RankOf(to));
      }
    }
    return stages;
  }

  // Equally many layers, where there are enough; else equally many units.
  std::vector<int32_t> EqualLayers(const std::vector<StageUnit>& units) const {
    std::vector<int32_t> layers;
    for (size_t i = 0; i < units.size(); ++i) {
      if (units[i].layer) layers.push_back(static_cast<int32_t>(i));
    }
    const auto count = static_cast<int32_t>(layers.size());
    if (count < stages_)
      return strategies::EqualBegins(static_cast<int32_t>(units.size()), stages_);
    std::vector<int32_t> begins = strategies::EqualBegins(count, stages_);
    for (int32_t& begin : begins) begin = begin == 0 ? 0 : layers[static_cast<size_t>(begin)];
    return begins;
  }

  StageProblem MakeProblem(const UnitCosts& costs) const {
    StageProblem problem{.seconds = costs.Seconds(options_.microbatches),
                         .boundary_seconds = {},
                         .boundary_bytes = costs.boundary_bytes,
                         .state_bytes = costs.state_bytes,
                         .kept_bytes = costs.kept_bytes,
                         .stages = stages_,
                         .ranks = options_.ranks,
                         .weight_bytes = costs.weight_bytes};
    // Of neighbours; between which of them is known once a stage is.
    for (const double bytes : problem.boundary_bytes) {
      problem.boundary_seconds.push_back(Send(bytes, 0, 1));
    }
    problem.memory_limit = static_cast<double>(choice_.memory_limit.count());
    for (int32_t stage = 0; stage < stages_; ++stage) {
      const auto rank = static_cast<size_t>(RankOf(stage));
      const auto& versions = choice_.weight_versions;
      if (!choice_.in_flight.empty()) problem.in_flight.push_back(choice_.in_flight[rank]);
      if (!versions.empty()) problem.more_versions.push_back(versions[rank] - 1);
    }
    return problem;
  }

  const Function& function_;
  const IdTable<OpId, StepPhase>& phase_;
  const ForwardChain& chain_;
  const StageOptions& options_;
  const StageChoice& choice_;
  const int32_t stages_;
};

}  // namespace
}  // namespace choose_stages_cc

absl::StatusOr<std::vector<size_t>> ChooseStages(const ir::Function& function,
                                                 const IdTable<ir::OpId, StepPhase>& phase,
                                                 const ForwardChain& chain,
                                                 const StageOptions& options) {
  return choose_stages_cc::Chooser(function, phase, chain, options).Run();
}

}  // namespace orrery::transforms
