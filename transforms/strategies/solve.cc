#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/strategies/fix_shared.h"
#include "transforms/strategies/improve.h"
#include "transforms/strategies/repeats.h"
#include "transforms/strategies/solve_model.h"
#include "transforms/strategies/strategy_graph.h"

namespace orrery::transforms::strategies {
namespace solve_cc {
namespace {

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
  for (const MemoryLimit& limit : model.limits) {
    double over = -limit.budget;
    for (const int32_t node : limit.nodes) over += model.memory[At(node)][At(choice[At(node)])];
    if (over > worst.second) worst = {limit.live_set, over};
  }
  return worst;
}

// A choice whose live sets are over their budgets the least.
struct LeastOver {
  ModelSolution any;  // some choice, whatever memory it needs
  std::vector<int32_t> choice;
  int32_t live_set = -1;  // that is over the most
  double excess = -kImpossible;
  double proven = 0;  // no choice is over by less
};

// By bisection, from what the nodes need at least to what some choice needs. Costs are left out.
LeastOver FindLeastOver(Model model, const SolveOptions& options) {
  for (auto& costs : model.cost) std::ranges::fill(costs, 0);
  for (Table& table : model.tables) {
    for (double& cost : table.values) cost = cost == kImpossible ? kImpossible : 0;
  }
  Model unlimited = model;
  unlimited.limits.clear();
  LeastOver least{.any = SolveModel(unlimited, options), .choice = {}};
  if (!least.any.found()) return least;
  const auto take = [&](const std::vector<int32_t>& choice) {
    least.choice = choice;
    std::tie(least.live_set, least.excess) = WorstExcess(model, choice);
  };
  take(least.any.choice);
  double low = 0;
  for (const MemoryLimit& limit : model.limits) {
    double need = -limit.budget;
    for (const int32_t node : limit.nodes) need += std::ranges::min(model.memory[At(node)]);
    low = std::max(low, need);
  }
  least.proven = low;
  for (int step = 0; step < kExcessSteps && least.excess > low; ++step) {
    // First the least that is thinkable: often it can be had.
    const double excess = step == 0 ? low : low + (least.excess - low) / 2;
    if (step > 0 && (excess <= low || excess >= least.excess)) break;
    Model relaxed = model;
    for (MemoryLimit& limit : relaxed.limits) limit.budget += excess;
    const ModelSolution solution = SolveModel(std::move(relaxed), options);
    if (solution.found()) {
      take(solution.choice);
      if (step == 0) break;
    } else {
      low = excess;
      if (solution.bound == kImpossible) least.proven = excess;
    }
    if (least.excess - low <= 1e-9 * least.excess) break;
  }
  return least;
}

// How much more memory all live sets must have for there to be a choice.
NoChoice ShortOfMemory(const StrategyGraph& graph, const LeastOver& least) {
  const LiveSet& live = graph.live_sets[At(least.live_set)];
  NoChoice none{.reason = {},
                .live_set = least.live_set,
                .excess = least.excess,
                .proven = least.proven >= least.excess * (1 - 1e-8)};
  none.reason = absl::StrCat("live set ", least.live_set, " '", live.name, "': needs ",
                             live.budget + least.excess, ", has ", live.budget,
                             "; the smallest excess ", none.proven ? "there is" : "found");
  return none;
}

// Where the search found no choice.
NoChoice NothingFound(const StrategyGraph& graph, const LeastOver& least) {
  if (least.any.found()) return ShortOfMemory(graph, least);
  if (least.any.bound == kImpossible) return Impossible(graph, -1);
  return {.reason =
              "the search gave up before it found a choice that avoids infinite costs and "
              "incompatible pairs; try a larger label_limit"};
}

// In the graph's numbers: nodes of blocks have as many strategies as those of the first.
std::vector<std::vector<std::vector<int32_t>>> FurtherInGraph(
    const Model& model, const std::vector<RepeatedBlocks>& repeats,
    std::vector<std::vector<std::vector<int32_t>>> further) {
  for (size_t repeat = 0; repeat < further.size(); ++repeat) {
    for (std::vector<int32_t>& block : further[repeat]) {
      for (size_t i = 0; i < block.size(); ++i) {
        block[i] = model.kept[At(repeats[repeat].blocks[0][i])][At(block[i])];
      }
    }
  }
  return further;
}

// The choice with repeats composed, where no limit binds and there is one.
absl::StatusOr<std::optional<StrategyChoice>> ChooseRepeated(
    const StrategyGraph& graph, const std::vector<RepeatedBlocks>& repeats,
    const SolveOptions& options) {
  Model fixed = ModelOf(graph);
  FixShared(fixed, repeats);
  ORRERY_RETURN_IF_ERROR(ValidateRepeats(fixed, repeats));
  DropLooseLimits(fixed);
  if (!fixed.limits.empty()) return std::nullopt;
  const ModelSolution solution = SolveRepeated(fixed, repeats, options);
  if (!solution.found()) return std::nullopt;
  StrategyChoice choice{.assignment = InGraph(fixed, solution.choice), .none = {}};
  choice.cost = CostOf(graph, choice.assignment);
  choice.labels = solution.labels;
  choice.composed = solution.composed;
  choice.further = FurtherInGraph(fixed, repeats, solution.further);
  choice.bound = choice.cost - std::max(0.0, solution.cost - solution.bound);
  return choice;
}

}  // namespace
}  // namespace solve_cc

absl::StatusOr<StrategyChoice> SolveStrategies(const StrategyGraph& graph,
                                               const SolveOptions& options) {
  ORRERY_RETURN_IF_ERROR(Validate(graph));
  if (!options.repeats.empty()) {
    ORRERY_ASSIGN_OR_RETURN(std::optional<StrategyChoice> choice,
                            solve_cc::ChooseRepeated(graph, options.repeats, options));
    if (choice.has_value()) return *std::move(choice);
    if (std::ranges::any_of(options.repeats, [](const auto& of) { return of.more > 0; })) {
      return absl::FailedPreconditionError(
          "repeats: no choice was found by composing blocks that stand for more of them; try all "
          "blocks as nodes of the graph");
    }
  }
  Model model = ModelOf(graph);
  StrategyChoice result;
  if (const int32_t node = DropImpossible(model); node >= 0) {
    result.none = solve_cc::Impossible(graph, node);
    return result;
  }
  ModelSolution solution = SolveModel(model, options);
  result.labels = solution.labels;
  result.bound = solution.bound;
  if (!solution.found()) {
    solve_cc::LeastOver least = solve_cc::FindLeastOver(model, options);
    const bool proven = solution.bound == kImpossible;
    if (proven || !least.any.found() || !Fits(model, least.choice)) {
      result.none = solve_cc::NothingFound(graph, least);
      if (!proven) result.none->proven = false;
      return result;
    }
    // Costs had misled the search.
    Improve(model, least.choice);
    solution.choice = std::move(least.choice);
  }
  result.assignment = InGraph(model, solution.choice);
  result.cost = CostOf(graph, result.assignment);
  // Rounding aside, a proven solution's bound is its cost.
  if (solution.bound >= solution.cost) result.bound = result.cost;
  return result;
}

}  // namespace orrery::transforms::strategies
