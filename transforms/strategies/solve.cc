#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/strategies/repeats.h"
#include "transforms/strategies/solve_model.h"
#include "transforms/strategies/strategy_graph.h"

namespace orrery::transforms {
namespace {

using strategies::Model;
using strategies::ModelSolution;

// Steps of the search for the smallest excess, each of which solves a model.
constexpr int kExcessSteps = 60;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Where no memory is the reason: a node without a possible strategy, or all nodes together.
NoChoice Impossible(const StrategyGraph& graph, int32_t node) {
  NoChoice none;
  none.reason = node < 0
                    ? "no choice for all nodes avoids infinite costs and incompatible pairs"
                    : absl::StrCat("node ", node, " '", graph.nodes[At(node)].name,
                                   "': each strategy is impossible, or meets only impossible ones");
  return none;
}

// The limit that is over its budget the most, and by how much, for a choice in the model.
std::pair<int32_t, double> WorstExcess(const Model& model, const std::vector<int32_t>& choice) {
  std::pair<int32_t, double> worst{-1, -kImpossible};
  for (const strategies::MemoryLimit& limit : model.limits) {
    double over = -limit.budget;
    for (const int32_t node : limit.nodes) over += model.memory[At(node)][At(choice[At(node)])];
    if (over > worst.second) worst = {limit.live_set, over};
  }
  return worst;
}

// How much more memory all live sets must have for there to be a choice: by bisection, from what
// the nodes need at least to what some choice needs.
NoChoice SmallestExcess(const StrategyGraph& graph, Model model, const SolveOptions& options) {
  for (auto& costs : model.cost) std::ranges::fill(costs, 0);
  for (strategies::Table& table : model.tables) {
    for (double& cost : table.values) cost = cost == kImpossible ? kImpossible : 0;
  }
  Model unlimited = model;
  unlimited.limits.clear();
  const ModelSolution any = strategies::SolveModel(unlimited, options);
  if (!any.found()) return Impossible(graph, -1);
  auto [live_set, high] = WorstExcess(model, any.choice);
  double low = 0;
  for (const strategies::MemoryLimit& limit : model.limits) {
    double least = -limit.budget;
    for (const int32_t node : limit.nodes) least += std::ranges::min(model.memory[At(node)]);
    low = std::max(low, least);
  }
  double proven = low;
  for (int step = 0; step < kExcessSteps && high > low; ++step) {
    // First the least that is thinkable: often it can be had.
    const double excess = step == 0 ? low : low + (high - low) / 2;
    if (step > 0 && (excess <= low || excess >= high)) break;
    Model relaxed = model;
    for (strategies::MemoryLimit& limit : relaxed.limits) limit.budget += excess;
    const ModelSolution solution = strategies::SolveModel(std::move(relaxed), options);
    if (solution.found()) {
      std::tie(live_set, high) = WorstExcess(model, solution.choice);
      if (step == 0) break;
    } else {
      low = excess;
      if (solution.bound == kImpossible) proven = excess;
    }
    if (high - low <= 1e-9 * high) break;
  }
  const LiveSet& live = graph.live_sets[At(live_set)];
  NoChoice none{
      .reason = {}, .live_set = live_set, .excess = high, .proven = proven >= high * (1 - 1e-8)};
  none.reason = absl::StrCat("live set ", live_set, " '", live.name, "': needs ",
                             live.budget + high, ", has ", live.budget, "; the smallest excess ",
                             none.proven ? "there is" : "found");
  return none;
}

// The solution with repeats composed, where no limit binds and there is one.
std::optional<ModelSolution> WithoutLimits(Model model, const SolveOptions& options) {
  strategies::DropLooseLimits(model);
  if (!model.limits.empty()) return std::nullopt;
  ModelSolution solution = strategies::SolveRepeated(model, options.repeats, options);
  if (!solution.found()) return std::nullopt;
  return solution;
}

}  // namespace

absl::StatusOr<StrategyChoice> SolveStrategies(const StrategyGraph& graph,
                                               const SolveOptions& options) {
  ORRERY_RETURN_IF_ERROR(Validate(graph));
  Model model = strategies::ModelOf(graph);
  StrategyChoice result;
  if (!options.repeats.empty()) {
    ORRERY_RETURN_IF_ERROR(strategies::ValidateRepeats(model, options.repeats));
    if (const auto solution = WithoutLimits(model, options); solution.has_value()) {
      result.assignment = solution->choice;
      result.cost = CostOf(graph, result.assignment);
      result.labels = solution->labels;
      result.bound = result.cost - std::max(0.0, solution->cost - solution->bound);
      return result;
    }
  }
  if (const int32_t node = strategies::DropImpossible(model); node >= 0) {
    result.none = Impossible(graph, node);
    return result;
  }
  const ModelSolution solution = strategies::SolveModel(model, options);
  result.labels = solution.labels;
  result.bound = solution.bound;
  if (!solution.found()) {
    result.none = SmallestExcess(graph, model, options);
    if (solution.bound != kImpossible) result.none->proven = false;
    return result;
  }
  result.assignment = strategies::InGraph(model, solution.choice);
  result.cost = CostOf(graph, result.assignment);
  // Rounding aside, a proven solution's bound is its cost.
  if (solution.bound >= solution.cost) result.bound = result.cost;
  return result;
}

}  // namespace orrery::transforms
