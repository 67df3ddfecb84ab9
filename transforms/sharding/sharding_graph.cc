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

class Pricer {
 public:
  Pricer(const ShardingCosts& costs, const ShardingChoices& choices, LayoutWays& ways)
      : problem_(costs.problem),
        choices_(choices),
        ways_(ways),
        memory_(costs.memory),
        gathered_(GatheredOf(costs.options)),
        weighs_memory_(WeighsMemory(costs.options)),
        update_share_(1 / static_cast<double>(costs.options.microbatches)) {}

  absl::StatusOr<ShardingGraph> Run() {
    const ShardingNodes& nodes = choices_.nodes();
    for (int32_t node = 0; node < std::ssize(nodes.all()); ++node) {
      ORRERY_RETURN_IF_ERROR(AddCosts(node));
      if (weighs_memory_) AddMemory(node);
    }
    for (const ShardingUse& use : nodes.uses()) {
      if (nodes.MakerOf(use.value) == use.node) continue;
      AddEdge(use);
      if (weighs_memory_ && memory_.MayCopy(use, gathered_)) AddCopies(use);
    }
    return std::move(result_);
  }

 private:
  // Of its seconds those that count for a microbatch.
  double ShareOf(const ShardingNode& node) const { return node.once_a_step ? update_share_ : 1; }

  absl::Status AddCosts(int32_t number) {
    const ShardingNode& node = choices_.nodes()[number];
    strategies::StrategyNode row;
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
    result_.graph.nodes.push_back(std::move(row));
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

  void AddMemory(int32_t number) {
    std::vector<double>& row = result_.memory.emplace_back();
    for (const ShardingChoice& choice : choices_.Of(number)) {
      row.push_back(memory_.Of(number, choice, gathered_));
    }
  }

  void AddCopies(const ShardingUse& use) {
    const int32_t from = choices_.nodes().MakerOf(use.value);
    strategies::StrategyEdge edge{.from = from, .to = use.node, .cost = {}};
    bool free = true;
    for (const ShardingChoice& made : choices_.Of(from)) {
      for (const ShardingChoice& taken : choices_.Of(use.node)) {
        edge.cost.push_back(memory_.OfCopy(use, made, taken, gathered_));
        free = free && edge.cost.back() == 0;
      }
    }
    if (!free) result_.copies.push_back(std::move(edge));
  }

  void AddEdge(const ShardingUse& use) {
    const int32_t from = choices_.nodes().MakerOf(use.value);
    const auto& makers = choices_.Of(from);
    const auto& takers = choices_.Of(use.node);
    const double share = ShareOf(choices_.nodes()[use.node]);
    strategies::StrategyEdge edge{.from = from, .to = use.node, .cost = {}};
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
    if (!free) result_.graph.edges.push_back(std::move(edge));
  }

  const AxisProblem problem_;
  const ShardingChoices& choices_;
  LayoutWays& ways_;
  ShardingMemory& memory_;
  const KeptGathered gathered_;
  const bool weighs_memory_;
  const double update_share_;  // of the seconds of an update, to count for a microbatch
  ShardingGraph result_;
};

}  // namespace
}  // namespace sharding_graph_cc

absl::StatusOr<ShardingGraph> PriceChoices(const ShardingCosts& costs,
                                           const ShardingChoices& choices, LayoutWays& ways) {
  return sharding_graph_cc::Pricer(costs, choices, ways).Run();
}

}  // namespace orrery::transforms
