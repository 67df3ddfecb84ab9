#include "transforms/strategies/find_repeats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "transforms/strategies/colored_graph.h"
#include "transforms/strategies/fix_shared.h"
#include "transforms/strategies/model.h"
#include "transforms/strategies/repeats.h"
#include "transforms/strategies/vertex_cut.h"

namespace orrery::transforms::strategies {
namespace find_repeats_cc {
namespace {

// Fewer are not composed.
constexpr size_t kFewestBlocks = 3;
// Classes from which layers are sought, and of those of one size: where two fail, so do others.
constexpr int kMostTries = 8;
constexpr int kMostOfOneSize = 2;
// Of layers that an edge crosses, beyond which its ends are no likes of others.
constexpr int32_t kMostCrossed = 8;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Nodes that follow each other from layer to layer are of one strand. Layers are numbered from that
// of the middle of the chain, in which each strand has one node that is reached from there.
class Strands {
 public:
  Strands(const Model& model, const ColoredGraph& graph, const std::vector<int32_t>& chain)
      : model_(model), graph_(graph), strand_of_(graph.edges.size(), -1), position_(strand_of_) {
    FollowAll(NextInLayers(graph, chain));
    Gather(chain[chain.size() / 2]);
  }

  // Blocks that begin at the least cut between layers.
  std::vector<std::vector<int32_t>> Blocks() const {
    const auto begin = Begins();
    std::vector<std::vector<int32_t>> blocks;
    if (!begin.has_value()) return blocks;
    int32_t low = -static_cast<int32_t>(graph_.edges.size()), high = -low;
    for (size_t i = 0; i < gathered_.size(); ++i) {
      const int32_t first = FirstPosition(gathered_[i]) + (*begin)[i];
      low = std::max(low, -first);
      high = std::min(high, static_cast<int32_t>(NodesOf(gathered_[i]).size()) - first);
    }
    for (int32_t block = low; block < high; ++block) {
      std::vector<int32_t>& nodes = blocks.emplace_back();
      for (size_t i = 0; i < gathered_.size(); ++i) {
        const int32_t first = FirstPosition(gathered_[i]) + (*begin)[i];
        nodes.push_back(NodesOf(gathered_[i])[At(first + block)]);
      }
    }
    return blocks;
  }

 private:
  // Between the node of strand number `from` in a layer, and that of `to` so many layers on.
  struct Crossing {
    int32_t from, to, layers;
  };

  void FollowAll(const std::vector<int32_t>& next) {
    std::vector<bool> has_previous(next.size());
    for (const int32_t node : next) {
      if (node >= 0) has_previous[At(node)] = true;
    }
    for (size_t start = 0; start < next.size(); ++start) {
      if (has_previous[start] || next[start] < 0) continue;
      std::vector<int32_t> nodes;
      for (auto node = static_cast<int32_t>(start); node >= 0; node = next[At(node)]) {
        nodes.push_back(node);
      }
      if (nodes.size() < kFewestBlocks) continue;
      for (size_t position = 0; position < nodes.size(); ++position) {
        strand_of_[At(nodes[position])] = static_cast<int32_t>(strands_.size());
        position_[At(nodes[position])] = static_cast<int32_t>(position);
      }
      strands_.push_back(std::move(nodes));
    }
  }

  // The strands that can be reached from `start`, with the nodes by which they are.
  void Gather(int32_t start) {
    number_.assign(strands_.size(), -1);
    const auto take = [&](int32_t node) {
      const int32_t strand = strand_of_[At(node)];
      if (strand < 0 || number_[At(strand)] >= 0) return;
      number_[At(strand)] = static_cast<int32_t>(gathered_.size());
      gathered_.push_back(node);
    };
    take(start);
    for (size_t i = 0; i < gathered_.size(); ++i) {
      const int32_t node = gathered_[i];
      for (const ColoredGraph::Edge& edge : graph_.edges[At(node)]) take(edge.node);
    }
  }

  const std::vector<int32_t>& NodesOf(int32_t node) const {
    return strands_[At(strand_of_[At(node)])];
  }
  int32_t FirstPosition(int32_t node) const { return position_[At(node)]; }

  std::vector<Crossing> Crossings() const {
    std::vector<Crossing> crossings;
    for (size_t i = 0; i < gathered_.size(); ++i) {
      for (const ColoredGraph::Edge& edge : graph_.edges[At(gathered_[i])]) {
        const int32_t strand = strand_of_[At(edge.node)];
        if (strand < 0) continue;
        const int32_t to = number_[At(strand)];
        crossings.push_back(
            {.from = static_cast<int32_t>(i),
             .to = to,
             .layers = position_[At(edge.node)] - FirstPosition(gathered_[At(to)])});
      }
    }
    return crossings;
  }

