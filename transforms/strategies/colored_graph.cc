#include "transforms/strategies/colored_graph.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace orrery::transforms::strategies {
namespace colored_graph_cc {
namespace {

// Each takes away the layers that are this close to an end; residual connections make two edges of
// a layer. Three tell norms and residuals of attention from those of feed-forward.
constexpr int kRounds = 3;
// A search for the next layer may visit so many times the nodes of one layer.
constexpr size_t kMostLayers = 8;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Not absl::Hash: that differs from run to run.
uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 32);
}

uint64_t BitsOf(double cost) { return std::bit_cast<uint64_t>(cost + 0.0); }  // of -0, those of 0

uint64_t HashOf(const std::vector<double>& costs) {
  uint64_t hash = costs.size();
  for (const double cost : costs) hash = Mix(hash, BitsOf(cost));
  return hash;
}

// Of a table, with the rows as columns.
uint64_t HashOfTransposed(const std::vector<double>& costs, size_t columns) {
  uint64_t hash = costs.size();
  for (size_t column = 0; column < columns; ++column) {
    for (size_t i = column; i < costs.size(); i += columns) hash = Mix(hash, BitsOf(costs[i]));
  }
  return hash;
}

// The nodes of the class that are nearest to `start`; none where the search goes too far.
std::vector<int32_t> Nearest(const ColoredGraph& graph, int32_t start,
                             std::vector<int32_t>& seen_by) {
  const int32_t color = graph.color[At(start)];
  const size_t members = graph.ClassSize(start);
  const size_t most = kMostLayers * (graph.edges.size() / members + kMostLayers);
  std::vector<int32_t> level = {start}, nearest;
  seen_by[At(start)] = start;
  for (size_t visited = 0; !level.empty() && nearest.empty() && visited <= most;) {
    std::vector<int32_t> next;
    for (const int32_t node : level) {
      for (const ColoredGraph::Edge& edge : graph.edges[At(node)]) {
        // Not across what all layers share.
        if (seen_by[At(edge.node)] == start || 2 * graph.ClassSize(edge.node) < members) continue;
        seen_by[At(edge.node)] = start;
        next.push_back(edge.node);
        if (graph.color[At(edge.node)] == color) nearest.push_back(edge.node);
      }
    }
    visited += next.size();
    level = std::move(next);
  }
  std::ranges::sort(nearest);
  return nearest;
}

class Matching {
 public:
  Matching(const ColoredGraph& graph, const std::vector<int32_t>& chain)
      : graph_(graph),
        members_(chain.size()),
        next_(graph.edges.size(), -1),
        taken_(graph.edges.size()) {
    for (size_t i = 0; i + 1 < chain.size(); ++i) Set(chain[i], chain[i + 1]);
  }

  std::vector<int32_t> Run() {
    std::deque<std::pair<int32_t, int32_t>> open;
    while (!pairs_.empty() || !open.empty()) {
      if (pairs_.empty()) {
        const auto [node, next] = open.front();
        if (const auto two = Unmatched(node, next, /*alike=*/true); two.has_value()) {
          Set(two->first, two->second);
        } else {
          open.pop_front();
        }
        continue;
      }
      const auto [node, next] = pairs_.front();
      pairs_.pop_front();
      while (const auto two = Unmatched(node, next, /*alike=*/false)) Set(two->first, two->second);
      open.emplace_back(node, next);
    }
    return std::move(next_);
  }

 private:
  using Like = std::tuple<uint64_t, int32_t, int32_t>;  // label, color, node

  void Set(int32_t node, int32_t next) {
    next_[At(node)] = next;
    taken_[At(next)] = true;
    pairs_.emplace_back(node, next);
  }

  // Neighbours of `node` in their order; `free` says which still count.
  template <typename Free>
  std::vector<Like> Around(int32_t node, const Free& free) const {
    std::vector<Like> around;
    for (const ColoredGraph::Edge& edge : graph_.edges[At(node)]) {
      if (2 * graph_.ClassSize(edge.node) < members_ || !free(edge.node)) continue;
      around.emplace_back(edge.label, graph_.color[At(edge.node)], edge.node);
    }
    std::ranges::sort(around);
    return around;
  }

