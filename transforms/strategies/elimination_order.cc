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

class Ordering {
 public:
  Ordering(const Model& model, const std::vector<int32_t>& last)
      : model_(model), neighbours_(model.nodes()), weight_(model.nodes()), last_(model.nodes()) {
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
      weight_[i] = WeightOf(static_cast<int32_t>(i));
      open_.insert({weight_[i], static_cast<int32_t>(i)});
    }
    order_.parent.assign(model.nodes(), -1);
    order_.position.assign(model.nodes(), -1);
  }

  EliminationOrder Run(double table_limit, const std::vector<int32_t>& last) {
    const double limit = std::log2(table_limit) + 1e-9;
    while (!open_.empty() && open_.begin()->first <= limit) Take(true);
    order_.core = order_.nodes.size();
    while (!open_.empty()) Take(false);
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
  double WeightOf(int32_t node) const {
    double weight = std::log2(static_cast<double>(model_.strategies(node)));
    for (const int32_t other : neighbours_[At(node)]) {
      weight += std::log2(static_cast<double>(model_.strategies(other)));
    }
    return weight;
  }

  // Takes the first open node; `join`: its neighbours become neighbours of each other.
  void Take(bool join) {
    const int32_t node = open_.begin()->second;
    open_.erase(open_.begin());
    order_.nodes.push_back(node);
    const std::vector<int32_t>& around = neighbours_[At(node)];
    for (const int32_t other : around) {
      std::vector<int32_t>& list = neighbours_[At(other)];
      if (join) {
        std::vector<int32_t> joined;
        std::ranges::set_union(list, around, std::back_inserter(joined));
        std::erase_if(joined, [&](int32_t n) { return n == node || n == other; });
        list = std::move(joined);
      } else {
        std::erase(list, node);
      }
      if (last_[At(other)]) continue;
      open_.erase({weight_[At(other)], other});
      weight_[At(other)] = WeightOf(other);
      open_.insert({weight_[At(other)], other});
    }
  }

  const Model& model_;
  std::vector<std::vector<int32_t>> neighbours_;  // of those not yet taken, ascending
  std::vector<double> weight_;                    // log2 of the table that eliminates a node
  std::vector<bool> last_;
  std::set<std::pair<double, int32_t>> open_;
  EliminationOrder order_;
};

}  // namespace
}  // namespace elimination_order_cc

EliminationOrder OrderNodes(const Model& model, double table_limit,
                            const std::vector<int32_t>& last) {
  return elimination_order_cc::Ordering(model, last).Run(table_limit, last);
}

}  // namespace orrery::transforms::strategies
