#include "transforms/strategies/solve_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "transforms/strategies/bucket_tree.h"
#include "transforms/strategies/improve.h"
#include "transforms/strategies/label_search.h"
#include "transforms/strategies/reparametrize.h"

namespace orrery::transforms::strategies {
namespace solve_model_cc {
namespace {

// Below so many additions an elimination is faster than the search for what can be left out.
constexpr double kLittleWork = 1e7;
// The additions that finding prices may take, and within that how many steps.
constexpr double kPricingWork = 1.5e9;
constexpr int kMostPriceSteps = 150;
// Of the steps: these left the smallest gap of those tried on 3,937 overlapping limits
// (strategies_bench, BM_ChainWithinWindows with kNodes = 4000), 0.06% against 0.18% with steps that
// only shrink.
constexpr double kFaster = 1.3;  // after one that raised the bound
constexpr double kSlower = 0.3;  // after kStale that did not
constexpr int kStale = 2;
constexpr double kMomentum = 0.7;  // the part of the last direction in the next
constexpr size_t kFirstWidth = 16;
constexpr size_t kWidening = 8;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// More than any possible choice costs.
double Ceiling(const Model& model) {
  double sum = 1;
  for (const auto& costs : model.cost) sum += std::abs(std::ranges::max(costs));
  for (const Table& table : model.tables) {
    double most = 0;
    for (const double cost : table.values) {
      if (cost != kImpossible) most = std::max(most, std::abs(cost));
    }
    sum += most;
  }
  return sum * (1 + 1e-9);
}

class ModelSolver {
 public:
  ModelSolver(const Model& model, const SolveOptions& options)
      : model_(model),
        options_(options),
        tree_(AffordableTree(model, static_cast<double>(options.table_limit))),
        prices_{std::vector<double>(model.limits.size())},
        ceiling_(Ceiling(model)) {}

  ModelSolution Run() {
    Price();
    if (!proven()) FindFitting();
    costs_ = prices_.Add(model_);
    if (!proven()) {
      Raise(tree_.Fill(costs_) - prices_.OfBudgets(model_));
      Widen();
    }
    if (proven()) solution_.bound = !solution_.found() ? kImpossible : solution_.cost;
    return std::move(solution_);
  }

 private:
  double known() const { return std::min(ceiling_, solution_.cost); }
  bool proven() const { return solution_.bound >= known() - 1e-11 * (1 + std::abs(known())); }
  void Raise(double bound) { solution_.bound = std::max(solution_.bound, bound); }

  void Offer(std::vector<int32_t> choice) {
    if (!Fits(model_, choice)) return;
    const double cost = CostOf(model_, choice);
    if (cost >= solution_.cost) return;
    solution_.cost = cost;
    solution_.choice = std::move(choice);
  }

  // The choice that is cheapest with the prices, if no bucket was split. Raises the bound.
  double Solve(const Prices& prices, std::vector<int32_t>& choice) {
    costs_ = prices.Add(model_);
    const double bound = tree_.Fill(costs_) - prices.OfBudgets(model_);
    Raise(bound);
    choice.assign(model_.nodes(), 0);
    tree_.Descend(choice);
    Offer(choice);
    return bound;
  }

  // Polyak's subgradient steps towards the prices with the greatest bound (Lagrangean relaxation).
  void Price() {
    Prices prices = prices_;
    std::vector<int32_t> choice, best_choice;
    const int steps =
        model_.limits.empty()
            ? 0
            : std::clamp(static_cast<int>(kPricingWork / (tree_.work() + 1)), 8, kMostPriceSteps);
    double best = -kImpossible, pace = 1;
    int stale = 0;
    for (int step = 0;; ++step) {
      const double bound = Solve(prices, choice);
      if (bound > best) {
        best = bound;
        prices_ = prices;
        best_choice = choice;
        stale = 0;
        pace *= kFaster;
      } else if (++stale >= kStale) {
        stale = 0;
        pace *= kSlower;
        prices = prices_;
        choice = best_choice;
        std::ranges::fill(direction_, 0);
      }
      if (step == 0 && solution_.found()) Polish(solution_.choice);
      if (proven() || step == steps || !Step(choice, pace * Aim(best), prices)) return;
      if (step % 16 == 15) Mend(choice);
    }
  }

