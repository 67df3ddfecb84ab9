#include "transforms/strategies/label_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "transforms/strategies/label_layers.h"

namespace orrery::transforms::strategies {
namespace label_search_cc {
namespace {

// A label is compared with so many others of the same choices. All would be quadratic, and it is
// the first, the cheapest, that dominate most.
constexpr size_t kMostComparisons = 48;

// A beam of so many still comes to an end with a choice, often a good one.
constexpr size_t kFewLabels = 8;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Labels of one layer, column by column.
struct Labels {
  std::vector<double> bound;    // lower bound of its cost, prices of memory included
  std::vector<double> penalty;  // the prices of its memory so far
  std::vector<uint16_t> context;
  std::vector<double> memory;
  std::vector<int32_t> from;  // label of the layer before
  std::vector<uint16_t> choice;
  size_t contexts = 0;  // numbers a label has in `context`, and in `memory`
  size_t memories = 0;

  size_t size() const { return bound.size(); }
  double net(size_t label) const { return bound[label] - penalty[label]; }
};

class LabelSearch {
 public:
  LabelSearch(const Model& model, const BucketTree& tree, const Prices& prices, double known)
      : model_(model),
        tree_(tree),
        prices_(prices),
        layers_(MakeLayers(model, tree)),
        known_(known),
        allowance_(1e-12 * (1 + std::abs(known == kImpossible ? 0 : known))) {}

  LabelSearchResult Run(BeamLimits limits) {
    Start();
    for (const LabelLayer& layer : layers_) {
      Expand(layer);
      Thin(result_.labels < limits.labels ? limits.width : std::min(limits.width, kFewLabels));
      parents_.push_back(now_.from);
      choices_.push_back(now_.choice);
      if (now_.size() == 0) break;
    }
    if (now_.size() > 0) TakeBest();
    result_.bound = std::min(cut_, std::min(result_.cost, known_));
    return std::move(result_);
  }

 private:
  void Start() {
    double bound = -prices_.OfBudgets(model_);
    for (const LabelLayer& layer : layers_) {
      for (const LabelLayer::Lookup& message : layer.messages) {
        if (message.table->scope.empty()) bound += message.table->values[0];
      }
    }
    // A limit on no nodes at all can still be too small.
    for (const MemoryLimit& limit : model_.limits) {
      if (limit.nodes.empty() && limit.budget < 0) return;
    }
    now_.bound = {bound};
    now_.penalty = {0};
    now_.from = {-1};
    now_.choice = {0};
  }

  size_t PositionIn(const LabelLayer::Lookup& lookup, size_t label) const {
    size_t at = 0;
    for (size_t i = 0; i < lookup.positions.size(); ++i) {
      at += lookup.strides[i] * now_.context[label * now_.contexts + At(lookup.positions[i])];
    }
    return at;
  }

  void Expand(const LabelLayer& layer) {
    next_ = {};
    next_.contexts = layer.next_context.size();
    next_.memories = layer.next_limits.size();
    const std::vector<double>& costs = tree_.costs(layer.node);
    std::vector<double> sums;
    for (size_t label = 0; label < now_.size(); ++label) {
      double settled = now_.bound[label];
      for (const auto& message : layer.messages) {
        settled -= message.table->values[PositionIn(message, label)];
      }
      sums = costs;
      for (const auto& input : layer.inputs) {
        const double* values = input.table->values.data() + PositionIn(input, label);
        for (size_t a = 0; a < sums.size(); ++a) sums[a] += values[a];
      }
      for (size_t a = 0; a < sums.size(); ++a) {
        if (settled + sums[a] < known_ - allowance_) Append(layer, label, a, settled + sums[a]);
      }
    }
    result_.labels += static_cast<int64_t>(next_.size());
    std::swap(now_, next_);
  }

  // The label with `strategy` for the layer's node, unless its memory cannot fit.
  void Append(const LabelLayer& layer, size_t label, size_t strategy, double bound) {
    const double own = model_.memory[At(layer.node)][strategy];
    double penalty = now_.penalty[label];
    const size_t start = next_.memory.size();
    next_.memory.resize(start + next_.memories);
    for (size_t i = 0; i < next_.memories; ++i) {
      const int32_t position = layer.next_limits[i];
      if (position >= 0)
        next_.memory[start + i] = now_.memory[label * now_.memories + At(position)];
    }
    for (const LabelLayer::Use& use : layer.uses) {
      const double budget = model_.limits[At(use.limit)].budget;
      const double before = use.from < 0 ? 0 : now_.memory[label * now_.memories + At(use.from)];
      const double memory = before + own;
      if (memory + use.least_after > budget + Slack(budget)) {
        next_.memory.resize(start);
        return;
      }
      penalty += prices_.of_limit[At(use.limit)] * own;
      // What can no longer run out counts as one, so that more labels dominate others.
      if (use.to >= 0) {
        next_.memory[start + At(use.to)] = std::max(memory, budget - use.most_after);
      }
    }
    for (const int32_t position : layer.next_context) {
      next_.context.push_back(position < 0 ? static_cast<uint16_t>(strategy)
                                           : now_.context[label * now_.contexts + At(position)]);
    }
    next_.bound.push_back(bound);
    next_.penalty.push_back(penalty);
    next_.from.push_back(static_cast<int32_t>(label));
    next_.choice.push_back(static_cast<uint16_t>(strategy));
  }

