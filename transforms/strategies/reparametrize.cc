#include "transforms/strategies/reparametrize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "transforms/strategies/improve.h"

namespace orrery::transforms::strategies {
namespace reparametrize_cc {
namespace {

// Most of what can be gained is gained by then; each pass reads all tables.
constexpr int kPasses = 40;
constexpr double kLeastGain = 1e-4;  // of the bound, for ten passes: else no more are made

size_t At(int32_t number) { return static_cast<size_t>(number); }

class Reparametrization {
 public:
  explicit Reparametrization(Model& model) : model_(model), edges_(model.nodes()) {
    for (size_t i = 0; i < model.tables.size(); ++i) {
      if (model.tables[i].scope.size() != 2) continue;
      for (const int32_t node : model.tables[i].scope) {
        edges_[At(node)].push_back(static_cast<int32_t>(i));
      }
    }
  }

  void Run() {
    double last = LowerBound();
    for (int pass = 1; pass <= kPasses; ++pass) {
      for (size_t i = 0; i < model_.nodes(); ++i) Visit(static_cast<int32_t>(i), true);
      for (size_t i = model_.nodes(); i-- > 0;) Visit(static_cast<int32_t>(i), false);
      if (pass % 10 != 0) continue;
      const double bound = LowerBound();
      if (bound - last < kLeastGain * std::abs(bound)) break;
      last = bound;
    }
    // What the tables still hold goes back to the nodes, for the search to see.
    for (size_t i = 0; i < model_.nodes(); ++i) {
      for (const int32_t edge : edges_[i]) Take(static_cast<int32_t>(i), edge);
    }
  }

  double LowerBound() const {
    double bound = 0;
    for (const auto& costs : model_.cost) bound += std::ranges::min(costs);
    for (const Table& table : model_.tables) bound += std::ranges::min(table.values);
    return bound;
  }

  /// What all choices cost at least that have this strategy, less what they cost at least at all.
  double Extra(int32_t node, size_t strategy) const {
    double extra = model_.cost[At(node)][strategy] - std::ranges::min(model_.cost[At(node)]);
    for (const int32_t edge : edges_[At(node)]) {
      const Table& table = model_.tables[At(edge)];
      extra += Least(table, node, strategy) - std::ranges::min(table.values);
    }
    return extra;
  }

 private:
  struct Shape {
    size_t stride, other_stride, other_size;
  };
  Shape ShapeOf(const Table& table, int32_t node) const {
    const size_t width = model_.strategies(table.scope[1]);
    return table.scope[0] == node ? Shape{width, 1, width}
                                  : Shape{1, width, model_.strategies(table.scope[0])};
  }

  double Least(const Table& table, int32_t node, size_t strategy) const {
    const Shape shape = ShapeOf(table, node);
    double least = kImpossible;
    for (size_t y = 0; y < shape.other_size; ++y) {
      least = std::min(least, table.values[strategy * shape.stride + y * shape.other_stride]);
    }
    return least;
  }

  // Adds `share` of the node's costs to the table.
  void Give(int32_t node, int32_t edge, double share) {
    Table& table = model_.tables[At(edge)];
    const Shape shape = ShapeOf(table, node);
    for (size_t a = 0; a < model_.strategies(node); ++a) {
      const double cost = model_.cost[At(node)][a] * share;
      for (size_t y = 0; y < shape.other_size; ++y) {
        table.values[a * shape.stride + y * shape.other_stride] += cost;
      }
    }
  }

  // Takes from the table what the node's strategies cost in it at least.
  void Take(int32_t node, int32_t edge) {
    Table& table = model_.tables[At(edge)];
    const Shape shape = ShapeOf(table, node);
    for (size_t a = 0; a < model_.strategies(node); ++a) {
      const double least = Least(table, node, a);
      model_.cost[At(node)][a] += least;
      for (size_t y = 0; y < shape.other_size; ++y) {
        table.values[a * shape.stride + y * shape.other_stride] -= least;
      }
    }
  }

  // Gathers all at the node, and hands it on in equal shares to the tables that lie ahead.
  void Visit(int32_t node, bool forward) {
    size_t ahead = 0;
    const auto lies_ahead = [&](int32_t edge) {
      const std::vector<int32_t>& scope = model_.tables[At(edge)].scope;
      return (scope[scope[0] == node ? 1 : 0] > node) == forward;
    };
    for (const int32_t edge : edges_[At(node)]) {
      Take(node, edge);
      ahead += lies_ahead(edge) ? 1 : 0;
    }
    if (ahead == 0) return;
    const double share =
        1.0 / static_cast<double>(std::max(ahead, edges_[At(node)].size() - ahead));
    for (const int32_t edge : edges_[At(node)]) {
      if (lies_ahead(edge)) Give(node, edge, share);
    }
    const double kept = std::max(0.0, 1 - share * static_cast<double>(ahead));
    for (double& cost : model_.cost[At(node)]) cost *= kept;
  }

  Model& model_;
  std::vector<std::vector<int32_t>> edges_;  // [node]: tables of two
};

}  // namespace
}  // namespace reparametrize_cc

void Reparametrize(Model& model) {
  reparametrize_cc::Reparametrization reparametrization(model);
  reparametrization.Run();
  std::vector<int32_t> choice;
  for (const auto& costs : model.cost) {
    choice.push_back(static_cast<int32_t>(std::ranges::min_element(costs) - costs.begin()));
  }
  if (!Repair(model, choice)) return;
  Improve(model, choice);
  const double known = CostOf(model, choice);
  if (known == kImpossible) return;
  const double room = known - reparametrization.LowerBound() + 1e-9 * (1 + std::abs(known));
  Costs marked = model.cost;
  for (size_t i = 0; i < model.nodes(); ++i) {
    for (size_t a = 0; a < marked[i].size(); ++a) {
      if (reparametrization.Extra(static_cast<int32_t>(i), a) > room) marked[i][a] = kImpossible;
    }
  }
  model.cost = std::move(marked);
  DropImpossible(model);
}

}  // namespace orrery::transforms::strategies
