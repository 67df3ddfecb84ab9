#include "transforms/strategies/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace orrery::transforms::strategies {
namespace model_cc {
namespace {

size_t At(int32_t number) { return static_cast<size_t>(number); }

// The earlier node first.
std::pair<int32_t, int32_t> PairOf(int32_t a, int32_t b) { return std::minmax({a, b}); }

// One table for each pair of nodes that meet, in the order of the pairs.
void AddTables(const StrategyGraph& graph, Model& model) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  pairs.reserve(graph.edges.size() + graph.incompatible.size());
  for (const StrategyEdge& edge : graph.edges) pairs.push_back(PairOf(edge.from, edge.to));
  for (const IncompatiblePair& pair : graph.incompatible) {
    pairs.push_back(PairOf(pair.node, pair.other_node));
  }
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  model.tables.reserve(pairs.size());
  for (const auto& [a, b] : pairs) {
    model.tables.push_back({.scope = {a, b},
                            .values = std::vector<double>(graph.nodes[At(a)].cost.size() *
                                                          graph.nodes[At(b)].cost.size())});
  }
}

void AddEdges(const StrategyGraph& graph, Model& model) {
  AddTables(graph, model);
  const auto sum_of = [&](int32_t a, int32_t b) -> std::vector<double>& {
    const auto pair_of = [](const Table& table) {
      return std::pair(table.scope[0], table.scope[1]);
    };
    return std::ranges::lower_bound(model.tables, PairOf(a, b), {}, pair_of)->values;
  };
  for (const StrategyEdge& edge : graph.edges) {
    const size_t to_size = graph.nodes[At(edge.to)].cost.size();
    const size_t from_size = graph.nodes[At(edge.from)].cost.size();
    const bool forward = edge.from < edge.to;
    std::vector<double>& sum = sum_of(edge.from, edge.to);
    for (size_t i = 0; i < edge.cost.size(); ++i) {
      sum[forward ? i : i % to_size * from_size + i / to_size] += edge.cost[i];
    }
  }
  for (IncompatiblePair pair : graph.incompatible) {
    if (pair.node > pair.other_node) {
      std::swap(pair.node, pair.other_node);
      std::swap(pair.strategy, pair.other_strategy);
    }
    sum_of(pair.node,
           pair.other_node)[At(pair.strategy) * graph.nodes[At(pair.other_node)].cost.size() +
                            At(pair.other_strategy)] = kImpossible;
  }
}

// The entries of `table` whose strategies `keep` names.
std::vector<double> Selected(const Model& model, const Table& table,
                             const std::vector<std::vector<int32_t>>& keep) {
  std::vector<size_t> offsets = {0};
  for (const int32_t node : table.scope) {
    std::vector<size_t> next;
    for (const size_t offset : offsets) {
      for (const int32_t strategy : keep[At(node)]) {
        next.push_back(offset * model.strategies(node) + At(strategy));
      }
    }
    offsets = std::move(next);
  }
  std::vector<double> values;
  for (const size_t offset : offsets) values.push_back(table.values[offset]);
  return values;
}

// The model with only the strategies that `keep` names; `keep` is ascending.
void Keep(Model& model, const std::vector<std::vector<int32_t>>& keep) {
  const auto select = [](auto& values, const std::vector<int32_t>& numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) values[i] = values[At(numbers[i])];
    values.resize(numbers.size());
  };
  for (Table& table : model.tables) {
    if (std::ranges::any_of(table.scope, [&](int32_t node) {
          return keep[At(node)].size() < model.strategies(node);
        })) {
      table.values = Selected(model, table, keep);
    }
  }
  for (size_t node = 0; node < model.nodes(); ++node) {
    select(model.kept[node], keep[node]);
    select(model.cost[node], keep[node]);
    select(model.memory[node], keep[node]);
  }
}

// The tables of two nodes that each node is in.
std::vector<std::vector<int32_t>> TablesOf(const Model& model) {
  std::vector<std::vector<int32_t>> tables(model.nodes());
  for (size_t i = 0; i < model.tables.size(); ++i) {
    if (model.tables[i].scope.size() != 2) continue;
    for (const int32_t node : model.tables[i].scope) {
      tables[At(node)].push_back(static_cast<int32_t>(i));
    }
  }
  return tables;
}

// A table of two nodes seen from one of them.
struct View {
  const Table& table;
  size_t stride, other_stride, other_size;
  int32_t other;

  View(const Model& model, const Table& table, int32_t node) : table(table) {
    const bool row = table.scope[0] == node;
    const size_t width = model.strategies(table.scope[1]);
    stride = row ? width : 1;
    other_stride = row ? 1 : width;
    other = table.scope[row ? 1 : 0];
    other_size = model.strategies(other);
  }
  double at(size_t own, size_t others) const {
    return table.values[own * stride + others * other_stride];
  }
};

