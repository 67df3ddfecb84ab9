#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_TOY_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_TOY_TEST_UTIL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transforms/redistribution/move_set.h"
#include "transforms/redistribution/search.h"

// A graph that a test writes down, as a move set.

namespace orrery::transforms::redistribution {

/// Node number `node`, of up to 30, as a layout: axis 0 splits that dimension.
inline PackedLayout Node(int node) {
  PackedLayout layout;
  layout.SetSplit(node, ir::AxisList(0));
  return layout;
}

inline int NodeOf(const PackedLayout& layout) { return layout.dim(0); }

struct ToyEdge {
  int from = 0, to = 0;
  double cost = 1;
  int64_t peak = 1;
};

/// Steps are edges: the number of an edge is the step's `to`, so that equal ones can be told apart.
class ToyMoveSet final : public MoveSet {
 public:
  std::vector<ToyEdge> edges, last_resorts;
  std::map<int, int64_t> elements;  // by node; 1 where nothing is said
  std::map<int, double> bounds;     // by node; 0 where nothing is said
  std::map<int, int> normal;        // by node; itself where nothing is said

  void Expand(const PackedLayout& layout, std::vector<Move>& moves) const override {
    Append(edges, layout, moves);
  }
  void LastResort(const PackedLayout& layout, std::vector<Move>& moves) const override {
    Append(last_resorts, layout, moves);
  }
  double LowerBound(const PackedLayout& layout) const override {
    const auto at = bounds.find(NodeOf(layout));
    return at == bounds.end() ? 0 : at->second;
  }
  StepCost CostOf(const PackedLayout&, const Step& step) const override {
    return {.transfer = edges[static_cast<size_t>(step.to)].cost};
  }
  int64_t Elements(const PackedLayout& layout) const override {
    const auto at = elements.find(NodeOf(layout));
    return at == elements.end() ? 1 : at->second;
  }
  std::string NameOf(const PackedLayout&, const Step&) const override { return "edge"; }
  PackedLayout Normal(const PackedLayout& layout) const override {
    const auto at = normal.find(NodeOf(layout));
    return at == normal.end() ? layout : Node(at->second);
  }

 private:
  static void Append(const std::vector<ToyEdge>& edges, const PackedLayout& layout,
                     std::vector<Move>& moves) {
    for (size_t i = 0; i < edges.size(); ++i) {
      if (edges[i].from != NodeOf(layout)) continue;
      Move& move = moves.emplace_back();
      move.step.kind = MoveKind::kReblock;
      move.step.to = static_cast<int8_t>(i);
      move.step.after = Node(edges[i].to);
      move.cost = edges[i].cost;
      move.peak = edges[i].peak;
    }
  }
};

/// The nodes that a plan goes to.
inline std::vector<int> NodesOf(const RedistributionPlan& plan) {
  std::vector<int> nodes;
  for (const PlannedStep& step : plan.steps) nodes.push_back(NodeOf(step.step.after));
  return nodes;
}

/// The numbers of the edges that a plan takes.
inline std::vector<int> EdgesOf(const RedistributionPlan& plan) {
  std::vector<int> edges;
  for (const PlannedStep& step : plan.steps) edges.push_back(step.step.to);
  return edges;
}

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_TOY_TEST_UTIL_H_
