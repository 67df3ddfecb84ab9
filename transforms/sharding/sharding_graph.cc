#include "transforms/sharding/sharding_graph.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"

namespace orrery::transforms {
namespace sharding_graph_cc {
namespace {

using ir::TensorType;
using ir::ValueId;
using strategies::StrategyEdge;
using strategies::StrategyGraph;
using strategies::StrategyNode;

class Pricer {
 public:
  Pricer(const ShardingCosts& costs, const ShardingChoices& choices, LayoutWays& ways)
      : problem_(costs.problem),
        choices_(choices),
        ways_(ways),
        memory_(costs.memory),
        update_share_(1 / static_cast<double>(costs.microbatches)) {}

  absl::StatusOr<StrategyGraph> Run() {
    const ShardingNodes& nodes = choices_.nodes();
    for (int32_t node = 0; node < std::ssize(nodes.all()); ++node) {
      ORRERY_RETURN_IF_ERROR(AddCosts(node));
    }
    for (const ShardingUse& use : nodes.uses()) {
      if (nodes.MakerOf(use.value) != use.node) AddEdge(use);
    }
    return std::move(result_);
  }

 private:
  // Of its seconds those that count for a microbatch.
  double ShareOf(const ShardingNode& node) const { return node.once_a_step ? update_share_ : 1; }

  absl::Status AddCosts(int32_t number) {
    const ShardingNode& node = choices_.nodes()[number];
    StrategyNode row;
    row.name = node.name;
    for (const ShardingChoice& choice : choices_.Of(number)) {
      double moves = 0;
      for (const ValueId value : node.values) {
        const AxisLayout left = choices_.LeftBy(value, choice);
        const AxisLayout given = choices_.GivenBy(value, choice);
        if (left != given) moves += ways_.Find(value, left, given).seconds;
        const AxisLayout extra = choices_.ExtraBy(value, choice);
        if (extra != kNoLayout) moves += ways_.Find(value, given, extra).seconds;
        if (memory_.IsSummed(value) && update_share_ < 1) moves += SumSeconds(value, given);
      }
      // Inputs are updated once, but moved for each microbatch.
      row.cost.push_back(choices_.StrategyOf(number, choice).seconds * ShareOf(node) +
                         moves * (node.is_group ? 1 : ShareOf(node)));
    }
    const bool possible =
        std::ranges::any_of(row.cost, [](double c) { return c < strategies::kImpossible; });
    result_.nodes.push_back(std::move(row));
    if (possible) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the pins leave no strategy for ", node.name, "; try to leave one out"));
  }

  // Of one more summand.
  double SumSeconds(ValueId value, AxisLayout layout) const {
    const TensorType type = InLayout(problem_.function.type(value), layout, problem_.axis);
    const TensorType* const summands[] = {&type, &type};
    return SecondsOf({.kind = ir::OpKind::kAccumulate,
                      .attributes = {},
                      .operands = summands,
                      .results = std::span(summands, 1)},
                     problem_.mesh, problem_.prices);
  }

  void AddEdge(const ShardingUse& use) {
    const int32_t from = choices_.nodes().MakerOf(use.value);
    const auto& makers = choices_.Of(from);
    const auto& takers = choices_.Of(use.node);
    const double share = ShareOf(choices_.nodes()[use.node]);
    StrategyEdge edge{.from = from, .to = use.node, .cost = {}};
    edge.cost.reserve(makers.size() * takers.size());
    bool free = true;
    for (const ShardingChoice& made : makers) {
      const AxisLayout given = choices_.GivenBy(use.value, made);
      const AxisLayout extra = choices_.ExtraBy(use.value, made);
      for (const ShardingChoice& taken : takers) {
        const AxisLayout wanted = choices_.WantedBy(use, taken);
        double seconds = ways_.Find(use.value, given, wanted).seconds;
        if (extra != kNoLayout) {
          seconds = std::min(seconds, ways_.Find(use.value, extra, wanted).seconds);
        }
        if (choices_.CutsFrozen(use.value, given, wanted)) seconds = strategies::kImpossible;
        free = free && seconds == 0;
        edge.cost.push_back(seconds * share);
      }
    }
    if (!free) result_.edges.push_back(std::move(edge));
  }

  const AxisProblem problem_;
  const ShardingChoices& choices_;
  LayoutWays& ways_;
  const ShardingMemory& memory_;
  const double update_share_;  // of the seconds of an update, to count for a microbatch
  StrategyGraph result_;
};

}  // namespace
}  // namespace sharding_graph_cc

absl::StatusOr<strategies::StrategyGraph> PriceChoices(const ShardingCosts& costs,
                                                       const ShardingChoices& choices,
                                                       LayoutWays& ways) {
  return sharding_graph_cc::Pricer(costs, choices, ways).Run();
}

strategies::StrategyGraph WeighChoices(const ShardingChoices& choices, KeptGathered gathered,
                                       ShardingMemory& memory) {
  strategies::StrategyGraph bytes;
  const ShardingNodes& nodes = choices.nodes();
  bytes.nodes.resize(nodes.all().size());
  for (int32_t node = 0; node < std::ssize(nodes.all()); ++node) {
    std::vector<double>& row = bytes.nodes[static_cast<size_t>(node)].cost;
    for (const ShardingChoice& choice : choices.Of(node)) {
      row.push_back(memory.Of(node, choice, gathered));
    }
  }
  for (const ShardingUse& use : nodes.uses()) {
    const int32_t from = nodes.MakerOf(use.value);
    if (from == use.node || !memory.MayCopy(use, gathered)) continue;
    strategies::StrategyEdge edge{.from = from, .to = use.node, .cost = {}};
    bool free = true;
    for (const ShardingChoice& made : choices.Of(from)) {
      for (const ShardingChoice& taken : choices.Of(use.node)) {
        edge.cost.push_back(memory.OfCopy(use, made, taken, gathered));
        free = free && edge.cost.back() == 0;
      }
    }
    if (!free) bytes.edges.push_back(std::move(edge));
  }
  return bytes;
}

strategies::StrategyGraph WithMemory(strategies::StrategyGraph seconds,
                                     const strategies::StrategyGraph& bytes, double price) {
  for (size_t n = 0; n < seconds.nodes.size(); ++n) {
    for (size_t c = 0; c < seconds.nodes[n].cost.size(); ++c) {
      seconds.nodes[n].cost[c] += price * bytes.nodes[n].cost[c];
    }
  }
  for (const strategies::StrategyEdge& copies : bytes.edges) {
    strategies::StrategyEdge& edge = seconds.edges.emplace_back(copies);
    for (double& cost : edge.cost) cost *= price;
  }
  return seconds;
}

}  // namespace orrery::transforms
