#include "transforms/stages/choose_stages.h"

#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/status.h"
#include "transforms/stages/cost_division.h"
#include "transforms/stages/stage_costs.h"
#include "transforms/stages/stage_cuts.h"
#include "transforms/strategies/stage_program.h"

namespace orrery::transforms {
namespace choose_stages_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

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

  absl::StatusOr<std::vector<size_t>> Run() const {
    if (choice_.positions.has_value()) return *choice_.positions;
    if (!choice_.split_at.empty()) return AtNames();
    if (!choice_.layers_per_stage.empty()) return ByCounts();
    if (choice_.by == StagesBy::kFlops) return ByFlops();
    if (choice_.by == StagesBy::kLayers) return ByLayers();
    ORRERY_ASSIGN_OR_RETURN(std::vector<std::vector<size_t>> cuts,
                            ByCost(choice_.by == StagesBy::kCost ? kWhole : kCut));
    return std::move(cuts.back());
  }

  // The first is always there.
  absl::StatusOr<std::vector<std::vector<size_t>>> RunAll() const {
    const bool weighs = choice_.by == StagesBy::kCost || choice_.by == StagesBy::kOps;
    const bool given = choice_.positions.has_value() || !choice_.split_at.empty() ||
                       !choice_.layers_per_stage.empty();
    std::vector<std::vector<size_t>> cuts;
    if (!weighs || given) {
      ORRERY_ASSIGN_OR_RETURN(cuts.emplace_back(), Run());
      return cuts;
    }
    if (choice_.by == StagesBy::kOps) ORRERY_RETURN_IF_ERROR(Add(ByCost(kCut), cuts));
    ORRERY_RETURN_IF_ERROR(Add(ByCost(kWhole), cuts));
    absl::StatusOr<std::vector<size_t>> layers = ByLayers();
    if (layers.ok()) {
      std::erase(cuts, *layers);  // what prices chose, too, is the last all the same
      cuts.push_back(*std::move(layers));
    }
    return cuts;
  }

 private:
  using Cuts = std::vector<std::vector<size_t>>;
  static constexpr UnitSize kWhole = UnitSize::kLayers, kCut = UnitSize::kParts;

  static bool Contains(const Cuts& cuts, const std::vector<size_t>& cut) {
    return std::ranges::find(cuts, cut) != cuts.end();
  }

  static absl::Status Add(absl::StatusOr<Cuts> more, Cuts& cuts) {
    ORRERY_RETURN_IF_ERROR(more.status());
    for (std::vector<size_t>& cut : *more) {
      if (!Contains(cuts, cut)) cuts.push_back(std::move(cut));
    }
    return absl::OkStatus();
  }

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
      ORRERY_ASSIGN_OR_RETURN(Cuts by_cost, ByCost(kCut));
      return std::move(by_cost.back());
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

  // The fastest, and the one that needs least memory of those that are about as fast.
  absl::StatusOr<Cuts> ByCost(UnitSize least) const {
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

  Cuts Divide(const std::vector<StageUnit>& units, const StagePlan& plan) const {
    const UnitCosts costs = CostsOf(function_, chain_, units, plan, choice_.prices, choice_.state);
    const UnitDivisions divisions = DivideUnits(units, costs, options_);
    const auto cuts_of = [&](const std::vector<int32_t>& begins) {
      std::vector<size_t> cuts;
      for (const int32_t begin : begins) {
        if (begin > 0) cuts.push_back(units[static_cast<size_t>(begin)].begin);
      }
      return cuts;
    };
    return {cuts_of(divisions.fastest), cuts_of(divisions.leanest)};
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

absl::StatusOr<std::vector<std::vector<size_t>>> CutsToTry(const ir::Function& function,
                                                           const StageOptions& options) {
  if (options.stages == 1 || !options.choice.placement.empty()) {
    return std::vector<std::vector<size_t>>(1);
  }
  const IdTable<ir::OpId, StepPhase> phase = FindPhases(function);
  const ForwardChain chain = FindChain(function, phase);
  return choose_stages_cc::Chooser(function, phase, chain, options).RunAll();
}

}  // namespace orrery::transforms
