#include "transforms/strategies/short_graph.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace orrery::transforms::strategies {
namespace short_graph_cc {
namespace {

// Fewer blocks are no shorter by much.
constexpr size_t kFewestBlocks = 5;

size_t At(int32_t number) { return static_cast<size_t>(number); }

}  // namespace
}  // namespace short_graph_cc

using short_graph_cc::At;

struct ShortGraph::BlockEdge {
  enum class Kind : uint8_t { kWithin, kToNext, kFromNext, kToOthers, kFromOthers };

  Kind kind;
  int32_t own;    // the index of its node in the block
  int32_t other;  // that of the other one; of others their node
  const std::vector<double>* cost;

  auto key() const { return std::tuple(kind, own, other); }
  bool within() const { return kind == Kind::kWithin; }
  bool with_others() const { return kind == Kind::kToOthers || kind == Kind::kFromOthers; }
  friend bool operator==(const BlockEdge& a, const BlockEdge& b) {
    return a.key() == b.key() && *a.cost == *b.cost;
  }
};

// Sorted by key, then in the order of the graph.
struct ShortGraph::EdgesOfBlock {
  std::vector<BlockEdge> own;     // within it and to the next one
  std::vector<BlockEdge> others;  // with what stands in no block

  void Sort() {
    std::ranges::stable_sort(own, {}, &BlockEdge::key);
    std::ranges::stable_sort(others, {}, &BlockEdge::key);
  }
};

ShortGraph::ShortGraph(size_t nodes, const std::vector<RepeatedBlocks>& repeats)
    : places_(nodes), number_(nodes, -1) {
  for (const RepeatedBlocks& repeat : repeats) {
    if (repeat.blocks.size() < short_graph_cc::kFewestBlocks || repeat.more > 0) continue;
    const auto number = static_cast<int32_t>(whole_.size());
    whole_.push_back(repeat);
    for (size_t block = 0; block < repeat.blocks.size(); ++block) {
      for (size_t i = 0; i < repeat.blocks[block].size(); ++i) {
        places_[At(repeat.blocks[block][i])] = {number, static_cast<int32_t>(block),
                                                static_cast<int32_t>(i)};
      }
    }
  }
  for (size_t node = 0; node < nodes; ++node) {
    if (IsLeftOut(places_[node])) continue;
    number_[node] = static_cast<int32_t>(nodes_.size());
    nodes_.push_back(static_cast<int32_t>(node));
  }
  for (const RepeatedBlocks& repeat : whole_) {
    RepeatedBlocks& shorter = repeats_.emplace_back();
    shorter.more = std::ssize(repeat.blocks) - 3;
    for (const size_t block : {size_t{0}, size_t{1}, repeat.blocks.size() - 1}) {
      std::vector<int32_t>& numbers = shorter.blocks.emplace_back();
      for (const int32_t node : repeat.blocks[block]) numbers.push_back(NumberOf(node));
    }
  }
}

bool ShortGraph::IsLeftOut(const Place& place) const {
  return place.repeat >= 0 && place.block > 1 &&
         place.block + 1 < std::ssize(whole_[At(place.repeat)].blocks);
}

// To the edges of its block, if it has one; false for an edge that blocks cannot have in common.
bool ShortGraph::AddTo(const StrategyEdge& edge,
                       std::vector<std::vector<EdgesOfBlock>>& blocks) const {
  using Kind = BlockEdge::Kind;
  const Place &from = PlaceOf(edge.from), &to = PlaceOf(edge.to);
  const auto block_of = [&](const Place& place) -> EdgesOfBlock& {
    return blocks[At(place.repeat)][At(place.block)];
  };
  if (from.repeat != to.repeat) {
    // What is left out meets nodes of no block alone.
    if ((IsLeftOut(from) && to.repeat >= 0) || (IsLeftOut(to) && from.repeat >= 0)) return false;
    if (from.repeat >= 0) {
      block_of(from).others.push_back({Kind::kToOthers, from.index, edge.to, &edge.cost});
    }
    if (to.repeat >= 0) {
      block_of(to).others.push_back({Kind::kFromOthers, to.index, edge.from, &edge.cost});
    }
    return true;
  }
  if (from.repeat < 0) return true;
  const int32_t layers = to.block - from.block;
  if (layers == 0) {
    block_of(from).own.push_back({Kind::kWithin, from.index, to.index, &edge.cost});
  } else if (layers == 1) {
    block_of(from).own.push_back({Kind::kToNext, from.index, to.index, &edge.cost});
  } else if (layers == -1) {
    block_of(to).own.push_back({Kind::kFromNext, to.index, from.index, &edge.cost});
  } else {
    return false;
  }
  return true;
}