  // Drops dominated labels, and cuts down to `width`.
  void Thin(size_t width) {
    std::vector<size_t> order(now_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto context = [&](size_t label) {
      return now_.context.begin() + static_cast<ptrdiff_t>(label * now_.contexts);
    };
    const auto length = static_cast<ptrdiff_t>(now_.contexts);
    std::ranges::sort(order, [&](size_t a, size_t b) {
      for (ptrdiff_t i = 0; i < length; ++i) {
        if (context(a)[i] != context(b)[i]) return context(a)[i] < context(b)[i];
      }
      return std::pair(now_.net(a), a) < std::pair(now_.net(b), b);
    });
    std::vector<size_t> kept;
    size_t group = 0;  // where in `kept` the labels with the context of the last one start
    for (const size_t label : order) {
      if (!kept.empty() &&
          !std::equal(context(label), context(label) + length, context(kept.back()))) {
        group = kept.size();
      }
      const size_t end = std::min(kept.size(), group + kMostComparisons);
      bool dominated = false;
      for (size_t i = group; i < end && !dominated; ++i) dominated = Dominates(kept[i], label);
      if (!dominated) kept.push_back(label);
    }
    if (kept.size() > width) {
      std::ranges::sort(kept, [&](size_t a, size_t b) {
        return std::pair(now_.bound[a], a) < std::pair(now_.bound[b], b);
      });
      cut_ = std::min(cut_, now_.bound[kept[width]]);
      kept.resize(width);
    }
    Select(kept);
  }

  // `label` comes after `other` in net cost.
  bool Dominates(size_t other, size_t label) const {
    const double* a = now_.memory.data() + other * now_.memories;
    const double* b = now_.memory.data() + label * now_.memories;
    for (size_t i = 0; i < now_.memories; ++i) {
      if (a[i] > b[i]) return false;
    }
    return true;
  }

  void Select(const std::vector<size_t>& kept) {
    next_ = {};
    next_.contexts = now_.contexts;
    next_.memories = now_.memories;
    for (const size_t label : kept) {
      next_.bound.push_back(now_.bound[label]);
      next_.penalty.push_back(now_.penalty[label]);
      next_.from.push_back(now_.from[label]);
      next_.choice.push_back(now_.choice[label]);
      for (size_t i = 0; i < now_.contexts; ++i) {
        next_.context.push_back(now_.context[label * now_.contexts + i]);
      }
      for (size_t i = 0; i < now_.memories; ++i) {
        next_.memory.push_back(now_.memory[label * now_.memories + i]);
      }
    }
    std::swap(now_, next_);
  }

  void TakeBest() {
    size_t best = 0;
    for (size_t label = 1; label < now_.size(); ++label) {
      if (now_.net(label) < now_.net(best)) best = label;
    }
    std::vector<int32_t> choice(model_.nodes());
    for (size_t layer = layers_.size(); layer-- > 0;) {
      choice[At(layers_[layer].node)] = choices_[layer][best];
      best = At(parents_[layer][best]);
    }
    // Within the bounds unused memory is worth something; what the choice costs may be more.
    const double cost = CostOf(model_, choice);
    if (cost >= known_ - allowance_) return;
    result_.cost = cost;
    result_.choice = std::move(choice);
  }

  const Model& model_;
  const BucketTree& tree_;
  const Prices& prices_;
  const std::vector<LabelLayer> layers_;
  const double known_;
  const double allowance_;  // what rounding may add up to
  Labels now_, next_;
  std::vector<std::vector<int32_t>> parents_;  // [layer][label]
  std::vector<std::vector<uint16_t>> choices_;
  double cut_ = kImpossible;  // the least bound of the labels that were cut
  LabelSearchResult result_;
};

}  // namespace
}  // namespace label_search_cc

Costs Prices::Add(const Model& model) const {
  Costs costs = model.cost;
  for (size_t i = 0; i < model.limits.size(); ++i) {
    if (of_limit[i] == 0) continue;
    for (const int32_t node : model.limits[i].nodes) {
      for (size_t a = 0; a < costs[label_search_cc::At(node)].size(); ++a) {
        costs[label_search_cc::At(node)][a] +=
            of_limit[i] * model.memory[label_search_cc::At(node)][a];
      }
    }
  }
  return costs;
}

double Prices::OfBudgets(const Model& model) const {
  double sum = 0;
  for (size_t i = 0; i < model.limits.size(); ++i) sum += of_limit[i] * model.limits[i].budget;
  return sum;
}

LabelSearchResult SearchLabels(const Model& model, const BucketTree& tree, const Prices& prices,
                               double known, BeamLimits limits) {
  return label_search_cc::LabelSearch(model, tree, prices, known).Run(limits);
}

}  // namespace orrery::transforms::strategies