// The least that the edges of `view` save when the node takes `a` rather than `b`.
double LeastLoss(const View& view, size_t a, size_t b, const std::vector<bool>& other_alive) {
  double least = kImpossible;
  for (size_t y = 0; y < view.other_size; ++y) {
    if (!other_alive[y]) continue;
    const double with_a = view.at(a, y), with_b = view.at(b, y);
    if (with_a == kImpossible) continue;
    if (with_b == kImpossible) return -kImpossible;
    least = std::min(least, with_a - with_b);
  }
  return least;
}

}  // namespace
}  // namespace model_cc

double Slack(double budget) { return 1e-12 * std::abs(budget); }

Model ModelOf(const StrategyGraph& graph) {
  Model model;
  model.cost.reserve(graph.nodes.size());
  model.memory.reserve(graph.nodes.size());
  model.kept.reserve(graph.nodes.size());
  for (const StrategyNode& node : graph.nodes) {
    model.cost.push_back(node.cost);
    model.memory.push_back(node.memory);
    model.memory.back().resize(node.cost.size());
    model.kept.emplace_back(node.cost.size());
    std::iota(model.kept.back().begin(), model.kept.back().end(), 0);
  }
  model_cc::AddEdges(graph, model);
  for (size_t i = 0; i < graph.live_sets.size(); ++i) {
    model.limits.push_back({.live_set = static_cast<int32_t>(i),
                            .nodes = graph.live_sets[i].nodes,
                            .budget = graph.live_sets[i].budget});
  }
  return model;
}

int32_t DropImpossible(Model& model) {
  const std::vector<std::vector<int32_t>> tables = model_cc::TablesOf(model);
  std::vector<std::vector<bool>> alive(model.nodes());
  for (size_t i = 0; i < model.nodes(); ++i) alive[i].assign(model.cost[i].size(), true);
  std::vector<int32_t> open(model.nodes());
  std::iota(open.begin(), open.end(), 0);
  std::vector<bool> is_open(model.nodes(), true);
  const auto supported = [&](int32_t node, size_t strategy) {
    if (model.cost[model_cc::At(node)][strategy] == kImpossible) return false;
    return std::ranges::all_of(tables[model_cc::At(node)], [&](int32_t number) {
      const model_cc::View view(model, model.tables[model_cc::At(number)], node);
      for (size_t y = 0; y < view.other_size; ++y) {
        if (alive[model_cc::At(view.other)][y] && view.at(strategy, y) != kImpossible) return true;
      }
      return false;
    });
  };
  for (size_t next = 0; next < open.size(); ++next) {
    const int32_t node = open[next];
    is_open[model_cc::At(node)] = false;
    bool changed = false;
    for (size_t a = 0; a < alive[model_cc::At(node)].size(); ++a) {
      if (!alive[model_cc::At(node)][a] || supported(node, a)) continue;
      alive[model_cc::At(node)][a] = false;
      changed = true;
    }
    if (!changed) continue;
    if (std::ranges::count(alive[model_cc::At(node)], true) == 0) return node;
    for (const int32_t number : tables[model_cc::At(node)]) {
      const int32_t other = model_cc::View(model, model.tables[model_cc::At(number)], node).other;
      if (!is_open[model_cc::At(other)]) open.push_back(other);
      is_open[model_cc::At(other)] = true;
    }
  }
  std::vector<std::vector<int32_t>> keep(model.nodes());
  for (size_t i = 0; i < model.nodes(); ++i) {
    for (size_t a = 0; a < alive[i].size(); ++a) {
      if (alive[i][a]) keep[i].push_back(static_cast<int32_t>(a));
    }
  }
  model_cc::Keep(model, keep);
  return -1;
}

void FoldFixed(Model& model) {
  const auto fixed = [&](int32_t node) { return model.strategies(node) == 1; };
  std::erase_if(model.tables, [&](Table& table) {
    const int32_t first = table.scope.front();
    // Entries stay where they are: what has one strategy moves no index.
    std::erase_if(table.scope, fixed);
    if (table.scope.size() > 1) return false;
    std::vector<double>& costs =
        model.cost[model_cc::At(table.scope.empty() ? first : table.scope[0])];
    for (size_t a = 0; a < costs.size(); ++a) costs[a] += table.values[a];
    return true;
  });
}