  // How much the bound may still rise.
  double Aim(double bound) const {
    if (solution_.found()) return std::max(known() - bound, 1e-9 * (1 + std::abs(bound)));
    // No choice is known: aim for somewhat more, and for more and more as the bound rises.
    return std::min(known() - bound, 0.1 * (1 + std::abs(bound)));
  }

  static double UnitOf(const MemoryLimit& limit) {
    return limit.budget == 0 ? 1 : std::abs(limit.budget);
  }

  // Moves the prices by what each limit is over or under. False: nothing is to be moved.
  bool Step(const std::vector<int32_t>& choice, double aim, Prices& prices) {
    std::vector<double> over(model_.limits.size());
    direction_.resize(over.size());
    double norm = 0;
    bool any = false;
    for (size_t i = 0; i < over.size(); ++i) {
      const MemoryLimit& limit = model_.limits[i];
      double memory = -limit.budget;
      for (const int32_t node : limit.nodes) {
        memory += model_.memory[At(node)][At(choice[At(node)])];
      }
      // Each limit counts in units of its budget.
      over[i] = memory / UnitOf(limit);
      if (over[i] < 0 && prices.of_limit[i] == 0) over[i] = 0;
      any = any || over[i] != 0;
      // Part of the last direction, against zigzags.
      over[i] += kMomentum * direction_[i];
      if (over[i] < 0 && prices.of_limit[i] == 0) over[i] = 0;
      norm += over[i] * over[i];
    }
    direction_ = over;
    if (!any || norm == 0) return false;
    for (size_t i = 0; i < over.size(); ++i) {
      const double change = aim * over[i] / norm / UnitOf(model_.limits[i]);
      prices.of_limit[i] = std::clamp(prices.of_limit[i] + change, 0.0, 1e100);
    }
    return true;
  }

  void Polish(std::vector<int32_t> choice) {
    Improve(model_, choice);
    Offer(std::move(choice));
  }

  void Mend(std::vector<int32_t> choice) {
    if (Repair(model_, choice)) Polish(std::move(choice));
  }

  // Dearer memory leads to choices that fit.
  void FindFitting() {
    std::vector<int32_t> choice;
    for (double factor = 1; !solution_.found() && factor < 1e4; factor *= 1.6) {
      if (model_.limits.empty() && factor > 1) return;
      Prices prices = prices_;
      for (double& price : prices.of_limit) price *= factor;
      Solve(prices, choice);
      Mend(choice);
    }
    if (solution_.found()) Polish(solution_.choice);
  }

  // Beams of growing width, until one cuts nothing.
  void Widen() {
    for (size_t width = kFirstWidth; !proven(); width *= kWidening) {
      const int64_t left = options_.label_limit - solution_.labels;
      if (left <= 0) return;
      LabelSearchResult result =
          SearchLabels(model_, tree_, prices_, known(), {.width = width, .labels = left});
      solution_.labels += result.labels;
      if (!result.choice.empty()) {
        Offer(result.choice);
        Polish(std::move(result.choice));
      }
      Raise(result.bound);
    }
  }

  const Model& model_;
  const SolveOptions& options_;
  BucketTree tree_;
  std::vector<double> direction_;  // of the last step
  Prices prices_;                  // those of the best bound
  const double ceiling_;
  Costs costs_;  // that the tree is filled with
  ModelSolution solution_;
};

}  // namespace
}  // namespace solve_model_cc

ModelSolution SolveModel(Model model, const SolveOptions& options) {
  const std::vector<std::vector<int32_t>> before = model.kept;
  if (DropImpossible(model) >= 0) return {.choice = {}, .bound = kImpossible};
  FoldFixed(model);
  DropLooseLimits(model);
  const auto tree = [&] { return BucketTree(model, static_cast<double>(options.table_limit)); };
  if (const BucketTree first = tree();
      !first.exact() || first.work() > solve_model_cc::kLittleWork) {
    DropDominated(model);
    DropImpossible(model);
    FoldFixed(model);
    if (!tree().exact()) Reparametrize(model);
  }
  ModelSolution solution = solve_model_cc::ModelSolver(model, options).Run();
  // Back to the numbers of the model that came in.
  for (size_t i = 0; i < solution.choice.size(); ++i) {
    const int32_t strategy = model.kept[i][solve_model_cc::At(solution.choice[i])];
    solution.choice[i] =
        static_cast<int32_t>(std::ranges::lower_bound(before[i], strategy) - before[i].begin());
  }
  return solution;
}

}  // namespace orrery::transforms::strategies
