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

using ir::OpId;
using ir::TensorType;
using ir::ValueId;

// Which values a rank keeps, and how much of them.
struct Kept {
  explicit Kept(const ShardingCosts& costs);

  IdTable<ValueId, char> kept;    // by forward, for backward
  IdTable<ValueId, char> summed;  // over microbatches, for the update
  IdTable<ValueId, double> held;  // the part of it that a rank keeps for the update
};

// What a backward op reads is kept; of a view, what it looks at.
void FindKept(const ir::Function& function, const IdTable<OpId, StepPhase>& phase,
              IdTable<ValueId, char>& kept) {
  const auto& order = function.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    const ir::OpInfo& info = function.info(*op);
    const bool view = info.strided_view || info.op_class == ir::OpClass::kView;
    bool seen = phase[*op] == StepPhase::kBackward;
    for (int32_t i = 0; view && !seen && i < function.result_count(*op); ++i) {
      const ValueId result = function.result(*op, i);
      seen = kept[result] != 0;
      kept[result] = 0;
    }
    if (!seen) continue;
    for (const ValueId operand : function.operands(*op)) {
      const OpId producer = function.producer(operand);
      if (producer.valid() && phase[producer] == StepPhase::kForward) kept[operand] = 1;
    }
  }
}

// What an update reads is added up before, in the layout in which backward leaves it.
void FindSummed(const ir::Function& function, const IdTable<OpId, StepPhase>& phase,
                IdTable<ValueId, char>& summed) {
  for (const OpId op : function.order()) {
    if (phase[op] != StepPhase::kUpdate) continue;
    for (const ValueId operand : function.operands(op)) {
      const OpId producer = function.producer(operand);
      if (producer.valid() && phase[producer] == StepPhase::kBackward) summed[operand] = 1;
    }
  }
}

Kept::Kept(const ShardingCosts& costs)
    : kept(costs.problem.function.value_limit(), 0),
      summed(costs.problem.function.value_limit(), 0),
      held(costs.problem.function.value_limit(), costs.options.held.gradients) {
  const ir::Function& function = costs.problem.function;
  FindKept(function, costs.phase, kept);
  FindSummed(function, costs.phase, summed);
  for (const ir::Input& input : function.inputs()) {
    const bool state = input.role == ir::InputRole::kState;
    const bool parameter = input.role == ir::InputRole::kParameter;
    const HeldParts& parts = costs.options.held;
    held[input.value] = state ? parts.states : parameter ? parts.parameters : 1;
  }
}

class Pricer {
 public:
  Pricer(const ShardingCosts& costs, const ShardingChoices& choices, LayoutWays& ways)
      : problem_(costs.problem),
        choices_(choices),
        ways_(ways),
        update_share_(1 / static_cast<double>(costs.options.microbatches)),
        in_flight_(static_cast<double>(costs.options.in_flight)),
        kept_(costs) {}

  absl::StatusOr<ShardingGraph> Run() {
    const ShardingNodes& nodes = choices_.nodes();
    for (int32_t node = 0; node < std::ssize(nodes.all()); ++node) {
      ORRERY_RETURN_IF_ERROR(AddCosts(node));
      AddMemory(node);
    }
    for (const ShardingUse& use : nodes.uses()) AddEdge(use);
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
        if (kept_.summed[value] != 0 && update_share_ < 1) moves += SumSeconds(value, given);
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
    const auto bytes = [&](ValueId value, AxisLayout layout) {
      const TensorType type = InLayout(problem_.function.type(value), layout, problem_.axis);
      return static_cast<double>(SizeOf(ir::LocalType(type, problem_.mesh)).count());
    };
    for (const ShardingChoice& choice : choices_.Of(number)) {
      double memory = 0;
      for (const ValueId value : choices_.nodes()[number].values) {
        const bool input = !problem_.function.producer(value).valid();
        double copies = input || kept_.summed[value] != 0 ? kept_.held[value] : 0;
        if (kept_.kept[value] != 0) copies += in_flight_;
        if (copies > 0) memory += copies * bytes(value, choices_.GivenBy(value, choice));
      }
      row.push_back(memory);
    }
  }

  void AddEdge(const ShardingUse& use) {
    const int32_t from = choices_.nodes().MakerOf(use.value);
    if (from == use.node) return;
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
        free = free && seconds == 0;
        edge.cost.push_back(seconds * share);
      }
    }
    if (!free) result_.graph.edges.push_back(std::move(edge));
  }

  const AxisProblem problem_;
  const ShardingChoices& choices_;
  LayoutWays& ways_;
  const double update_share_;  // of the seconds of an update, to count for a microbatch
  const double in_flight_;     // microbatches
  const Kept kept_;
  ShardingGraph result_;
};

}  // namespace
}  // namespace sharding_graph_cc

absl::StatusOr<ShardingGraph> PriceChoices(const ShardingCosts& costs,
                                           const ShardingChoices& choices, LayoutWays& ways) {
  return sharding_graph_cc::Pricer(costs, choices, ways).Run();
}

}  // namespace orrery::transforms