  // A neighbour of `node`, and the one of `next` that is its like: the only one, or where `alike`
  // the first of as many as there are at `node`.
  std::optional<std::pair<int32_t, int32_t>> Unmatched(int32_t node, int32_t next,
                                                       bool alike) const {
    const auto here = Around(node, [&](int32_t n) { return next_[At(n)] < 0; });
    const auto there = Around(next, [&](int32_t n) { return !taken_[At(n)]; });
    const auto kind = [](const Like& like) {
      return std::pair(std::get<0>(like), std::get<1>(like));
    };
    for (auto own = here.begin(); own != here.end();) {
      const auto own_end = std::ranges::upper_bound(own, here.end(), kind(*own), {}, kind);
      const auto other = std::ranges::lower_bound(there, kind(*own), {}, kind);
      const auto other_end = std::ranges::upper_bound(there, kind(*own), {}, kind);
      const bool as_many = own_end - own == other_end - other;
      if (as_many && (alike || own_end - own == 1)) {
        return std::pair(std::get<2>(*own), std::get<2>(*other));
      }
      own = own_end;
    }
    return std::nullopt;
  }

  const ColoredGraph& graph_;
  const size_t members_;
  std::vector<int32_t> next_;
  std::vector<bool> taken_;  // as the next of some node
  std::deque<std::pair<int32_t, int32_t>> pairs_;
};

}  // namespace
}  // namespace colored_graph_cc

ColoredGraph Colored(const Model& model) {
  ColoredGraph graph{.edges = {}, .color = {}, .classes = {}};
  graph.edges.resize(model.nodes());
  for (const Table& table : model.tables) {
    const int32_t a = table.scope[0], b = table.scope[1];
    graph.edges[colored_graph_cc::At(a)].push_back(
        {.node = b, .label = colored_graph_cc::HashOf(table.values)});
    graph.edges[colored_graph_cc::At(b)].push_back(
        {.node = a,
         .label = colored_graph_cc::HashOfTransposed(table.values, model.strategies(b))});
  }
  std::vector<uint64_t> hash(model.nodes());
  for (size_t i = 0; i < hash.size(); ++i) hash[i] = colored_graph_cc::HashOf(model.cost[i]);
  for (int round = 0; round < colored_graph_cc::kRounds; ++round) {
    std::vector<uint64_t> finer = hash;
    for (size_t i = 0; i < hash.size(); ++i) {
      uint64_t around = 0;  // a sum: in any order
      for (const ColoredGraph::Edge& edge : graph.edges[i]) {
        around += colored_graph_cc::Mix(colored_graph_cc::Mix(1, edge.label),
                                        hash[colored_graph_cc::At(edge.node)]);
      }
      finer[i] = colored_graph_cc::Mix(hash[i], around);
    }
    hash = std::move(finer);
  }
  std::map<uint64_t, int32_t> colors;
  for (size_t i = 0; i < hash.size(); ++i) {
    const auto [at, is_new] = colors.emplace(hash[i], static_cast<int32_t>(graph.classes.size()));
    if (is_new) graph.classes.emplace_back();
    graph.color.push_back(at->second);
    graph.classes[colored_graph_cc::At(at->second)].push_back(static_cast<int32_t>(i));
  }
  return graph;
}

std::vector<int32_t> ChainOf(const ColoredGraph& graph, int32_t color) {
  std::map<int32_t, std::vector<int32_t>> beside;
  std::vector<int32_t> seen_by(graph.edges.size(), -1);
  for (const int32_t node : graph.classes[colored_graph_cc::At(color)]) {
    beside[node] = colored_graph_cc::Nearest(graph, node, seen_by);
    if (beside[node].size() > 2) return {};
  }
  // The first may be the nearest of one that is none of its nearest.
  for (auto& [node, list] : beside) {
    const int32_t own = node;
    std::erase_if(list, [&](int32_t n) { return std::ranges::count(beside[n], own) == 0; });
  }
  std::vector<int32_t> longest;
  for (const auto& [end, list] : beside) {
    if (list.size() != 1) continue;
    std::vector<int32_t> chain = {end};
    for (int32_t next = list[0]; next >= 0;) {
      const int32_t last = chain.back();
      chain.push_back(next);
      const std::vector<int32_t>& around = beside[next];
      next = around.size() < 2 ? -1 : around[around[0] == last ? 1 : 0];
    }
    if (chain.size() > longest.size()) longest = std::move(chain);
  }
  if (longest.size() < 3) longest.clear();
  return longest;
}

std::vector<int32_t> NextInLayers(const ColoredGraph& graph, const std::vector<int32_t>& chain) {
  return colored_graph_cc::Matching(graph, chain).Run();
}

}  // namespace orrery::transforms::strategies
