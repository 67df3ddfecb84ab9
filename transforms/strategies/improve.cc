#include "transforms/strategies/improve.h"

#include <algorithm>
#include <cmath>

namespace orrery::transforms::strategies {
namespace improve_cc {
namespace {

size_t At(int32_t number) { return static_cast<size_t>(number); }

class LocalSearch {
 public:
  LocalSearch(const Model& model, std::vector<int32_t>& choice)
      : model_(model),
        choice_(choice),
        tables_of_(model.nodes()),
        limits_of_(model.nodes()),
        left_(model.limits.size()) {
    for (size_t i = 0; i < model.tables.size(); ++i) {
      for (const int32_t node : model.tables[i].scope) {
        tables_of_[At(node)].push_back(static_cast<int32_t>(i));
      }
    }
    for (size_t i = 0; i < model.limits.size(); ++i) {
      left_[i] = model.limits[i].budget + Slack(model.limits[i].budget);
      for (const int32_t node : model.limits[i].nodes) {
        limits_of_[At(node)].push_back(static_cast<int32_t>(i));
        left_[i] -= MemoryOf(node, At(choice[At(node)]));
      }
    }
  }

  bool ImproveOnce() {
    bool changed = false;
    for (size_t i = 0; i < model_.nodes(); ++i) {
      const auto node = static_cast<int32_t>(i);
      SumCosts(node);
      size_t best = At(choice_[i]);
      const double before = sums_[best];
      for (size_t a = 0; a < sums_.size(); ++a) {
        if (sums_[a] < sums_[best] && Freed(node, a, false) >= 0) best = a;
      }
      // Rounding must not let two choices take turns.
      if (sums_[best] >= before - 1e-12 * (1 + std::abs(before))) continue;
      Take(node, best);
      changed = true;
    }
    return changed;
  }

  // The change that frees memory at the least price. False: none does.
  bool RepairOnce() {
    double best_price = kImpossible, best_freed = 0;
    int32_t best_node = -1;
    size_t best_strategy = 0;
    for (size_t i = 0; i < model_.nodes(); ++i) {
      const auto node = static_cast<int32_t>(i);
      if (limits_of_[i].empty()) continue;
      SumCosts(node);
      for (size_t a = 0; a < sums_.size(); ++a) {
        const double freed = Freed(node, a, true);
        if (freed <= 0 || sums_[a] == kImpossible) continue;
        const double price = (sums_[a] - sums_[At(choice_[i])]) / freed;
        if (price > best_price || (price == best_price && freed <= best_freed)) continue;
        best_price = price, best_freed = freed, best_node = node, best_strategy = a;
      }
    }
    if (best_node < 0) return false;
    Take(best_node, best_strategy);
    return true;
  }

  bool fits() const {
    return std::ranges::all_of(left_, [](double left) { return left >= 0; });
  }

 private:
  double MemoryOf(int32_t node, size_t strategy) const { return model_.memory[At(node)][strategy]; }

  // The cost of each strategy of `node`, with the neighbours as they are.
  void SumCosts(int32_t node) {
    sums_ = model_.cost[At(node)];
    for (const int32_t number : tables_of_[At(node)]) {
      const Table& table = model_.tables[At(number)];
      size_t stride = 1, own_stride = 0, at = 0;
      for (size_t i = table.scope.size(); i-- > 0;) {
        if (table.scope[i] == node) {
          own_stride = stride;
        } else {
          at += stride * At(choice_[At(table.scope[i])]);
        }
        stride *= model_.strategies(table.scope[i]);
      }
      for (size_t a = 0; a < sums_.size(); ++a) sums_[a] += table.values[at + a * own_stride];
    }
  }

  // How much less memory is missing if `node` takes `strategy`. Without `missing`: below 0 if a
  // limit would not hold.
  double Freed(int32_t node, size_t strategy, bool missing) const {
    const double more = MemoryOf(node, strategy) - MemoryOf(node, At(choice_[At(node)]));
    double freed = 0;
    for (const int32_t limit : limits_of_[At(node)]) {
      const double left = left_[At(limit)];
      if (missing) {
        freed += std::max(0.0, -left) - std::max(0.0, more - left);
      } else if (more > left) {
        return -1;
      }
    }
    return freed;
  }

  void Take(int32_t node, size_t strategy) {
    const double more = MemoryOf(node, strategy) - MemoryOf(node, At(choice_[At(node)]));
    for (const int32_t limit : limits_of_[At(node)]) left_[At(limit)] -= more;
    choice_[At(node)] = static_cast<int32_t>(strategy);
  }

  const Model& model_;
  std::vector<int32_t>& choice_;
  std::vector<std::vector<int32_t>> tables_of_, limits_of_;  // [node]
  std::vector<double> left_;                                 // [limit]
  std::vector<double> sums_;
};

// Each pass looks at all; more passes find little.
constexpr int kMostPasses = 50;
constexpr int kMostRepairs = 400;

}  // namespace
}  // namespace improve_cc

void Improve(const Model& model, std::vector<int32_t>& choice) {
  improve_cc::LocalSearch search(model, choice);
  for (int pass = 0; pass < improve_cc::kMostPasses && search.ImproveOnce(); ++pass) {
  }
}

bool Repair(const Model& model, std::vector<int32_t>& choice) {
  improve_cc::LocalSearch search(model, choice);
  for (int change = 0; change < improve_cc::kMostRepairs && !search.fits(); ++change) {
    if (!search.RepairOnce()) return false;
  }
  return search.fits();
}

}  // namespace orrery::transforms::strategies