bool ShortGraph::HasEqualBlocks(const StrategyGraph& graph) const {
  std::vector<std::vector<EdgesOfBlock>> blocks;
  for (const RepeatedBlocks& repeat : whole_) {
    blocks.emplace_back(repeat.blocks.size());
    for (const std::vector<int32_t>& block : repeat.blocks) {
      for (size_t i = 0; i < block.size(); ++i) {
        if (graph.nodes[At(block[i])].cost != graph.nodes[At(repeat.blocks[0][i])].cost) {
          return false;
        }
      }
    }
  }
  for (const StrategyEdge& edge : graph.edges) {
    if (!AddTo(edge, blocks)) return false;
  }
  for (std::vector<EdgesOfBlock>& of_repeat : blocks) {
    for (EdgesOfBlock& block : of_repeat) block.Sort();
    std::vector<BlockEdge> within;
    std::ranges::copy_if(of_repeat[0].own, std::back_inserter(within), &BlockEdge::within);
    for (size_t block = 0; block < of_repeat.size(); ++block) {
      const bool last = block + 1 == of_repeat.size(), inner = block > 0 && !last;
      if (of_repeat[block].own != (last ? within : of_repeat[0].own)) return false;
      if (inner && of_repeat[block].others != of_repeat[1].others) return false;
    }
  }
  return true;
}

std::optional<StrategyGraph> ShortGraph::Of(const StrategyGraph& graph) const {
  if (!graph.live_sets.empty() || !graph.incompatible.empty()) return std::nullopt;
  if (!HasEqualBlocks(graph)) return std::nullopt;
  StrategyGraph shorter;
  shorter.nodes.reserve(nodes_.size());
  for (const int32_t node : nodes_) shorter.nodes.push_back(graph.nodes[At(node)]);
  for (const StrategyEdge& edge : graph.edges) {
    // What the second block has with the third, it has with the last one here.
    const auto number = [&](int32_t node, int32_t other) {
      const Place &place = PlaceOf(node), &from = PlaceOf(other);
      const bool next =
          place.repeat >= 0 && place.repeat == from.repeat && place.block == 2 && from.block == 1;
      return NumberOf(next ? whole_[At(place.repeat)].blocks.back()[At(place.index)] : node);
    };
    const int32_t from = number(edge.from, edge.to), to = number(edge.to, edge.from);
    if (from < 0 || to < 0) continue;
    shorter.edges.push_back({.from = from, .to = to, .cost = edge.cost});
  }
  return shorter;
}

std::vector<int32_t> ShortGraph::Expand(const StrategyChoice& choice) const {
  std::vector<int32_t> whole(places_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) whole[At(nodes_[i])] = choice.assignment[i];
  for (size_t repeat = 0; repeat < whole_.size(); ++repeat) {
    const auto& further = choice.further[repeat];
    for (size_t k = 0; k < further.size(); ++k) {
      const std::vector<int32_t>& block = whole_[repeat].blocks[k + 2];
      for (size_t i = 0; i < block.size(); ++i) whole[At(block[i])] = further[k][i];
    }
  }
  return whole;
}

}  // namespace orrery::transforms::strategies