  // [number of a strand]: the layer in which a block has its node. A cut through layers that go on
  // for ever, moved by one layer, is another one; the leftmost of least weight lies to the left of
  // that, by submodularity. What is between them is a block, whose boundary is the cut.
  std::optional<std::vector<int32_t>> Begins() const {
    const std::vector<Crossing> crossings = Crossings();
    int32_t reach = 1;
    for (const Crossing& crossing : crossings) reach = std::max(reach, std::abs(crossing.layers));
    if (reach > kMostCrossed) return std::nullopt;
    const auto strands = static_cast<int32_t>(gathered_.size());
    const int32_t layers = 2 * reach + 1;
    const size_t nodes = At(layers) * gathered_.size();
    CutProblem problem{.weight = {},
                       .neighbours = std::vector<std::vector<int32_t>>(nodes),
                       .touches_left = std::vector<bool>(nodes),
                       .touches_right = std::vector<bool>(nodes)};
    for (int32_t layer = 0; layer < layers; ++layer) {
      for (const int32_t node : gathered_) {
        // Weights of a cut add up as strategies of a boundary multiply; each node counts a little.
        const double bits = std::log2(static_cast<double>(model_.strategies(node)));
        problem.weight.push_back(1 + std::lround(1024 * bits));
      }
      for (const auto& [from, to, crossed] : crossings) {
        const auto node = At(layer * strands + from);
        const int32_t other = layer + crossed;
        if (other < 0) {
          problem.touches_left[node] = true;
        } else if (other >= layers) {
          problem.touches_right[node] = true;
        } else {
          problem.neighbours[node].push_back(other * strands + to);
        }
      }
    }
    const std::vector<bool> left = LeftOfLeastCut(problem);
    std::vector<int32_t> begins(gathered_.size());
    for (size_t node = 0; node < nodes; ++node) {
      if (left[node]) ++begins[node % gathered_.size()];
    }
    return begins;
  }

  const Model& model_;
  const ColoredGraph& graph_;
  std::vector<std::vector<int32_t>> strands_;
  std::vector<int32_t> strand_of_, position_;  // [node]: its strand, or -1, and where in that
  std::vector<int32_t> number_;                // [strand]: in `gathered_`, or -1
  std::vector<int32_t> gathered_;              // the node of layer 0 of each strand
};

// Colors in the order in which they are tried: most likely, each layer has one such node.
std::vector<int32_t> Candidates(const ColoredGraph& graph) {
  std::map<size_t, size_t> classes_of_size;
  for (const auto& nodes : graph.classes) ++classes_of_size[nodes.size()];
  std::vector<int32_t> colors;
  for (size_t color = 0; color < graph.classes.size(); ++color) {
    if (graph.classes[color].size() >= kFewestBlocks) colors.push_back(static_cast<int32_t>(color));
  }
  std::ranges::stable_sort(colors, [&](int32_t a, int32_t b) {
    const size_t size_a = graph.classes[At(a)].size(), size_b = graph.classes[At(b)].size();
    return std::pair(classes_of_size[size_a] * size_a, size_a) >
           std::pair(classes_of_size[size_b] * size_b, size_b);
  });
  return colors;
}

bool IsValid(const Model& model, const RepeatedBlocks& repeat) {
  Model fixed = model;
  FixShared(fixed, {repeat});
  return ValidateRepeats(fixed, {repeat}).ok();
}

}  // namespace
}  // namespace find_repeats_cc

std::vector<RepeatedBlocks> FindRepeats(const StrategyGraph& graph) {
  const Model model = ModelOf(graph);
  const ColoredGraph colored = Colored(model);
  std::vector<RepeatedBlocks> repeats;
  std::vector<bool> taken(model.nodes());
  const auto is_taken = [&](int32_t node) { return taken[find_repeats_cc::At(node)]; };
  std::map<size_t, int> tries_of_size;
  int tries = 0;
  for (const int32_t color : find_repeats_cc::Candidates(colored)) {
    if (std::ranges::any_of(colored.classes[find_repeats_cc::At(color)], is_taken)) continue;
    if (++tries_of_size[colored.classes[find_repeats_cc::At(color)].size()] >
        find_repeats_cc::kMostOfOneSize)
      continue;
    if (++tries > find_repeats_cc::kMostTries) break;
    const std::vector<int32_t> chain = ChainOf(colored, color);
    if (chain.empty()) continue;
    RepeatedBlocks repeat{.blocks = find_repeats_cc::Strands(model, colored, chain).Blocks()};
    if (repeat.blocks.size() < find_repeats_cc::kFewestBlocks ||
        !find_repeats_cc::IsValid(model, repeat))
      continue;
    bool apart = true;
    for (const auto& block : repeat.blocks) {
      apart = apart && !std::ranges::any_of(block, is_taken);
    }
    if (!apart) continue;
    for (const auto& block : repeat.blocks) {
      for (const int32_t node : block) taken[find_repeats_cc::At(node)] = true;
    }
    repeats.push_back(std::move(repeat));
  }
  return repeats;
}

}  // namespace orrery::transforms::strategies