void DropDominated(Model& model) {
  const std::vector<std::vector<int32_t>> tables = model_cc::TablesOf(model);
  std::vector<bool> limited(model.nodes());
  for (const MemoryLimit& limit : model.limits) {
    for (const int32_t node : limit.nodes) limited[model_cc::At(node)] = true;
  }
  std::vector<bool> judged(model.nodes(), true);
  for (const Table& table : model.tables) {
    for (const int32_t node : table.scope) {
      if (table.scope.size() != 2) judged[model_cc::At(node)] = false;
    }
  }
  std::vector<std::vector<bool>> alive(model.nodes());
  for (size_t i = 0; i < model.nodes(); ++i) alive[i].assign(model.cost[i].size(), true);
  const auto dominated = [&](int32_t node, size_t a, size_t b) {
    const std::vector<double>& memory = model.memory[model_cc::At(node)];
    if (limited[model_cc::At(node)] && memory[b] > memory[a]) return false;
    double loss = model.cost[model_cc::At(node)][a] - model.cost[model_cc::At(node)][b];
    for (const int32_t number : tables[model_cc::At(node)]) {
      const model_cc::View view(model, model.tables[model_cc::At(number)], node);
      loss += model_cc::LeastLoss(view, a, b, alive[model_cc::At(view.other)]);
      if (loss == -kImpossible) return false;
    }
    return loss >= 0;
  };
  std::vector<std::vector<int32_t>> keep(model.nodes());
  for (size_t i = 0; i < model.nodes(); ++i) {
    const size_t strategies = alive[i].size();
    for (size_t a = 0; a < strategies; ++a) {
      for (size_t b = 0; judged[i] && b < strategies && alive[i][a]; ++b) {
        if (a != b && alive[i][b] && dominated(static_cast<int32_t>(i), a, b)) alive[i][a] = false;
      }
      if (alive[i][a]) keep[i].push_back(static_cast<int32_t>(a));
    }
  }
  model_cc::Keep(model, keep);
}

void DropLooseLimits(Model& model) {
  std::erase_if(model.limits, [&](const MemoryLimit& limit) {
    double most = 0;
    for (const int32_t node : limit.nodes)
      most += std::ranges::max(model.memory[model_cc::At(node)]);
    return most <= limit.budget;
  });
  // Nodes that need no memory say nothing about one set lying within another.
  for (MemoryLimit& limit : model.limits) {
    std::erase_if(limit.nodes,
                  [&](int32_t n) { return std::ranges::max(model.memory[model_cc::At(n)]) == 0; });
    std::ranges::sort(limit.nodes);
  }
  std::vector<int32_t> order(model.limits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    return model.limits[model_cc::At(a)].nodes.size() > model.limits[model_cc::At(b)].nodes.size();
  });
  // A set within another one with no larger budget follows from it: ask only the sets that hold the
  // node that the fewest sets hold.
  std::vector<std::vector<int32_t>> holders(model.nodes());
  std::vector<bool> keep(model.limits.size());
  for (const int32_t number : order) {
    const MemoryLimit& limit = model.limits[model_cc::At(number)];
    if (!limit.nodes.empty()) {
      const int32_t rare = *std::ranges::min_element(
          limit.nodes, {}, [&](int32_t node) { return holders[model_cc::At(node)].size(); });
      if (std::ranges::any_of(holders[model_cc::At(rare)], [&](int32_t other) {
            return model.limits[model_cc::At(other)].budget <= limit.budget &&
                   std::ranges::includes(model.limits[model_cc::At(other)].nodes, limit.nodes);
          })) {
        continue;
      }
    }
    keep[model_cc::At(number)] = true;
    for (const int32_t node : limit.nodes) holders[model_cc::At(node)].push_back(number);
  }
  size_t next = 0;
  std::erase_if(model.limits, [&](const MemoryLimit&) { return !keep[next++]; });
}

std::vector<int32_t> InGraph(const Model& model, const std::vector<int32_t>& choice) {
  std::vector<int32_t> assignment(choice.size());
  for (size_t i = 0; i < choice.size(); ++i) assignment[i] = model.kept[i][model_cc::At(choice[i])];
  return assignment;
}

double CostOf(const Model& model, const std::vector<int32_t>& choice) {
  double cost = 0;
  for (size_t i = 0; i < model.nodes(); ++i) cost += model.cost[i][model_cc::At(choice[i])];
  for (const Table& table : model.tables) {
    size_t at = 0;
    for (const int32_t node : table.scope) {
      at = at * model.strategies(node) + model_cc::At(choice[model_cc::At(node)]);
    }
    cost += table.values[at];
  }
  return cost;
}

bool Fits(const Model& model, const std::vector<int32_t>& choice) {
  return std::ranges::all_of(model.limits, [&](const MemoryLimit& limit) {
    double memory = 0;
    for (const int32_t node : limit.nodes)
      memory += model.memory[model_cc::At(node)][model_cc::At(choice[model_cc::At(node)])];
    return memory <= limit.budget + Slack(limit.budget);
  });
}

}  // namespace orrery::transforms::strategies
