#include "transforms/strategies/elimination_order.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

namespace orrery::transforms::strategies {
namespace elimination_order_cc {
namespace {

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Logarithms of numbers of strategies as whole numbers, rounded down: their sums are exact,
// whatever comes and goes, and of at most 2^30 of them none is above what a sum of doubles says.
constexpr double kUnit = 4294967296.0;  // a unit is 2^-32
constexpr double kRounding = 1 - 1e-6;  // more than a sum of doubles loses

class Ordering {
 public:
  Ordering(const Model& model, const std::vector<int32_t>& last)
      : neighbours_(model.nodes()),
        taken_of_(model.nodes()),
        taken_(model.nodes()),
        at_least_(model.nodes()),
        key_(model.nodes()),
        exact_(model.nodes(), true),
        last_(model.nodes()) {
    for (size_t i = 0; i < model.nodes(); ++i) {
      const double bits = std::log2(static_cast<double>(model.strategies(static_cast<int32_t>(i))));
      bits_.push_back(bits);
      units_.push_back(static_cast<int64_t>(std::floor(bits * kUnit)));
    }
    for (const Table& table : model.tables) {
      for (const int32_t a : table.scope) {
        for (const int32_t b : table.scope) {
          if (a != b) neighbours_[At(a)].push_back(b);
        }
      }
    }
    for (auto& list : neighbours_) {
      std::ranges::sort(list);
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    for (const int32_t node : last) last_[At(node)] = true;
    for (size_t i = 0; i < model.nodes(); ++i) {
      if (last_[i]) continue;
      Count(static_cast<int32_t>(i));
      key_[i] = WeightOf(static_cast<int32_t>(i));
      open_.insert({key_[i], static_cast<int32_t>(i)});
    }
    order_.parent.assign(model.nodes(), -1);
    order_.position.assign(model.nodes(), -1);
  }

  EliminationOrder Run(double table_limit, const std::vector<int32_t>& last) {
    const double limit = std::log2(table_limit) + 1e-9;
    while (!open_.empty() && LeastWeight() <= limit) Take(true);
    order_.core = order_.nodes.size();
    while (!open_.empty()) {
      LeastWeight();
      Take(false);
    }
    order_.nodes.insert(order_.nodes.end(), last.begin(), last.end());
    for (size_t i = 0; i < order_.nodes.size(); ++i) {
      order_.position[At(order_.nodes[i])] = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < order_.core; ++i) {
      const int32_t node = order_.nodes[i];
      for (const int32_t other : neighbours_[At(node)]) {
        int32_t& parent = order_.parent[At(node)];
        if (parent < 0 || order_.position[At(other)] < order_.position[At(parent)]) parent = other;
      }
    }
    for (size_t i = order_.core; i + 1 < order_.nodes.size(); ++i) {
      order_.parent[At(order_.nodes[i])] = order_.nodes[i + 1];
    }
    return std::move(order_);
  }

 private:
  double WeightOf(int32_t node) {
    DropTaken(node);
    double weight = bits_[At(node)];
    for (const int32_t other : neighbours_[At(node)]) weight += bits_[At(other)];
    order_.visits += std::ssize(neighbours_[At(node)]);
    return weight;
  }

  void DropTaken(int32_t node) {
    std::erase_if(neighbours_[At(node)], [&](int32_t n) { return taken_[At(n)]; });
    taken_of_[At(node)] = 0;
  }

  void Count(int32_t node) {
    at_least_[At(node)] = units_[At(node)];
    for (const int32_t other : neighbours_[At(node)]) at_least_[At(node)] += units_[At(other)];
    order_.visits += std::ssize(neighbours_[At(node)]);
  }

  void Open(int32_t node, double key, bool exact) {
    open_.erase({key_[At(node)], node});
    key_[At(node)] = key;
    exact_[At(node)] = exact;
    open_.insert({key, node});
  }

  // Brings the node of the least weight to the front; of the others bounds are enough to know that
  // theirs is greater. So a node with many neighbours is not weighed anew as each of them goes.
  double LeastWeight() {
    while (!exact_[At(open_.begin()->second)]) {
      const int32_t node = open_.begin()->second;
      Open(node, WeightOf(node), true);
    }
    return open_.begin()->first;
  }

  // Takes the first open node; `join`: its neighbours become neighbours of each other.
  void Take(bool join) {
    const int32_t node = open_.begin()->second;
    open_.erase(open_.begin());
    order_.nodes.push_back(node);
    DropTaken(node);
    taken_[At(node)] = true;
    for (const int32_t other : neighbours_[At(node)]) {
      at_least_[At(other)] -= units_[At(node)];
      ++order_.visits;
      // Those that are gone stay in the list until they are half of it.
      if (2 * ++taken_of_[At(other)] > std::ssize(neighbours_[At(other)])) DropTaken(other);
      if (join) Join(other, neighbours_[At(node)]);
      if (last_[At(other)]) continue;
      Open(other, static_cast<double>(at_least_[At(other)]) / kUnit * kRounding, false);
    }
  }

  // Adds `around` to the neighbours of `node`, one of them. Few are looked up one by one.
  void Join(int32_t node, const std::vector<int32_t>& around) {
    constexpr size_t kFew = 16;
    std::vector<int32_t>& list = neighbours_[At(node)];
    order_.visits += std::ssize(around);
    if (around.size() * kFew < list.size()) {
      for (const int32_t joined : around) {
        const auto at = std::ranges::lower_bound(list, joined);
        if (joined == node || (at != list.end() && *at == joined)) continue;
        list.insert(at, joined);
        at_least_[At(node)] += units_[At(joined)];
      }
      return;
    }
    std::vector<int32_t> joined;
    std::ranges::set_union(list, around, std::back_inserter(joined));
    std::erase_if(joined, [&](int32_t n) { return n == node || taken_[At(n)]; });
    list = std::move(joined);
    taken_of_[At(node)] = 0;
    Count(node);
  }

  std::vector<double> bits_;                      // log2 of the strategies of a node
  std::vector<int64_t> units_;                    // the same, rounded down
  std::vector<std::vector<int32_t>> neighbours_;  // ascending; some may be taken
  std::vector<int64_t> taken_of_;                 // how many of a node's neighbours
  std::vector<bool> taken_;
  std::vector<int64_t> at_least_;  // units of the table that eliminates a node
  std::vector<double> key_;        // log2 of its size, or less
  std::vector<bool> exact_;        // the key is no bound
  std::vector<bool> last_;
  std::set<std::pair<double, int32_t>> open_;  // by their keys
  EliminationOrder order_;
};

}  // namespace
}  // namespace elimination_order_cc

EliminationOrder OrderNodes(const Model& model, double table_limit,
                            const std::vector<int32_t>& last) {
  return elimination_order_cc::Ordering(model, last).Run(table_limit, last);
}

}  // namespace orrery::transforms::strategies
